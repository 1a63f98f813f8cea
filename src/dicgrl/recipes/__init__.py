"""Recipes: named, complete settings of a dataset and model with the published numbers beside.

One TOML file each: `[settings]`, `[disentangled]` with what differs in the disentangled form,
`[continual]` with what later parts need, `[strategies.NAME]` with what differs for one strategy,
and `[published]`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from dicgrl.errors import UserError, unknown_name
from dicgrl.models import BACKBONES, Scorer
from dicgrl.settings import LinkSettings, NodeSettings

NAMES = ("paper", "best")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings under a name.

    Attributes:
        name: paper or best; `default` where a dataset has none of its own.
        settings: All settings.
        published: The paper's numbers for them, in per cent.
    """

    name: str
    settings: LinkSettings | NodeSettings
    published: dict[str, Any] = field(default_factory=dict)


def load_recipe(
    name: str,
    dataset: str,
    model: str,
    *,
    disentangled: bool = False,
    strategy: str | None = None,
) -> Recipe:
    """The recipe of a dataset and model; `best` falls back to the package's defaults.

    Args:
        name: paper or best.
        dataset: Name of the stream.
        model: Name of the model.
        disentangled: Whether vectors are divided into components.
        strategy: How parts are learned; None for the setting that is not continual.

    Example:
        >>> load_recipe("best", "my-own-graph", "transe").name
        'default'
    """
    if name not in NAMES:
        raise unknown_name("recipe", name, NAMES)
    form = "disentangled" if disentangled else "plain"
    file = files("dicgrl.recipes") / f"{dataset}.{model}.{name}.toml".lower()
    if file.is_file():
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        settings = _defaults(model).changed(content["settings"])
        if disentangled:
            settings = settings.changed(content["disentangled"])
        published = content.get("published", {}).get(strategy or form, {})
        if strategy is not None:
            own = content.get("strategies", {}).get(strategy, {})
            settings = settings.changed(content.get("continual", {}) | own)
            settings = settings.changed({"strategy": strategy})
        return Recipe(name, settings, published)
    if name != "best":
        raise UserError(
            f"there is no recipe {name!r} for {dataset} with {model}; use --recipe best"
        )
    settings = _defaults(model).changed({"components": 8} if disentangled else {})
    return Recipe(
        "default", settings if strategy is None else settings.changed({"strategy": strategy})
    )


def default_settings(model: str, strategy: str) -> LinkSettings | NodeSettings:
    """Settings of a model and strategy where no recipe is asked for.

    Example:
        >>> default_settings("transe", "dicgrl").components
        8
    """
    changes = {"strategy": strategy} | ({"components": 8} if strategy == "dicgrl" else {})
    return _defaults(model).changed(changes)


def _defaults(model: str) -> LinkSettings | NodeSettings:
    if model in BACKBONES:
        return NodeSettings(model=model)
    if model not in Scorer.registry:
        raise unknown_name("model", model, [*Scorer.registry, *BACKBONES])
    return LinkSettings(model=model)

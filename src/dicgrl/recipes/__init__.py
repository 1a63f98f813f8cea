"""Recipes: named, complete settings of a dataset and model with the published numbers beside.

One TOML file each: `[settings]`, `[disentangled]` with what differs in the disentangled form,
`[continual]` with what later parts need, `[strategies.NAME]` with what differs for one strategy,
and `[published]` with the paper's numbers by form (appendix A) and by strategy (tables 1 and 2), or
with what others published. A file of one's own, such as `dicgrl sweep` writes, may say at its top
which `model` it is for.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from dicgrl.datasets import datasets, registered
from dicgrl.errors import DataError, UserError, shown_value, unknown_name
from dicgrl.settings import Settings, check_use
from dicgrl.strategies import strategy_named
from dicgrl.tasks import DEFAULT_STRATEGY, LinkPrediction, task_of_model

NAMES = ("paper", "released", "best", "published")
_LARGEST = 1 << 20  # bytes of a recipe file
SECTIONS = ("settings", "disentangled", "continual", "strategies", "published")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings under a name.

    Attributes:
        name: paper, released, best, published or the path of a file; `default` where a dataset has
            none of its own.
        settings: All settings.
        published: The numbers that were published for them, in per cent.
    """

    name: str
    settings: Settings
    published: dict[str, Any] = field(default_factory=dict)


def load_recipe(
    name: str,
    dataset: str,
    model: str,
    *,
    disentangled: bool = False,
    attention: str = "relation",
    strategy: str | None = None,
) -> Recipe:
    """The recipe of a dataset and model; `best` falls back to the package's defaults.

    So it does where a dataset's recipe has no word about strategies.

    Args:
        name: paper, released (the authors' code), best, published (settings of rivals, or of a
            decoder's authors), or the path of a recipe file (ending with .toml).
        dataset: Name of a dataset (`dicgrl.datasets.registered`); empty for data of one's own.
        model: Name of the model.
        disentangled: Whether vectors are divided into components.
        attention: Where the attention of a disentangled form comes from: relation, nodes or triple.
        strategy: How parts are learned; None for the setting that is not continual.

    Example:
        >>> load_recipe("best", "", "transe").name
        'default'
        >>> load_recipe("paper", "cora", "gat", strategy="gem").published
        {'whole': 75.3, 'average': 76.1}
    """
    later = strategy or DEFAULT_STRATEGY  # a merged graph has one part, and more may follow it
    settings = Settings(model, later)
    content = _content(name, dataset, model)
    if content is None and name != "best":
        whose = dataset or "data of your own"
        raise UserError(f"there is no recipe {name!r} for {whose} with {model}; use --recipe best")
    default = _shipped(f"default.{settings.task.recipe}.toml") or {}
    if content is None:
        name, content = "default", default
    try:
        settings = settings.changed(content.get("settings", {}), carried=True)
        if disentangled:
            settings = settings.changed(content.get("disentangled", {}), carried=True)
        if attention != "relation":
            settings = settings.changed({"attention": attention})
        called = strategy_named(later).recipe
        others = default.get("strategies", {}) if name == "best" else {}
        own = content.get("continual", {}) | content.get("strategies", others).get(called, {})
        if strategy is None:
            own = {key: value for key, value in own.items() if key in settings.later_names}
        if not disentangled:  # a strategy may have a division of its own
            own = {key: value for key, value in own.items() if key not in ("components", "top")}
        settings = settings.changed(own, carried=True)
    except UserError as error:
        raise DataError(name, str(error)) from None
    form = "disentangled" if disentangled else "plain"
    form += f"-{attention}" if attention != "relation" else ""
    return Recipe(name, settings, content.get("published", {}).get(strategy or form, {}))


def published_numbers(dataset: str, strategy: str = "") -> dict[str, Any]:
    """What rivals published for a stream: by strategy, or of one, in per cent; empty for none.

    Example:
        >>> published_numbers("ENTITY", "incde")["mrr"]
        25.3
    """
    model = LinkPrediction.published_model
    content = _shipped(f"{dataset}.{model}.published.toml".lower()) or {}
    every: dict[str, Any] = content.get("published", {})
    return every.get(strategy, {}) if strategy else every


def _content(name: str, dataset: str, model: str) -> dict[str, Any] | None:
    """What a recipe's file says; None where the package has none."""
    if not name.endswith(".toml"):
        if name not in NAMES:
            raise unknown_name("recipe", name, NAMES)
        return _shipped(f"{dataset}.{model}.{name}.toml".lower())
    path = Path(name)
    if not path.is_file():
        raise UserError(f"{path}: no such recipe file")
    if path.stat().st_size > _LARGEST:
        raise DataError(path, f"not a recipe (larger than {_LARGEST >> 20} MiB)")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(path, f"not a recipe ({error})") from error
    for section, values in content.items():
        if section not in ("model", *SECTIONS):
            raise DataError(path, str(unknown_name("section", section, SECTIONS)))
        if section != "model":
            _check_section(path, section, values)
    meant = content.get("model", model)
    if not isinstance(meant, str):
        raise DataError(path, f"model={shown_value(meant)}: expected a name")
    if meant != model:
        task_of_model(meant)  # which may be unknown
        raise UserError(f"{path} is a recipe of {meant}; use --model {meant}")
    return content


def _check_section(path: Path, section: str, values: Any) -> None:
    apart = section in ("strategies", "published") and isinstance(values, dict)
    inner = list(values.values()) if apart else []
    for chosen in ("model", "strategy"):
        if any(isinstance(each, dict) and chosen in each for each in (values, *inner)):
            raise DataError(
                path, f"{section}: {chosen} is not a setting of a recipe; use --{chosen}"
            )
    if not all(isinstance(each, dict) for each in (values, *inner)):
        raise DataError(path, f"{section}: expected a table of settings")
    published = [number for each in inner for number in each.values()]
    if section == "published" and not all(isinstance(n, int | float) for n in published):
        raise DataError(path, "published: expected numbers")


def _shipped(name: str) -> dict[str, Any] | None:
    file = files("dicgrl.recipes") / name
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def default_settings(model: str, strategy: str, dataset: str = "") -> Settings:
    """Settings of a model and strategy: those of a dataset's recipe, or of none.

    Example:
        >>> default_settings("transe", "dicgrl").components
        4
    """
    divided = strategy_named(strategy).divided
    return load_recipe("best", dataset, model, disentangled=divided, strategy=strategy).settings


def chosen_settings(
    settings: Settings | None,
    model: str | None,
    strategy: str | None,
    dataset: str,
    changes: Mapping[str, Any],
) -> Settings:
    """The settings that a learner is asked for.

    Args:
        settings: Complete ones; then nothing else is given.
        model: Name of the model; that of the dataset unless given: rotate for links, where there
            is none.
        strategy: Name of the strategy; fresh unless given.
        dataset: Name of a known dataset, whose recipe is taken; empty for none.
        changes: Settings that differ from the recipe.

    Raises:
        UserError: A name or setting is unknown, of no use, or out of bounds.
    """
    named = {"dataset": dataset, "model": model, "strategy": strategy}
    for name, value in named.items():
        if not isinstance(value, str | None):
            raise UserError(f"{name}={shown_value(value)}: expected a name")
    if settings is not None:
        if not isinstance(settings, Settings):
            raise UserError(f"settings={shown_value(settings)}: expected Settings")
        given = [*(name for name, value in named.items() if value), *changes]
        if given:
            raise UserError(
                f"settings are complete; change them instead of giving {', '.join(given)}"
            )
        return settings
    if dataset and not registered(dataset):
        raise unknown_name("dataset", dataset, [known.name for known in datasets()])
    model = model or LinkPrediction().usual_model(dataset)
    strategy = strategy or DEFAULT_STRATEGY
    settings = default_settings(model, strategy, dataset)
    for name in changes:
        settings.check_effect(name)
    settings = settings.changed(changes)
    check_use(changes, settings.task, [settings.form])
    return settings

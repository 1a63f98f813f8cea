"""From what was asked for to complete settings: strategy, recipe and changes, checked together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dicgrl.datasets import registered
from dicgrl.defaults import DEFAULT_STRATEGY, default_model
from dicgrl.errors import UserError, unknown_name
from dicgrl.graph import NetworkStream, Stream
from dicgrl.models import BACKBONES, Scorer
from dicgrl.recipes import Recipe, load_recipe
from dicgrl.settings import LATER, LinkSettings, NodeSettings, check_use
from dicgrl.strategies import Strategy, divides

Changes = Sequence[str] | Mapping[str, Any]
"""Settings that differ from a recipe: `key=value` texts, or values by name."""


def chosen_strategies(asked: Sequence[str] | None, *, merged: bool) -> list[str]:
    """The strategies that were asked for, each once; the default unless any were.

    Where all parts are merged there is none.

    Raises:
        UserError: A strategy is unknown, or was asked for although all parts are merged.

    Example:
        >>> chosen_strategies(None, merged=False)
        ['dicgrl']
        >>> chosen_strategies(["lower", "emr", "lower"], merged=False)
        ['lower', 'emr']
    """
    if merged:
        if asked is not None:
            raise UserError(
                f"--strategy {','.join(asked)} says how later parts are learned; with --merged "
                "there are none: leave out one of the two"
            )
        return []
    names = list(dict.fromkeys([DEFAULT_STRATEGY] if asked is None else asked))
    for name in names:
        if name not in Strategy.registry:
            raise unknown_name("strategy", name, Strategy.registry)
    return names


def chosen_recipe(
    stream: Stream,
    source: str,
    *,
    model: str | None = None,
    recipe: str = "best",
    disentangled: bool | None = None,
    changes: Changes = (),
    strategy: str | None = None,
) -> Recipe:
    """The settings of a run: those of a recipe, with changes.

    Args:
        stream: The stream.
        source: Where it comes from; the recipe is that of the dataset of this name, if it is one.
        model: Name of the model; the task's default unless given.
        recipe: best, paper or the path of a recipe file.
        disentangled: Whether vectors are divided into components; as the strategy needs it unless
            given.
        changes: Settings that differ from the recipe.
        strategy: How later parts are learned; None where all parts are merged.

    Raises:
        UserError: The model is of another task, or there is no such recipe, setting or value.
    """
    model = model or default_model(stream.task)
    divided = divides(strategy) if disentangled is None else disentangled
    found = load_recipe(recipe, registered(source), model, disentangled=divided, strategy=strategy)
    settings = _changed(found.settings, changes)
    for key in ("model", "strategy"):
        if getattr(settings, key) != getattr(found.settings, key):
            raise UserError(f"--set {key}: use --{key} {getattr(settings, key)}")
    _check_task(model, settings, stream)
    return Recipe(found.name, settings, found.published)


def check_changes(
    changes: Changes, forms: Iterable[tuple[str, bool]], *, merged: bool = False
) -> None:
    """Refuse changes that none of the runs has a use for.

    Args:
        changes: The changes.
        forms: The strategies of the runs, each with whether its model is divided.
        merged: Whether all parts are merged. What is learned after such a run may well use the
            settings of later parts.

    Raises:
        UserError: Nobody uses one of them.
    """
    names = changes if isinstance(changes, Mapping) else map(_name_in, changes)
    check_use([name for name in names if not (merged and name in LATER)], forms)


def _changed(
    settings: LinkSettings | NodeSettings, changes: Changes
) -> LinkSettings | NodeSettings:
    if not isinstance(changes, Mapping):
        return settings.parsed(changes)
    for name in changes:
        settings.check_effect(name)
    return settings.changed(changes)


def _name_in(change: str) -> str:
    return change.partition("=")[0].strip()


def _check_task(model: str, settings: LinkSettings | NodeSettings, stream: Stream) -> None:
    is_network = isinstance(stream, NetworkStream)
    if isinstance(settings, NodeSettings) == is_network:
        return
    if is_network:
        raise UserError(
            f"{model} predicts links, but {stream.name} is a network: use {' or '.join(BACKBONES)}"
        )
    raise UserError(
        f"{model} classifies nodes, but {stream.name} is a knowledge graph: use "
        + " or ".join(sorted(Scorer.registry))
    )

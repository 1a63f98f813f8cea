"""Turns what a user asked for (strategy, recipe, changes) into complete, checked settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dicgrl.datasets import registered
from dicgrl.errors import UserError
from dicgrl.graph import Stream
from dicgrl.graph.frames import listed
from dicgrl.recipes import Recipe, load_recipe
from dicgrl.settings import Form, Settings, check_use, strategies_using
from dicgrl.strategies import strategy_named
from dicgrl.tasks import DEFAULT_STRATEGY, Task, task_named

Changes = Sequence[str] | Mapping[str, Any]
"""Settings that differ from a recipe: `key=value` texts, or values by name."""


def chosen_strategies(asked: Sequence[str] | None, *, merged: bool) -> list[str]:
    """The strategies that were asked for, each once; the default unless any were.

    Where all parts are merged there is none.

    Raises:
        UserError: A strategy is unknown, or was asked for although all parts are merged.

    Example:
        >>> chosen_strategies(None, merged=False)
        ['fresh']
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
    names = [DEFAULT_STRATEGY] if asked is None else listed(asked, "a strategy, or a list of some")
    for name in names:
        strategy_named(name)
    if not names:
        raise UserError("no strategy is named: expected one, or some")
    return list(dict.fromkeys(names))


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
        model: Name of the model; the usual one of the dataset or of the task unless given.
        recipe: best, paper, released or the path of a recipe file.
        disentangled: Whether vectors are divided into components; as the strategy needs it unless
            given.
        changes: Settings that differ from the recipe.
        strategy: How later parts are learned; None where all parts are merged.

    Raises:
        UserError: The model is of another task, or there is no such recipe, setting or value.
    """
    task = task_named(stream.task)
    model = model or task.usual_model(registered(source))
    task.check_model(model, stream.name)
    divided = disentangled
    if divided is None:
        divided = strategy is not None and strategy_named(strategy).divided
    found = load_recipe(recipe, registered(source), model, disentangled=divided, strategy=strategy)
    settings = _changed(found.settings, changes)
    for key in ("model", "strategy"):
        if getattr(settings, key) != getattr(found.settings, key):
            raise UserError(f"--set {key}: use --{key} {getattr(settings, key)}")
    return Recipe(found.name, settings, found.published)


def check_changes(
    changes: Changes, task: Task, forms: Iterable[Form], *, merged: bool = False
) -> None:
    """Refuse changes that none of the runs has a use for.

    Args:
        changes: The changes.
        task: The task.
        forms: The forms of the runs.
        merged: Whether all parts are merged. What is learned after such a run may well use the
            settings of later parts.

    Raises:
        UserError: Nobody uses one of them.
    """
    names = changes if isinstance(changes, Mapping) else map(_name_in, changes)
    check_use([name for name in names if not (merged and strategies_using(name))], task, forms)


def _changed(settings: Settings, changes: Changes) -> Settings:
    if not isinstance(changes, Mapping):
        return settings.parsed(changes)
    for name in changes:
        settings.check_effect(name)
    return settings.changed(changes)


def _name_in(change: str) -> str:
    return change.partition("=")[0].strip()

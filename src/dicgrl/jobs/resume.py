"""Loads a learner to go on with: of a run that was stopped, or a first part shared by several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dicgrl.errors import UserError
from dicgrl.graph import Stream
from dicgrl.learner import Learner
from dicgrl.recipes import Recipe
from dicgrl.settings import Settings
from dicgrl.store.content import part_content, same_content
from dicgrl.store.damage import is_no_damage
from dicgrl.store.run_folder import RunFolder


def resumed(folder: RunFolder, stream: Stream, recipe: Recipe, seed: int, device: str) -> Learner:
    """The learner of a run that was stopped.

    Raises:
        UserError: The run there is of other data, settings or another seed, is longer than the
            stream, or merged all parts.
    """
    _check_begun_alike(folder, stream, recipe, seed)
    learner = Learner.load(folder.path, device=device)
    if learner.num_parts > len(stream):
        raise UserError(f"{folder.path}: the run there has more parts than this stream")
    _check_parts(folder.path, learner, stream)
    return learner


def forked(first: Path, stream: Stream, recipe: Recipe, seed: int, device: str) -> Learner:
    """The learner of a first part that was learned before, to learn later ones by a recipe.

    Raises:
        UserError: The first part there is of other data, another seed or settings that matter.
    """
    learner = Learner.load(first, device=device)
    if learner.seed != seed:
        raise UserError(f"{first}: the first part there was learned with seed {learner.seed}")
    _check_parts(first, learner, stream)
    return learner.fork(recipe.settings)


def _check_begun_alike(folder: RunFolder, stream: Stream, recipe: Recipe, seed: int) -> None:
    """Refuse a run that was begun otherwise; the message names what differs first."""
    config, out = folder.config(), folder.path
    if config.get("setting") == "whole":
        raise UserError(f"{out}: a run of --merged, not one that learns this stream part by part")
    for key, value in (("dataset", stream.name), ("seed", seed)):
        if config.get(key) != value:
            raise _begun_otherwise(out, key, config.get(key), value)
    wanted = recipe.settings.as_dict()
    try:  # a run from before a setting existed had its default
        stored = Settings.from_dict(config["settings"]).as_dict()
    except (AttributeError, KeyError, TypeError, UserError) as error:
        if is_no_damage(error):
            raise
        raise folder.misfit(error) from error
    for key, value in wanted.items():
        if stored.get(key) != value:
            raise _begun_otherwise(out, key, stored.get(key), value)


def _begun_otherwise(out: Path, key: str, stored: Any, wanted: Any) -> UserError:
    return UserError(
        f"{out}: the run there has {key}={stored!r}, not {wanted!r}; "
        "resume it as it was begun, or choose another folder"
    )


def _check_parts(folder: Path, learner: Learner, stream: Stream) -> None:
    """Refuse a learner whose parts are not those of the stream."""
    if not learner.num_parts:
        return
    graph = type(learner.trainer.graph).for_part(stream[0])
    for number, taken in enumerate(learner.trainer.taken):
        if not same_content(part_content(graph.add(stream[number])), part_content(taken)):
            raise UserError(
                f"{folder}: part {number} of the run there is not that of this stream; it was "
                "added by `learn`, or comes from other data or another --valid or --test"
            )

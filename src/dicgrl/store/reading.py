"""Reads the state of a learner from a stored run."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dicgrl.store.checkpoint import built_model
from dicgrl.store.content import changes_of
from dicgrl.store.released import STRATEGY
from dicgrl.store.state import LearnerState
from dicgrl.store.version import Source, chosen, lineage, not_kept
from dicgrl.tasks import task_of_model


def described(config: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `LearnerState` that a configuration gives.

    Raises:
        KeyError: Something is missing in the configuration.
    """
    return {
        "identity": config["identity"],
        "model_name": config["model"],
        "strategy_name": config["strategy"],
        "seed": config["seed"],
        "settings": config["settings"],
        "protocol": config.get("protocol", {}),
    }


def read_state(source: Source, device: torch.device, at: int | str | None) -> LearnerState:
    """Read a learner as it was at a version.

    Args:
        source: The stored run.
        device: Where the model and the strategy's tensors go.
        at: The version, or a tag; the newest unless given.

    Raises:
        DataError: A file is missing or damaged.
        UserError: There is no such version, or its model was not kept.
    """
    config, versions = source.config, source.versions()
    number = chosen(at, versions, source)
    names = source.names(number)
    # An earlier version lacks what was written since, without a version, too.
    edits = int(config.get("edits", 0)) if number == len(versions) else 0
    if not number:
        return LearnerState(**described(config), names=names, edits=edits)
    line = lineage(versions, number)
    stored = source.model(number)
    if stored is None:
        if number == len(versions):
            raise ValueError("no model beside the newest version")
        raise not_kept(number, source.models())
    kinds = [version.kind for version in line]
    contents = list(zip(kinds, source.contents(line), strict=True))
    tensors, kept = divided(stored.tensors)
    strategy = {name.removeprefix(STRATEGY): tensor.to(device) for name, tensor in kept.items()}
    return LearnerState(
        **described(config),
        names=names,
        history=changes_of(task_of_model(config["model"]).part_type, contents),
        model=built_model(stored.configuration, tensors, device),
        strategy=strategy,
        reports=[version.report for version in line],
        tests=[version.tests for version in line],
        before=[version.before for version in line],
        retention=[version.retention for version in line],
        first_answers=answers_of(line[0].answers),
        version=number,
        stamp=versions[number - 1].stamp,
        edits=edits,
    )


def divided(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Tensors of the model, and those of the strategy."""
    of_strategy = {name: tensor for name, tensor in tensors.items() if name.startswith(STRATEGY)}
    return {n: t for n, t in tensors.items() if n not in of_strategy}, of_strategy


def answers_of(signs: str | None) -> Tensor | None:
    """Whether each question of the first part was answered at first, bool [questions]."""
    return None if signs is None else torch.tensor([sign == "1" for sign in signs])

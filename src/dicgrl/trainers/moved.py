"""How far learning moves what was there before: rows of tables, or answers about nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import torch
from torch import Tensor

from dicgrl.graph.arrays import spread
from dicgrl.trainers.links import LinkTrainer
from dicgrl.trainers.nodes import NodeTrainer
from dicgrl.trainers.trainer import Trainer

MOST_ROWS = 20_000  # most rows of a table to compare, evenly spaced
Moved = Callable[[], dict[str, Any]]


@singledispatch
def stand(trainer: Trainer) -> Moved:
    """Record where old rows are, and return a function that says how far they have moved since.

    `stand.register` adds another kind of trainer.

    Args:
        trainer: The trainer, which has taken in a part but not learned it.

    Returns:
        A function that returns `rows`, how many were compared, and `mean`, the mean of
        |now - then| / |then|. For networks it returns `nodes`, the `mean` change of their class
        probabilities, and how many `changed` their class.
    """
    del trainer
    return dict


@stand.register
def _(trainer: LinkTrainer) -> Moved:
    table = trainer.model.tables()["entities"]
    old = min(trainer.old_rows()["entities"], len(table.rows))
    chosen = torch.from_numpy(spread(old, MOST_ROWS))
    before = table.rows[chosen.to(trainer.device)].clone()

    def moved() -> dict[str, Any]:
        if not len(before):
            return {}
        rows = trainer.model.tables()["entities"].rows[chosen.to(trainer.device)]
        share = (rows - before).norm(dim=1) / before.norm(dim=1).clamp_min(1e-12)
        return {"rows": len(share), "mean": share.double().mean().item()}

    return moved


@stand.register
def _(trainer: NodeTrainer) -> Moved:
    def probabilities(model: Any) -> Tensor:
        return trainer.scores_by(model).softmax(1)

    def moved() -> dict[str, Any]:
        model, part = trainer.model_before, trainer.part
        if model is None or part is None:
            return {}
        old = slice(0, part.new_nodes.start)
        then, now = probabilities(model)[old], probabilities(trainer.model)[old]
        if not len(then):
            return {}
        changed = int((then.argmax(1) != now.argmax(1)).sum())
        now = now[:, : then.shape[1]]  # probability that went to new classes counts as moved
        share = ((then - now).abs().sum(1) + (1 - now.sum(1))) / 2
        return {"nodes": len(then), "mean": share.double().mean().item(), "changed": changed}

    return moved

"""Which rows of a model may move, and how fast: only what arrived with the newest part, or all."""

from __future__ import annotations

import torch

from dicgrl.graph.arrays import ids_in
from dicgrl.trainers import Trainer


def freeze_old(trainer: Trainer) -> None:
    """Let only the rows that arrived with the newest part change.

    A model without rows, such as that of a network, has nothing to freeze.
    """
    if not trainer.has_rows:
        return
    tables = trainer.model.tables()
    for name, first in trainer.old_rows().items():
        table = tables[name]
        newcomers = torch.from_numpy(ids_in(range(first, len(table))))
        table.restrict(newcomers.to(trainer.device))
    trainer.model.requires_grad_(False)  # the scorer's own weights serve old triples as well


def slow_old(trainer: Trainer, pace: float) -> None:
    """Let everything change, rows of before the newest part at a multiple of the others' rate.

    A model without rows learns as it did.
    """
    if pace == 1 or not trainer.has_rows:
        return
    tables = trainer.model.tables()
    for name, first in trainer.old_rows().items():
        table = tables[name]
        paces = torch.ones(len(table), device=trainer.device)
        paces[:first] = pace
        table.slow(paces)


def unfreeze(trainer: Trainer) -> None:
    """Let everything change."""
    if not trainer.has_rows:
        return
    for table in trainer.model.tables().values():
        table.restrict(None)
    trainer.model.requires_grad_(True)

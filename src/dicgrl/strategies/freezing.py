"""Which rows of a model may move: only what arrived with the newest part, or everything."""

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


def unfreeze(trainer: Trainer) -> None:
    """Let everything change."""
    if not trainer.has_rows:
        return
    for table in trainer.model.tables().values():
        table.restrict(None)
    trainer.model.requires_grad_(True)

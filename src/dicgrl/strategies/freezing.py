"""Which rows of a model may move, and how fast: only those of the newest part, or all."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from dicgrl.graph.arrays import ids_in
from dicgrl.trainers import Trainer

_LEARNED = 100  # epochs after which old rows have settled; before, they learn faster


def pace_of(trainer: Trainer, changed: int, full: float = 1.0, power: float = 0.4) -> float:
    """How fast old rows learn for a change of a given size, as a multiple of the usual rate.

    Args:
        trainer: The trainer.
        changed: Number of examples that changed.
        full: Share of all examples from which on old rows learn as fast as new ones.
        power: How steeply the rate falls below that share.
    """
    share = changed / max(trainer.count("train"), 1) / full
    faster = math.sqrt(max(_LEARNED / trainer.schedule.epochs, 1.0))
    return min(float(share**power) * faster, 1.0)


def freeze_old(trainer: Trainer) -> None:
    """Let only the rows that arrived with the newest part change.

    A model without rows, such as that of a network, has nothing to freeze.
    """
    if not trainer.has_rows:
        return
    freeze_rows(trainer)
    trainer.model.requires_grad_(False)  # old triples use the scorer's own weights, too


def freeze_rows(trainer: Trainer) -> None:
    """Let no old row change; weights that are not rows keep learning."""
    tables = trainer.model.tables()
    for name, first in trainer.old_rows().items():
        table = tables[name]
        newcomers = torch.from_numpy(ids_in(range(first, len(table))))
        table.restrict(newcomers.to(trainer.device))


def slow_old(trainer: Trainer, pace: float) -> None:
    """Let everything change, old rows at a multiple of the rate of new ones.

    A model without rows is not affected.
    """
    if pace == 1 or not trainer.has_rows:
        return
    tables = trainer.model.tables()
    for name, first in trainer.old_rows().items():
        table = tables[name]
        paces = torch.ones(len(table), device=trainer.device)
        paces[:first] = pace
        table.slow(paces)


def rest_old(trainer: Trainer, pace: float, examples: Tensor, idle: float = 0.0) -> None:
    """Let the rows that examples mention change, old ones more slowly, and only once woken.

    A row that is only compared with, as a negative, has next to no gradient. But Adam divides by
    the size of the gradient, so that it would move as far as any other row. If it does not move at
    all, however, it cannot make room for new rows. Rows that no example mentions stay the same bit
    for bit. If a trainer does not know which rows are mentioned, all old rows learn slowly.

    Args:
        trainer: The trainer, which has taken in the newest part.
        pace: Learning rate of old rows as a multiple of that of new ones.
        examples: All examples that will be learned, on the model's device.
        idle: Learning rate of old rows in steps that only compare with them, as a share of `pace`.
    """
    spoken, tables = trainer.rows_in(examples), trainer.model.tables()
    if not spoken:
        slow_old(trainer, pace)
        return
    for name, first in trainer.old_rows().items():
        rows = torch.unique(spoken[name])
        old = rows[rows < first]
        new = torch.arange(first, len(tables[name]), device=old.device)
        paces = torch.ones(len(old) + len(new), device=old.device)
        paces[: len(old)] = pace
        tables[name].restrict(torch.cat([old, new]), paces)
        tables[name].rest(old, idle)


def wake(trainer: Trainer, examples: Tensor) -> None:
    """Of the resting rows, wake those that examples mention, and no others."""
    tables = trainer.model.tables()
    for name, rows in trainer.rows_in(examples).items():
        tables[name].wake(rows)


def slow_others(trainer: Trainer, rows: Mapping[str, Tensor], pace: float) -> None:
    """Let everything change, but all rows except the given ones at a multiple of the usual rate.

    Args:
        trainer: Holds the model; a model without rows is not affected.
        rows: Rows that learn at the usual rate, by name of their table.
        pace: Learning rate of the others as a multiple of the usual one, above 0.
    """
    for name, table in trainer.model.tables().items():
        paces = torch.full((len(table),), pace, device=trainer.device)
        paces[rows[name]] = 1.0
        table.slow(paces)


def unfreeze(trainer: Trainer) -> None:
    """Let everything change."""
    if not trainer.has_rows:
        return
    for table in trainer.model.tables().values():
        table.restrict(None)
    trainer.model.requires_grad_(True)

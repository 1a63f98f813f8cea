"""Which rows of a model may move, and how fast: only what arrived with the newest part, or all."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from dicgrl.graph.arrays import ids_in
from dicgrl.trainers import Trainer

_LEARNED = 100  # epochs after which old rows have found their place; until then they are faster


def pace_of(trainer: Trainer, changed: int, full: float = 1.0, power: float = 0.4) -> float:
    """How fast old rows learn for a change of a given size, as a multiple of the usual rate.

    Args:
        trainer: Knows how many examples there are.
        changed: Examples that changed.
        full: The share of all from which on they learn as fast as new ones.
        power: How steeply they are slower below it.
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
    trainer.model.requires_grad_(False)  # the scorer's own weights serve old triples as well


def freeze_rows(trainer: Trainer) -> None:
    """Let no old row change; weights that are not rows go on learning."""
    tables = trainer.model.tables()
    for name, first in trainer.old_rows().items():
        table = tables[name]
        newcomers = torch.from_numpy(ids_in(range(first, len(table))))
        table.restrict(newcomers.to(trainer.device))


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


def rest_old(trainer: Trainer, pace: float, examples: Tensor, idle: float = 0.0) -> None:
    """Let what examples speak of change; older rows at a multiple of the others' rate, when woken.

    A row that is only compared with has next to no gradient, and Adam, which divides by its size,
    would move it as far as any other; without moving at all it makes room for nobody. Rows that
    none of the examples speaks of keep their bits. Where a trainer does not know which rows these
    are, all old rows learn slowly.

    Args:
        trainer: Has taken in the newest part.
        pace: The multiple.
        examples: All that will be learned, on the model's device.
        idle: How fast old rows move all the same where they are only compared with, as a share of
            their pace.
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
    """Of the rows that rest let those change that examples speak of, and no others."""
    tables = trainer.model.tables()
    for name, rows in trainer.rows_in(examples).items():
        tables[name].wake(rows)


def slow_others(trainer: Trainer, rows: Mapping[str, Tensor], pace: float) -> None:
    """Let everything change, all but some rows at a multiple of these rows' rate.

    Args:
        trainer: Holds the model; one without rows learns as it did.
        rows: Rows of tables, by name, that learn at the usual rate.
        pace: How fast the others learn, above 0.
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

"""Answers that take new facts into account before any of them is learned.

New entities start from their neighbours (`strategies.start`); the rest of the model stays as it is.
"""

from __future__ import annotations

from functools import singledispatch

from dicgrl.graph import KnowledgePart
from dicgrl.graph.change import Change
from dicgrl.strategies.start import start_from_neighbours
from dicgrl.trainers import LinkTrainer, Trainer
from dicgrl.trainers.fork import fork_links


@singledispatch
def foreseen(trainer: Trainer, change: Change) -> Trainer | None:
    """A trainer whose graph has a change that its model has not learned; None if not supported.

    The given trainer must not be used while the returned one is.

    Args:
        trainer: The current trainer.
        change: Facts that arrive, that are taken back, or both.

    Raises:
        UserError: They do not fit the graph.
    """
    del trainer, change
    return None


@foreseen.register
def _(trainer: LinkTrainer, change: Change) -> LinkTrainer:
    part = change.part if isinstance(change.part, KnowledgePart) else None
    fork = fork_links(trainer, part)
    fork.undergo(change)
    if change.part is not None:
        start_from_neighbours(fork)
    return fork

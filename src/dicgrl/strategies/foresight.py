"""Answers that take new facts into account before any of them is learned.

Newcomers start from their neighbours, as with every strategy that lets them
(`strategies.start`); all else of the model stays as it is.
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
    """A trainer that knows a change which its model has not learned; None for kinds without one.

    While it is used, the trainer must rest.

    Args:
        trainer: What there is.
        change: Facts that arrive, that leave, or both.

    Raises:
        UserError: They do not fit.
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

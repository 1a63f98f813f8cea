"""Training sets for several ranks: the strategy's own, with gradients sent to their owners."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from typing_extensions import override

from dicgrl.parallel.group import Group
from dicgrl.training import TrainingSet
from dicgrl.training.stepper import Objective


class Together(TrainingSet):
    """A strategy's training set, learned by several ranks.

    Args:
        alone: The training set for a single process.
        settle: Sends the gradients of a step to their owners.
        group: The ranks.
    """

    def __init__(self, alone: TrainingSet, settle: Callable[[], None], group: Group) -> None:
        super().__init__(alone.objective, alone.examples, alone.weight)
        self._alone, self._settle, self._group = alone, settle, group

    @override
    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterable[tuple[Objective, torch.Tensor, torch.Tensor]]:
        return self._alone.batches(epoch, size, generator)

    @property
    @override
    def capturable(self) -> bool:
        return False  # a step waits for other ranks

    @override
    def old_in_epoch(self) -> int:
        return self._alone.old_in_epoch()

    @override
    def adjust(self) -> None:
        self._settle()
        self._alone.adjust()

    @override
    def end_epoch(self, epoch: int) -> None:
        self._alone.end_epoch(epoch)

    @override
    def largest(self, found: float) -> float:
        values = torch.tensor([found], dtype=torch.float64).nan_to_num(float("inf"))
        return float(self._group.largest(values))

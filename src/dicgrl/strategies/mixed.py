"""Training sets of several groups of examples whose batches take turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.trainers import ExampleGroup
from dicgrl.training import TrainingSet
from dicgrl.training.loop import shuffled
from dicgrl.training.stepper import Objective


class MixedSet(TrainingSet):
    """Groups of examples whose batches take turns, evenly spread over an epoch.

    With full-batch steps, each step learns from the examples of all groups.

    Args:
        groups: The groups; the first one has the new examples.
        at_once: Whether steps are full-batch.
        old: How many examples of the first group are old; those of other groups all are.
    """

    def __init__(self, *groups: ExampleGroup, at_once: bool, old: int = 0) -> None:
        super().__init__(*groups[0][:3])
        self._at_once, self._old_in_first = at_once, old
        self.teach(*groups)

    def teach(self, *groups: ExampleGroup) -> None:
        """Learn these groups from now on; the first one has the new examples."""
        self._old = self._old_in_first
        for group in groups[1:]:
            count = len(group.examples)
            self._old += min(count, group.most or count) if not self._at_once else count
        self.groups = [group for group in groups if len(group.examples)]
        if self._at_once and self.groups:
            self.groups = [_all_of(self.groups)]

    @property
    @override
    def capturable(self) -> bool:
        return True  # each objective does the same in every step; only the turns differ

    @override
    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterable[tuple[Objective, Tensor, Tensor]]:
        del epoch
        if self._at_once:
            for group in self.groups:
                yield group.objective, group.examples, group.weight
            return
        turns = []
        for group in self.groups:
            batches = shuffled(len(group.examples), size, generator, group.most)
            turns += [((i + 0.5) / len(batches), group, b) for i, b in enumerate(batches)]
        for _, group, chosen in sorted(turns, key=lambda turn: turn[0]):
            yield group.objective, group.examples[chosen], group.weight[chosen]


def _all_of(groups: Sequence[ExampleGroup]) -> ExampleGroup:
    """Merge several groups into one, whose loss is the weighted mean over all examples."""
    objectives, examples, weights, _ = zip(*groups, strict=True)
    sizes = [len(each) for each in examples]

    def objective(examples: Tensor, weight: Tensor) -> Tensor:
        split = zip(
            objectives, torch.split(examples, sizes), torch.split(weight, sizes), strict=True
        )
        losses = [of_group(*given) * given[1].sum() for of_group, *given in split]
        return torch.stack(losses).sum() / weight.sum().clamp(min=1e-12)

    return ExampleGroup(objective, torch.cat(examples), torch.cat(weights))

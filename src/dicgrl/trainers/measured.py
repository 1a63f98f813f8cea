"""Test sets of parts, measured: all of them, or a sample where there are many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dicgrl.evaluation.continual import Tested
from dicgrl.evaluation.sample import sample_of, sample_sizes
from dicgrl.trainers.trainer import Trainer


@dataclass(frozen=True, slots=True)
class Measured:
    """What a model finds on the test set of a part.

    Attributes:
        part: Number of the part.
        size: Examples of the test set.
        asked: How many of them were measured.
        metrics: The metrics.
        answered: For each question whether it was answered, as `Trainer.outcome` gives it.
    """

    part: int
    size: int
    asked: int
    metrics: dict[str, float]
    answered: Tensor

    def tested(self) -> Tested:
        """The entry of the test set in the results; a sample is named as one."""
        sampled = {"sampled": self.asked} if self.asked < self.size else {}
        return {"part": self.part, "count": self.size, **sampled, **self.metrics}

    def retained(self, first: Tensor | None) -> float | None:
        """The share of what was answered at first that still is.

        Questions that only one of the two asked are left out.

        Args:
            first: `answered` of the same test set or of a sample of it, at first.
        """
        if first is None or not len(self.answered):
            return None
        each = len(self.answered) // self.asked
        was_right = torch.zeros((each, self.size), dtype=torch.bool)
        was_right[:, self._positions(len(first) // each)] = first.view(each, -1)
        counts = was_right[:, self._positions(self.asked)]
        still = self.answered.view(each, -1)[counts]
        return still.double().mean().item() if len(still) else None

    def _positions(self, count: int) -> Tensor:
        return torch.from_numpy(sample_of(self.part, self.size, count))


def measure_tests(
    trainer: Trainer,
    at_most: int = 0,
    *,
    newest_only: bool = False,
    split: str = "test",
    sizes: Sequence[int] | None = None,
) -> list[Measured]:
    """Measure a model on the test sets of all parts so far; those without one are left out.

    Args:
        trainer: Holds the model and the graph.
        at_most: Examples of all parts together, where measuring takes the longer the more there
            are; 0 for all.
        newest_only: Measure what would be measured of the newest part, and no more.
        split: Which sets: those for testing, or for validation (`valid`).
        sizes: Examples of each part to measure, at most; what `at_most` says unless given.
    """
    counts = [trainer.count(split, part, part + 1) for part in range(trainer.num_parts)]
    asked = sample_sizes(counts, at_most if trainer.asks_one_by_one else 0)
    if sizes is not None and trainer.asks_one_by_one:
        asked = [min(pair) for pair in zip(counts, sizes, strict=False)]
    parts = [part for part, count in enumerate(counts) if count]
    if newest_only:
        parts = [part for part in parts if part == trainer.newest]
    sets = []
    for part in parts:
        examples = trainer.examples(split, part, part + 1)
        if asked[part] < counts[part]:
            chosen = torch.from_numpy(sample_of(part, counts[part], asked[part]))
            examples = examples[chosen.to(examples.device)]
        sets.append(examples)
    found = []
    for part, (metrics, answered) in zip(
        parts, trainer.outcomes(sets) if sets else (), strict=True
    ):
        kept = {name: value for name, value in metrics.items() if name != "loss"}
        found.append(Measured(part, counts[part], asked[part], kept, answered.cpu()))
    return found

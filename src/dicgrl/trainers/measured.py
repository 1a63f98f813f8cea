"""Measure a model on the test sets of all parts, or on a sample of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dicgrl.evaluation.continual import Tested
from dicgrl.evaluation.sample import sample_of, sample_sizes
from dicgrl.trainers.snapshots import check_protocol, snapshot_metrics
from dicgrl.trainers.trainer import Trainer


@dataclass(frozen=True, slots=True)
class Measured:
    """Results of a model on the test set of a part.

    Attributes:
        part: Number of the part.
        size: Number of examples in the test set.
        asked: How many of them were measured.
        metrics: The metrics.
        answered: For each question whether it was answered, as returned by `Trainer.outcome`.
    """

    part: int
    size: int
    asked: int
    metrics: dict[str, float]
    answered: Tensor

    def tested(self) -> Tested:
        """The entry of the test set in the results; says if it was a sample."""
        sampled = {"sampled": self.asked} if self.asked < self.size else {}
        return {"part": self.part, "count": self.size, **sampled, **self.metrics}

    def retained(self, first: Tensor | None) -> float | None:
        """The share of the questions answered at first that are still answered.

        Questions that were only asked once are left out.

        Args:
            first: `answered` at first, of the same test set or of a sample of it.
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
    protocol: str = "seen",
) -> list[Measured]:
    """Measure a model on the test sets of all parts so far; parts without one are left out.

    Args:
        trainer: Holds the model and the graph.
        at_most: How many examples of all parts together, if measuring takes longer for more; 0 for
            all.
        newest_only: Only measure the newest part, with the share of `at_most` that it would get.
        split: Which sets to use: those for testing, or for validation (`valid`).
        sizes: How many examples of each part to measure at most; by default as `at_most` says.
        protocol: seen, or snapshot, which is reported in addition (`dicgrl.trainers.snapshots`).

    Raises:
        UserError: There is no such protocol, or it does not apply to the task.
    """
    check_protocol(protocol, type(trainer))
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
    outcomes = trainer.outcomes(sets) if sets else []
    if protocol == "snapshot":
        besides = snapshot_metrics(trainer, parts, sets)
    else:
        besides = [{} for _ in parts]
    found = []
    for part, (metrics, answered), more in zip(parts, outcomes, besides, strict=True):
        kept = {name: value for name, value in metrics.items() if name != "loss"} | more
        found.append(Measured(part, counts[part], asked[part], kept, answered.cpu()))
    return found

"""Repair: what a model has learned from facts that were taken back is unlearned near them.

Every pass learns examples around what changed and others of everything, drawn anew, as `fresh`
does; only the facts that are gone are no longer among them. How much is processed follows the facts
that are gone, and never exceeds a share of what retraining would process. It is the same for all
strategies, models and tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.graph.arrays import IntArray
from dicgrl.strategies.effort import usual_positives
from dicgrl.trainers import Trainer
from dicgrl.training import FitReport, TrainingSet
from dicgrl.training.loop import Monitor
from dicgrl.training.stepper import Objective

_PASSES = 10
_STEPS = 64  # at least: a few facts are not unlearned in three
_SMALLEST = 32  # of a batch
_NEAR = 0.5  # share of a pass that is drawn around what changed
_NODE_BATCH = 512


def repair(trainer: Trainer, monitor: Monitor | None = None) -> tuple[FitReport | None, int]:
    """Make good what the newest change left.

    Returns:
        What training did, None where there was nothing to do, and how many different examples it
        learned again.
    """
    change = trainer.history[-1]
    near = trainer.around(change)
    changed = max((len(rows) for rows in change.arrays.values()), default=0)
    total = usual_positives(trainer, changed)
    if not len(near) or not total:
        return None, 0
    batch = trainer.schedule.batch or _NODE_BATCH
    batch = max(min(batch, total // _STEPS), min(batch, _SMALLEST))
    training_set = Repaired(trainer, near, max(total // _PASSES, 1), batch)
    schedule = replace(trainer.schedule, epochs=_PASSES, batch=batch, decay=1.0, halve_every=0)
    return trainer.fit(training_set, monitor, schedule), training_set.replayed


class Repaired(TrainingSet):
    """Examples around a change and others of everything, both drawn anew in each pass.

    Args:
        trainer: The change has happened to it.
        near: Positions of the examples around it.
        draws: Examples of each pass.
        batch: Examples of a step.
    """

    def __init__(self, trainer: Trainer, near: IntArray, draws: int, batch: int) -> None:
        known = trainer.count("train")
        self._near = min(round(_NEAR * draws), len(near))
        self._far = min(draws - self._near, known)
        most = min(_PASSES * self._near, len(near))
        close = trainer.choices.choice(near, most, replace=False)
        chosen = np.concatenate([close, trainer.draw(_PASSES * self._far)])
        self._split, self.replayed = len(close), len(chosen)
        self._capturable = trainer.has_rows
        examples = trainer.old_examples(chosen)
        objective = trainer.objective_around(examples, batch)
        super().__init__(objective, examples, trainer.weights(examples), self._near + self._far)

    @property
    @override
    def capturable(self) -> bool:
        return self._capturable

    @override
    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterable[tuple[Objective, Tensor, Tensor]]:
        del epoch
        device = generator.device
        near = torch.randperm(self._split, generator=generator, device=device)[: self._near]
        far = torch.randperm(len(self.examples) - self._split, generator=generator, device=device)
        chosen = torch.cat([near, far[: self._far] + self._split])
        order = torch.randperm(len(chosen), generator=generator, device=device)
        for some in chosen[order].tensor_split(max(-(-len(chosen) // size), 1)):
            yield self.objective, self.examples[some], self.weight[some]

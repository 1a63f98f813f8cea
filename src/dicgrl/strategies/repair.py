"""Repair: unlearn facts that were taken back, and relearn what suffered near them.

Every pass learns examples from around the change and others from everything, newly drawn as in
`fresh`. The removed facts are no longer among them, but a model that knows them by heart would keep
them for a long time. So the first passes also push each of them down, in the same steps, until its
score is no higher than that of comparable triples which were never known (`Trainer.unlearning`). It
is not pushed further: a fact that was taken back is unknown, not false.

Pushing moves rows that right facts also use, and the wrong facts may have displaced right ones
before. So a pass draws most of the examples around the change by need: by how far their score has
fallen since the repair began, and how far it was below the usual then (`Trainer.standing`). That
takes one score each, without negatives.

The number of examples processed depends on how many facts are removed, and never exceeds a share of
what retraining would process. All of this is the same for all strategies, models and tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.graph.arrays import IntArray
from dicgrl.strategies.effort import repair_positives
from dicgrl.strategies.freezing import pace_of, slow_others, unfreeze
from dicgrl.trainers import Trainer
from dicgrl.training import FitReport, TrainingSet
from dicgrl.training.loop import Monitor
from dicgrl.training.stepper import Objective

_PASSES = 20
_EFFORT = 2.0  # times that of a part of as many facts, as unlearning is slower than learning
_PUSHES = 8  # most passes that push removed facts down
_PUSHED = 0.12  # largest share of the processed examples that may be pushes
_PUSH = 1.5  # weight of a push; an example that is learned has 1
_RATE = 1.4  # times the usual learning rate
_STEPS = 64  # fewest steps: a few facts are not unlearned in three
_SMALLEST = 32  # smallest batch
_NEAR = 0.9  # share of a pass that is drawn from around the change
_NEEDY = 0.75  # share of these that is drawn by need
_LOW = 1.0  # weight of a score below the usual; one that has fallen as far has 1
_LOOKED = 4  # most examples whose need is computed, as a multiple of those drawn there
_NODE_BATCH = 512  # nodes of a step unless the settings say


class Repair(NamedTuple):
    """What a repair did.

    Attributes:
        fits: Reports of the training runs.
        replayed: Number of examples that were learned again, each counted once.
        pushed: Number of pushes; a removed example counts each time that it was pushed down.
    """

    fits: list[FitReport]
    replayed: int = 0
    pushed: int = 0


class Gone(NamedTuple):
    """Examples that were taken back.

    Attributes:
        examples: The examples.
        pushes: How many of the first passes push them down.
    """

    examples: Tensor
    pushes: int


def repair(trainer: Trainer, monitor: Monitor | None = None) -> Repair:
    """Adapt a model to the newest correction."""
    change = trainer.history[-1]
    near, gone = trainer.around(change), trainer.gone(change)
    changed = max((len(rows) for rows in change.arrays.values()), default=0)
    if not len(near) or not changed:
        return Repair([])
    least = min(_STEPS * _SMALLEST, repair_positives(trainer, trainer.count("train"), 1.0))
    total = max(repair_positives(trainer, changed, _EFFORT), least)
    pushes = max(min(_PUSHES, round(_PUSHED * total / max(len(gone), 1))), 1)
    total = max(total - pushes * len(gone), _PASSES)
    usual = trainer.schedule.batch or _NODE_BATCH
    batch = max(min(usual // 2, total // _STEPS), min(usual, _SMALLEST))
    training_set = Repaired(trainer, near, Gone(gone, pushes), total // _PASSES, batch)
    schedule = replace(
        trainer.schedule,
        epochs=_PASSES,
        batch=batch,
        lr=_RATE * trainer.schedule.lr,
        decay=1.0,
        halve_every=0,
    )
    slow_others(trainer, trainer.rows_of(change), pace_of(trainer, changed))
    try:
        fit = trainer.fit(training_set, monitor, schedule)
    finally:
        unfreeze(trainer)
    return Repair([fit], training_set.replayed, pushes * len(gone))


class Repaired(TrainingSet):
    """Examples from around a change and others from everything, newly drawn in each pass.

    Args:
        trainer: The trainer, with the change applied to its graph.
        near: Positions of the examples around the change.
        gone: The removed examples.
        draws: Number of examples in a pass.
        batch: Number of examples in a step.
    """

    def __init__(
        self, trainer: Trainer, near: IntArray, gone: Gone, draws: int, batch: int
    ) -> None:
        self._near = min(round(_NEAR * draws), len(near))
        self._far = min(draws - self._near, trainer.count("train"))
        self._gone, self._pushes = len(gone.examples), gone.pushes
        most = min(_PASSES * self._near * (_LOOKED if self._gone else 1), len(near))
        close = trainer.choices.choice(near, most, replace=False)
        self._chosen = np.concatenate([close, trainer.draw(_PASSES * self._far)])
        self._close, self._seen = len(close), np.zeros(len(self._chosen), np.bool_)
        self._push = trainer.unlearning(gone.examples) if self._gone else None
        self._capturable = trainer.has_rows and not self._gone
        self._trainer, examples = trainer, trainer.old_examples(self._chosen)
        self._before = trainer.standing(examples[: self._close]) if self._gone else None
        objective = trainer.objective_around(examples, batch)
        super().__init__(objective, examples, trainer.weights(examples), self._near + self._far)

    @property
    def replayed(self) -> int:
        """Number of different examples that were drawn so far."""
        return len(np.unique(self._chosen[self._seen]))

    @property
    @override
    def capturable(self) -> bool:
        return self._capturable

    @override
    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterable[tuple[Objective, Tensor, Tensor]]:
        near = self._around(generator)
        far = _drawn(len(self.examples) - self._close, self._far, generator) + self._close
        chosen = torch.cat([near, far])
        self._seen[chosen.cpu().numpy()] = True
        chosen = chosen[_drawn(len(chosen), len(chosen), generator)]
        # All steps have the same size: a few examples in a last one would count too much.
        steps = chosen.tensor_split(max(-(-len(chosen) // size), 1))
        gone = _drawn(self._gone, self._gone, generator).tensor_split(len(steps))
        for some, pushed in zip(steps, gone, strict=True):
            objective = self.objective
            if epoch <= self._pushes and len(pushed) and self._push is not None:
                objective = _both(objective, self._push, pushed)
            yield objective, self.examples[some], self.weight[some]

    def _around(self, generator: torch.Generator) -> Tensor:
        """Draw examples from around the change, most of them by need."""
        evenly = _drawn(self._close, self._near, generator)
        now = None
        if self._before is not None:
            now = self._trainer.standing(self.examples[: self._close])
        if self._before is None or now is None:
            return evenly
        need = (self._before - now).relu() + _LOW * (self._before.median() - now).relu()
        chosen = round(_NEEDY * self._near)
        need[evenly[chosen:]] = 0  # these are already chosen
        need += 1e-6 * need.max() + torch.finfo(need.dtype).tiny
        # Weighted sampling without replacement by exponential keys (Efraimidis and Spirakis).
        times = torch.rand(len(need), generator=generator, device=need.device).log() / -need
        return torch.cat([times.topk(chosen, largest=False).indices, evenly[chosen:]])


def _drawn(count: int, most: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(count, generator=generator, device=generator.device)[:most]


def _both(learn: Objective, push: Objective, rows: Tensor) -> Objective:
    """The loss of a batch, plus how far removed examples stand out."""

    def objective(examples: Tensor, weight: Tensor) -> Tensor:
        pushed = push(rows, torch.ones(len(rows), device=rows.device))
        return learn(examples, weight) + _PUSH * len(rows) / len(examples) * pushed

    return objective

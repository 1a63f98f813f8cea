"""DiCGRL: a new part activates related old examples and updates only their common components.

As published (`arrive_epochs=0`, `start=random`, `shield=0`, `budget=all`): in every epoch, batches
of new and of activated examples alternate. Activated examples are routed by the attention from
before the part, and of old rows only the common components may change. A full-batch step of a
network learns from both kinds at once.

Two additions bound the cost and the damage. First, new rows may start from what the graph says
about them and then arrive alone (`arrival.py`), behind a shield. The shield may be what the part
activates, so that one budget serves both. Second, the published update runs within its budget: old
rows learn the more slowly, the more is already known about them (`pace`), and may only move so far
(`max_drift`). In a network nothing arrives alone; there the shield makes old nodes keep their class
probabilities during the update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.common.options import option
from dicgrl.graph.arrays import distinct
from dicgrl.strategies.activator import ActivatedExamples
from dicgrl.strategies.arrival import Arriving, ArrivingSettings, PartAtHand
from dicgrl.strategies.base import LaterSettings, Learned
from dicgrl.strategies.freezing import unfreeze
from dicgrl.strategies.mixed import MixedSet
from dicgrl.trainers import ExampleGroup, Trainer
from dicgrl.training.loop import Monitor
from dicgrl.training.stepper import Objective


@dataclass(frozen=True)
class DiCGRLSettings(ArrivingSettings, LaterSettings):
    """Settings of dicgrl."""

    refresh: int = option(
        10,
        "Epochs after which dicgrl activates again, with the rest of its budget; 0 for never.",
        least=0,
    )
    guard: bool = option(
        False,
        "Whether the shield also stays up during the update that follows the arrival.",
        needs="rows",
    )
    arrive_last: bool = option(
        False,
        "Whether new rows learn alone after the update of old ones instead of before.",
        needs="rows",
    )
    pace: float = option(
        0.0,
        "Learning rate of an old row in the update, as a multiple of the share of its facts that "
        "is new, 0.02 to 1; 0 lets old rows learn like new ones.",
        least=0,
        needs="rows",
    )
    max_drift: float = option(
        0.0,
        "Farthest that an old component may move, as a share of its length; 0 for no limit.",
        least=0,
        needs="rows",
    )
    average: bool = option(
        False,
        "Whether shared weights (those of a network, convkb's filters) are averaged with those "
        "before the part, weighted by the training examples behind each.",
    )


class DiCGRL(Arriving, name="dicgrl"):
    """Activates related old examples and updates their common components (the paper's method)."""

    Settings = DiCGRLSettings
    settings: DiCGRLSettings

    @override
    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        settings, part = self.settings, self.part_at_hand(trainer, monitor)
        activator, before, learned = part.activator, part.before, part.learned
        arrives = settings.arrive_epochs > 0 and self.brings_rows(trainer)
        updates = settings.later_epochs > 0 or not (arrives and activator.is_about_newcomers_only())
        stages: list[Callable[[PartAtHand], None]] = [self.arrive] if arrives else []
        if updates:
            stages.insert(0 if settings.arrive_last else len(stages), self._update)
        for stage in stages:
            try:
                stage(part)
            finally:
                unfreeze(trainer)
        learned.replayed = len(part.replayed)
        if settings.average:
            before.average(activator.old_weights())
            validate = self.validator(trainer)
            if validate is not None and learned.fits:
                learned.fits[-1].best = validate()  # for the averaged weights, which are kept
        drift = before.drift() if trainer.has_rows else activator.drift()
        if drift:
            learned.details["drift"] = drift
        return learned

    def _update(self, part: PartAtHand) -> None:
        """Let new examples, and the old ones that they activate, change what they share."""
        settings, trainer = self.settings, part.trainer
        schedule = settings.later(trainer.schedule)
        if not settings.later_epochs and settings.arrive_epochs:
            schedule = replace(schedule, epochs=settings.arrive_epochs)
        activated = self.activated(part)
        if not len(part.new.examples) and not len(activated.examples):
            return  # nothing to learn, and so nothing to shield from
        if not trainer.has_rows:  # without an arrival the shield is not up yet
            self.raise_shield(part)
        guards = part.shield if settings.guard or not trainer.has_rows else []
        training_set = _Alternating(settings, part, activated, guards)
        part.learned.fits.append(self.fit(trainer, training_set, part.monitor, schedule))
        part.learned.candidates = training_set.candidates
        part.learned.activated = training_set.activated
        part.replayed = distinct(part.replayed, training_set.used)


class _Alternating(MixedSet):
    """New examples and the old ones that they activate, chosen again every few epochs."""

    def __init__(
        self,
        settings: DiCGRLSettings,
        part: PartAtHand,
        activated: ActivatedExamples,
        guards: list[ExampleGroup],
    ) -> None:
        super().__init__(part.new, at_once=part.trainer.at_once)
        self._settings, self._part, self._guards = settings, part, guards
        self._budget = settings.allowed(part.trainer)
        self.candidates = self.activated = 0
        self.used = np.empty(0, np.int64)
        self._replay(activated)  # now, as copies of what may change are taken before epoch 1

    def _replay(self, activated: ActivatedExamples) -> None:
        activator = self._part.activator
        activator.unfreeze_concerned(activated)
        self._part.before.cover()
        objective = activator.objective(activated.examples)
        old = ExampleGroup(objective, activated.examples, activated.weight)
        self.teach(self._part.new, old, *self._guards)
        self.candidates = max(self.candidates, activated.candidates)
        self.activated = max(self.activated, activated.activated)
        self.used = distinct(self.used, activated.positions)

    @override
    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterable[tuple[Objective, Tensor, Tensor]]:
        every = self._settings.refresh
        if epoch > 1 and every and (epoch - 1) % every == 0:
            self._replay(self._part.activator.activate(self._budget, self.used))
        return super().batches(epoch, size, generator)

    @override
    def end_epoch(self, epoch: int) -> None:
        del epoch
        if self._settings.max_drift:
            self._part.before.bound(self._settings.max_drift)

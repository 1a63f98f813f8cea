"""DiCGRL: a new part activates related old examples and updates only their common components.

As published (`arrive_epochs=0`, `start=random`, `shield=0`, `budget=all`): in every epoch batches
of new and of activated examples alternate; activated ones are routed by the attention before the
part, and of old rows only the common components may change. Where a step passes a whole network,
it learns from both.

Two additions make it bounded. New rows may start from what the graph says about them and first
learn alone, while all old rows are frozen (`arrive_epochs`). Meanwhile a shield protects old
answers from newcomers: some old examples are compared with the new entities only, which teaches
the newcomers to keep out of places that are taken, behind a given rank in each question
(`shield_rank`); they may be those that the part activates (`shield=activated`), so that one budget
serves both. Then the published step runs within its budget, old rows learn the more slowly the more
is known of them already (`pace`), and may move only so far (`max_drift`). In a network nothing
arrives alone: there the shield holds old nodes to their class probabilities during that step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.common.options import option
from dicgrl.graph.arrays import IntArray, distinct
from dicgrl.strategies.activator import EVEN, ActivatedExamples, Activator, activator_of
from dicgrl.strategies.base import LaterSettings, Learned, Strategy
from dicgrl.strategies.before import Before
from dicgrl.strategies.budget import BudgetSettings, amount_or
from dicgrl.strategies.freezing import freeze_old, unfreeze
from dicgrl.strategies.mixed import MixedSet
from dicgrl.trainers import ExampleGroup, Trainer
from dicgrl.training.loop import Monitor
from dicgrl.training.stepper import Objective

ACTIVATED = "activated"  # a shield of what the part activates


@dataclass(frozen=True)
class DiCGRLSettings(BudgetSettings, LaterSettings):
    """Settings of dicgrl."""

    orders: int = option(
        2,
        "Orders of neighbours that dicgrl activates, 1 or 2.",
        choices=(1, 2),
        needs="components",
    )
    weight1: float = option(0.5, "Weight of activated neighbours of order 1.", least=0)
    weight2: float = option(0.25, "Weight of activated neighbours of order 2.", least=0)
    refresh: int = option(
        10,
        "Epochs after which dicgrl activates again, with what is left of its budget; 0 for never.",
        least=0,
    )
    fan: int = option(0, "Old neighbours looked at per node; 0 for all.", least=0)
    selection: str = option(
        "top",
        "How dicgrl fills its budget: top (highest merit), sample (drawn by merit) or even (drawn "
        "evenly from the whole history; what may change is still what the part activates).",
        choices=("top", "sample", EVEN),
    )
    arrive_epochs: int = option(
        0,
        "Epochs in which only new rows learn, before old ones may change; 0 for none.",
        least=0,
        needs="rows",
    )
    shield: str = option(
        "0",
        "Old examples that protect old answers from newcomers in that time, like budget; or "
        "activated, for those that the part activates within budget, which an update then "
        "replays. In a network they are nodes, labelled or not, that keep the class probabilities "
        "of the previous model while the part is learned.",
        check=amount_or(ACTIVATED),
        numbers=True,
    )
    shield_rank: int = option(
        0,
        "Rank among old entities that newcomers are kept behind in the questions of the shield, "
        "estimated from a sample; 0 keeps them behind the margin of the loss, whatever else "
        "answers. It counts where there is a shield.",
        least=0,
        needs="rows",
    )
    guard: bool = option(
        False,
        "Whether the shield stays while old components change after the arrival.",
        needs="rows",
    )
    arrive_last: bool = option(
        False,
        "Whether new rows learn alone after the change of old ones, not before.",
        needs="rows",
    )
    pace: float = option(
        0.0,
        "Learning rate of old rows in the update as a multiple of the share of what is known of "
        "them that is new, 0.02 to 1; 0 lets them learn like new ones.",
        least=0,
        needs="rows",
    )
    max_drift: float = option(
        0.0,
        "Farthest that an old component may move, as a share of its length; 0 for no bound.",
        least=0,
        needs="rows",
    )
    average: bool = option(
        False,
        "Whether the weights that all share (a network's, the filters of convkb) are averaged with "
        "those before the part, by the training examples behind each.",
    )


class DiCGRL(Strategy, name="dicgrl"):
    """Activates related old examples and updates their common components (the paper's method)."""

    Settings = DiCGRLSettings
    settings: DiCGRLSettings
    divided = True
    starts_from_neighbours = True

    @override
    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        settings, learned = self.settings, Learned()
        activator = activator_of(trainer, settings)
        before = Before(trainer)
        arrives = settings.arrive_epochs > 0 and any(
            len(trainer.model.tables()[name]) > old for name, old in trainer.old_rows().items()
        )
        updates = settings.later_epochs > 0 or not (arrives and activator.is_about_newcomers_only())
        rows = trainer.examples("train", trainer.newest)
        weight = torch.ones(len(rows), device=rows.device)
        new = ExampleGroup(trainer.objective(rows), rows, weight)
        part = _Part(trainer, activator, new, before, learned, monitor)
        stages: list[Callable[[_Part], None]] = [self._arrive] if arrives else []
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
                learned.fits[-1].best = validate()  # of the weights that are kept
        drift = before.drift() if trainer.has_rows else activator.drift()
        if drift:
            learned.details["drift"] = drift
        return learned

    def _activated(self, part: _Part) -> ActivatedExamples:
        """What the part activates within its budget, for the stage that comes first to say."""
        if part.activated is None:
            part.activated = part.activator.activate(self.settings.allowed(part.trainer))
            part.learned.candidates = part.activated.candidates
            part.learned.activated = part.activated.activated
        return part.activated

    def _raise_shield(self, part: _Part) -> None:
        """Choose the old examples that protect old answers from what is new."""
        if self.settings.shield == ACTIVATED:
            activated = self._activated(part)
            examples, positions = activated.examples, activated.positions
        else:
            examples, positions = part.activator.draw_shield()
        shield = part.activator.shield(examples)
        if shield is not None:
            part.shield = [shield]
            part.replayed = distinct(part.replayed, positions)

    def _arrive(self, part: _Part) -> None:
        """Let what is new learn alone."""
        trainer = part.trainer
        self._raise_shield(part)
        freeze_old(trainer)
        schedule = replace(trainer.schedule, epochs=self.settings.arrive_epochs)
        training_set = MixedSet(part.new, *part.shield, at_once=trainer.at_once)
        part.learned.fits.append(self.fit(trainer, training_set, part.monitor, schedule))

    def _update(self, part: _Part) -> None:
        """Let new examples and the old ones that they activate change what they share."""
        settings, trainer = self.settings, part.trainer
        schedule = settings.later(trainer.schedule)
        if not settings.later_epochs and settings.arrive_epochs:
            schedule = replace(schedule, epochs=settings.arrive_epochs)
        activated = self._activated(part)
        if not len(part.new.examples) and not len(activated.examples):
            return  # a shield alone has nothing to shield from
        if not trainer.has_rows:  # nothing has arrived alone
            self._raise_shield(part)
        guards = part.shield if settings.guard or not trainer.has_rows else []
        training_set = _Alternating(settings, part, activated, guards)
        part.learned.fits.append(self.fit(trainer, training_set, part.monitor, schedule))
        part.learned.candidates = training_set.candidates
        part.learned.activated = training_set.activated
        part.replayed = distinct(part.replayed, training_set.used)


@dataclass(slots=True)
class _Part:
    """What the stages of a part share.

    Attributes:
        trainer: Holds the graph and the model.
        activator: Says what the part concerns.
        new: Its examples.
        before: What old rows were before it.
        learned: The report.
        monitor: Told about every epoch.
        shield: Old examples that protect old answers; none or one group.
        activated: What the part activates, once a stage has asked.
        replayed: Positions of all old examples that were used.
    """

    trainer: Trainer
    activator: Activator
    new: ExampleGroup
    before: Before
    learned: Learned
    monitor: Monitor | None
    shield: list[ExampleGroup] = field(default_factory=list)
    activated: ActivatedExamples | None = None
    replayed: IntArray = field(default_factory=lambda: np.empty(0, np.int64))


class _Alternating(MixedSet):
    """New examples and the old ones that they activate, chosen again every few epochs."""

    def __init__(
        self,
        settings: DiCGRLSettings,
        part: _Part,
        activated: ActivatedExamples,
        guards: list[ExampleGroup],
    ) -> None:
        super().__init__(part.new, at_once=part.trainer.at_once)
        self._settings, self._part, self._guards = settings, part, guards
        self._budget = settings.allowed(part.trainer)
        self.candidates = self.activated = 0
        self.used = np.empty(0, np.int64)
        self._replay(activated)  # now: copies of what may change are taken before the first epoch

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

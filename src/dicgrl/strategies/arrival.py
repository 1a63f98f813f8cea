"""Arrival: only new rows learn, behind a shield that protects old answers from them.

All old rows are frozen. Some old examples, the shield, are compared with the new entities only.
This teaches newcomers not to outrank the right answers: in each question of the shield they stay
behind a given rank (`shield_rank`). The shield may be what the part activates (`shield=activated`).

The strategy `arrival` does nothing else: no old row ever moves, and facts among old entities are
not learned. For `dicgrl` it is a stage that may precede the update of old components.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from typing_extensions import override

from dicgrl.common.options import option
from dicgrl.errors import UserError
from dicgrl.graph.arrays import IntArray, distinct
from dicgrl.models import Scorer
from dicgrl.strategies.activator import EVEN, ActivatedExamples, Activator, activator_of
from dicgrl.strategies.base import Learned, SelectionSettings, Strategy, StrategySettings
from dicgrl.strategies.before import Before
from dicgrl.strategies.budget import BudgetSettings, amount_or
from dicgrl.strategies.freezing import freeze_old, unfreeze
from dicgrl.strategies.mixed import MixedSet
from dicgrl.trainers import ExampleGroup, Trainer
from dicgrl.training.loop import Monitor

ACTIVATED = "activated"  # a shield of what the part activates


@dataclass(frozen=True)
class ActivationSettings(BudgetSettings):
    """Settings of activation."""

    orders: int = option(
        2,
        "How far dicgrl activates neighbours: 1 or 2 steps.",
        choices=(1, 2),
        needs="components",
    )
    weight1: float = option(0.5, "Weight of activated neighbours at one step.", least=0)
    weight2: float = option(0.25, "Weight of activated neighbours at two steps.", least=0)
    fan: int = option(0, "Most old neighbours considered per node; 0 for all.", least=0)
    selection: str = option(
        "top",
        "How dicgrl fills its budget: top (highest merit), sample (drawn by merit) or even (drawn "
        "evenly from the whole history; still only what the part activates may change).",
        choices=("top", "sample", EVEN),
    )


@dataclass(frozen=True)
class ArrivingSettings(ActivationSettings, SelectionSettings, StrategySettings):
    """Settings of the arrival of new rows."""

    arrive_epochs: int = option(
        0,
        "Epochs in which only new rows learn before old ones may change; 0 for none.",
        least=0,
        needs="rows",
    )
    shield: str = option(
        "0",
        "Old examples that protect old answers from new entities during the arrival, given like "
        "budget; or activated, for those that the part activates within budget and the update "
        "replays. In a network, nodes, labelled or not, that keep the class probabilities of the "
        "previous model while the part is learned.",
        check=amount_or(ACTIVATED),
        numbers=True,
    )
    shield_rank: int = option(
        0,
        "Rank among old entities, estimated from a sample, behind which new entities are kept in "
        "the shield's questions; 0 keeps them behind the loss's margin instead. Only with a "
        "shield.",
        least=0,
        needs="rows",
    )


@dataclass(slots=True)
class PartAtHand:
    """State that the stages of learning a part share.

    Attributes:
        trainer: Holds the graph and the model.
        activator: Finds the old examples that the part activates.
        new: The examples of the part.
        before: Old rows as they were before the part.
        learned: The report.
        monitor: Told about every epoch.
        shield: Old examples that protect old answers; none or one group.
        activated: What the part activates; None until a stage has asked for it.
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


class Arriving(Strategy):
    """Base class of strategies with an arrival stage."""

    settings: ArrivingSettings
    divided = True
    starts_from_neighbours = True

    def part_at_hand(self, trainer: Trainer, monitor: Monitor | None) -> PartAtHand:
        """Set up the newest part, before anything of it is learned."""
        activator, before = activator_of(trainer, self.settings), Before(trainer)
        rows = trainer.examples("train", trainer.newest)
        weight = torch.ones(len(rows), device=rows.device)
        new = ExampleGroup(trainer.objective(rows), rows, weight)
        return PartAtHand(trainer, activator, new, before, Learned(), monitor)

    def brings_rows(self, trainer: Trainer) -> bool:
        """Whether the newest part has new rows, which can learn alone."""
        tables = trainer.model.tables()
        return any(len(tables[name]) > old for name, old in trainer.old_rows().items())

    def activated(self, part: PartAtHand) -> ActivatedExamples:
        """The old examples that the part activates within its budget; the first stage sets them."""
        if part.activated is None:
            part.activated = part.activator.activate(self.settings.allowed(part.trainer))
            part.learned.candidates = part.activated.candidates
            part.learned.activated = part.activated.activated
        return part.activated

    def raise_shield(self, part: PartAtHand) -> None:
        """Choose the old examples that protect old answers from new rows."""
        if self.settings.shield == ACTIVATED:
            activated = self.activated(part)
            examples, positions = activated.examples, activated.positions
        else:
            examples, positions = part.activator.draw_shield()
        shield = part.activator.shield(examples)
        if shield is not None:
            part.shield = [shield]
            part.replayed = distinct(part.replayed, positions)

    def arrive(self, part: PartAtHand) -> None:
        """Let only the new rows learn."""
        trainer = part.trainer
        self.raise_shield(part)
        freeze_old(trainer)
        schedule = replace(trainer.schedule, epochs=self.settings.arrive_epochs)
        training_set = MixedSet(part.new, *part.shield, at_once=trainer.at_once)
        part.learned.fits.append(self.fit(trainer, training_set, part.monitor, schedule))


class Arrival(Arriving, name="arrival"):
    """Learns new rows alone, behind a shield; no old row ever moves."""

    @dataclass(frozen=True)
    class Settings(ArrivingSettings):
        """Settings of arrival."""

        arrive_epochs: int = 40
        shield: str = "10%,5x"
        shield_rank: int = 30
        selection: str = "sample"

    @classmethod
    @override
    def check_model(cls, divided: bool, model: str = "") -> None:
        if model and model not in Scorer.registry:
            raise UserError(
                f"strategy {cls.name} only learns the rows of new entities; {model} has no rows, "
                "as its nodes share all weights. Use fresh, or frozen for a model that never learns"
            )
        super().check_model(divided, model)

    @override
    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        part = self.part_at_hand(trainer, monitor)
        if self.settings.arrive_epochs and self.brings_rows(trainer):
            try:
                self.arrive(part)
            finally:
                unfreeze(trainer)
        part.learned.replayed = len(part.replayed)
        return part.learned

"""Redrawn replay: every pass learns the new part and a new sample of old examples.

What bounds an update is how many examples it processes, not which old examples it may see: the
graph is stored anyway. A fixed sample would be learned by heart while the rest is forgotten; the
same number of draws, new ones in each pass, preserves everything. Draws come from the growing
index, so that their cost depends on the number of draws and not on the history. In a network a step
only passes what lies around the drawn nodes.

The size of the part decides the rest (`plan_of`). The number of examples to process depends on it
and on what retraining would process. The smaller the part, the more slowly old rows learn, and they
learn much more slowly in steps that do not mention them. New rows start from their neighbours, and
every example has the weight that it would have in retraining. The rate falls to zero and the last
weights are kept, as there is no forgetting that early stopping could prevent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import singledispatch

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.common.options import option
from dicgrl.strategies.base import Learned, RateSettings, Strategy
from dicgrl.strategies.effort import AUTO, EffortSettings
from dicgrl.strategies.freezing import pace_of, rest_old, unfreeze, wake
from dicgrl.trainers import NodeTrainer, Trainer
from dicgrl.training import TrainingSet
from dicgrl.training.loop import Monitor
from dicgrl.training.stepper import Objective

_PASSES = 15
_FULL, _POWER = 0.1, 0.7  # rate of old rows: 1 if a part is a tenth or more, 0.14 for 0.6 %
_STEPS = 64  # fewest steps of an update: a few facts are not learned in three steps
_SMALLEST = 32  # smallest batch

_NODE_PASSES = 20
_NODE_BATCH = 512  # nodes of a step unless the settings say
_NODE_OLD = 3  # old nodes in a pass for each new one
_NODE_LEAST = 100  # fewest old nodes in a pass, else a handful of new ones would displace them
_CLASS_PASSES, _CLASS_RATE = 3, 2.0  # factors of passes and rate if classes arrive


@dataclass(frozen=True)
class FreshSettings(EffortSettings, RateSettings):
    """Settings of fresh."""

    passes: int = option(
        0,
        "Passes of fresh over the new examples; old ones fill the rest of its effort, at least "
        "half of it. More passes if one would have to draw some old examples twice, fewer if the "
        "effort is small. 0: 15 for triples; 20 for nodes, and 60 if classes arrive.",
        least=0,
    )
    old_pace: float = option(
        0.0,
        "Learning rate of old rows as a multiple of that of new ones. 0 chooses by the part: 1 if "
        "it is a tenth or more of what is known, less if it is smaller (0.62 for 5%, 0.14 for "
        "0.6%); more if there are fewer than 100 epochs.",
        least=0,
        most=1,
        needs="rows",
    )
    idle_pace: float = option(
        0.1,
        "Learning rate of old rows in steps that only compare with them, as a multiple of that in "
        "steps that learn a fact about them; 0: they rest, which is faster on a CPU.",
        least=0,
        most=1,
        needs="rows",
    )
    validate_on: str = "none"


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of an update.

    Attributes:
        passes: Number of passes over the new examples.
        draws: Number of old examples in each pass.
        batch: Number of examples in a step.
        rate: Learning rate as a multiple of the usual one.
        old_pace: Learning rate of old rows as a multiple of that of new ones.
    """

    passes: int
    draws: int
    batch: int
    rate: float = 1.0
    old_pace: float = 1.0


@singledispatch
def plan_of(trainer: Trainer, settings: FreshSettings) -> Plan:
    """The plan for the newest part, which has at least one example.

    `plan_of.register` adds a plan for another kind of trainer.
    """
    new, known = trainer.count("train", trainer.newest), trainer.count("train")
    schedule = trainer.schedule
    total = settings.positives(trainer)
    passes = _passes_within(settings.passes or _PASSES, total, new, known)
    return Plan(
        passes,
        max(total // passes - new, 0),
        max(min(schedule.batch, total // _STEPS), min(schedule.batch, _SMALLEST)),
        old_pace=settings.old_pace or pace_of(trainer, new, _FULL, _POWER),
    )


@plan_of.register
def _(trainer: NodeTrainer, settings: FreshSettings) -> Plan:
    new = trainer.count("train", trainer.newest)
    arrive = bool(trainer.new_classes())
    passes = settings.passes or _NODE_PASSES * (_CLASS_PASSES if arrive else 1)
    draws = max(_NODE_OLD * new, _NODE_LEAST)
    if settings.effort != AUTO:
        total = settings.positives(trainer)
        passes = _passes_within(passes, total, new, trainer.count("train"))
        draws = max(total // passes - new, 0)
    batch = trainer.schedule.batch or _NODE_BATCH
    return Plan(passes, draws, batch, _CLASS_RATE if arrive else 1.0)


def _passes_within(wanted: int, total: int, new: int, known: int) -> int:
    """Number of passes, at least 1, that leave half to old examples and draw none of them twice."""
    return max(min(wanted, total // (2 * new)), min(-(-total // known), total // new), 1)


class Fresh(Strategy, name="fresh"):
    """Learns new examples together with old ones that are drawn anew in each pass."""

    Settings = FreshSettings
    settings: FreshSettings
    starts_from_neighbours = True
    scatters_newcomers = True

    @override
    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        if not trainer.count("train", trainer.newest):
            return Learned()
        plan = plan_of(trainer, self.settings)
        training_set = Redrawn(trainer, plan)
        rest_old(trainer, plan.old_pace, training_set.examples, self.settings.idle_pace)
        try:
            schedule = self.settings.falling(trainer.schedule, plan.passes)
            schedule = replace(schedule, batch=plan.batch, lr=schedule.lr * plan.rate)
            fit = self.fit(trainer, training_set, monitor, schedule)
        finally:
            unfreeze(trainer)
        return Learned([fit], replayed=training_set.replayed)


class Redrawn(TrainingSet):
    """New examples, and old ones drawn anew in each pass; none is repeated until all were drawn.

    Memory depends on the draws of all passes, or on the history if that is smaller.

    Args:
        trainer: The trainer, which has taken in the newest part.
        plan: How many passes and draws to make.

    Attributes:
        replayed: Number of different old examples that are drawn.
    """

    def __init__(self, trainer: Trainer, plan: Plan) -> None:
        drawn = trainer.draw(plan.passes * plan.draws, 0, trainer.newest)
        old, new = trainer.old_examples(drawn), trainer.examples("train", trainer.newest)
        self.replayed = len(old)
        # A step of a network does different things on the host each time.
        self._capturable = trainer.has_rows
        self._draws = min(plan.draws, len(old))
        self._rest = torch.empty(0, dtype=torch.long, device=old.device)
        examples = torch.cat([old, new])
        objective = trainer.objective_around(examples, min(plan.batch, self._draws + len(new)))

        def awake(some: Tensor, weight: Tensor) -> Tensor:
            wake(trainer, some)
            return objective(some, weight)

        super().__init__(awake, examples, trainer.weights(examples), self._draws)

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
        while len(self._rest) < self._draws:
            more = torch.randperm(self.replayed, generator=generator, device=device)
            self._rest = torch.cat([self._rest, more])
        drawn, self._rest = self._rest[: self._draws], self._rest[self._draws :]
        chosen = torch.cat([drawn, torch.arange(self.replayed, len(self.examples), device=device)])
        order = chosen[torch.randperm(len(chosen), generator=generator, device=device)]
        # All steps have the same size: a few examples in a last one would count too much.
        steps = max(-(-len(order) // size), 1)
        examples, weight = (
            all_[order].tensor_split(steps) for all_ in (self.examples, self.weight)
        )
        yield from ((self.objective, *step) for step in zip(examples, weight, strict=True))

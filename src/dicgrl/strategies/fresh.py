"""Redrawn replay: every pass learns the new part and old examples that are drawn anew.

What bounds an update is what it processes, not which old examples it may ever see: the graph is
stored anyway. A sample that stays is learned by heart while the rest is forgotten; the same number
of draws, anew in each pass, keeps all of it. Draws come from the growing index, so that their cost
follows the draws and not the history.

The part decides the rest. How much is processed follows what retraining would process and the size
of the part (`EffortSettings`); old rows learn the more slowly, the less of what is known is new;
new rows start from their neighbours; every example counts as it would in retraining. The rate falls
to nothing, and the last weights are kept: there is no forgetting to be stopped early.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.common.options import option
from dicgrl.strategies.base import Learned, RateSettings, Strategy
from dicgrl.strategies.effort import EffortSettings
from dicgrl.strategies.freezing import slow_old, unfreeze
from dicgrl.trainers import Trainer
from dicgrl.training import Schedule, TrainingSet
from dicgrl.training.loop import Monitor
from dicgrl.training.stepper import Objective

_STEPS = 64  # of an update, at least: a part of a few facts is not learned in three
_SMALLEST = 32  # of a batch
_PACE = 0.4  # a part of 0.6 % moves old rows at 0.13 of the rate, one of a fifth at 0.5
_LEARNED = 100  # epochs after which old rows have found their place; until then they are faster


@dataclass(frozen=True)
class FreshSettings(EffortSettings, RateSettings):
    """Settings of fresh."""

    passes: int = option(
        10,
        "Passes of fresh over the new examples, at most; old ones fill the rest of its effort, a "
        "half of it at least.",
        least=1,
    )
    old_pace: float = option(
        0.0,
        "Learning rate of old rows as a multiple of that of new ones; 0 for the share of what is "
        "known that is new, to the power of 0.4, or of less where there are fewer than 100 epochs.",
        least=0,
        most=1,
        needs="rows",
    )
    validate_on: str = "none"


class Fresh(Strategy, name="fresh"):
    """Learns new examples together with old ones that are drawn anew in each pass."""

    Settings = FreshSettings
    settings: FreshSettings
    starts_from_neighbours = True

    @override
    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        new = trainer.count("train", trainer.newest)
        if not new:
            return Learned()
        total = self.settings.positives(trainer)
        passes = max(min(self.settings.passes, total // (2 * new)), 1)
        training_set = Redrawn(trainer, passes, max(total // passes - new, 0))
        slow_old(trainer, self._pace(trainer))
        try:
            fit = self.fit(trainer, training_set, monitor, self._schedule(trainer, passes, total))
        finally:
            unfreeze(trainer)
        return Learned([fit], replayed=training_set.replayed)

    def _pace(self, trainer: Trainer) -> float:
        new, known = trainer.count("train", trainer.newest), trainer.count("train")
        power = _PACE * min(trainer.schedule.epochs / _LEARNED, 1.0)
        return self.settings.old_pace or float((new / known) ** power)

    def _schedule(self, trainer: Trainer, passes: int, total: int) -> Schedule:
        schedule = trainer.schedule
        return replace(
            schedule,
            epochs=passes,
            batch=max(min(schedule.batch, total // _STEPS), min(schedule.batch, _SMALLEST)),
            lr=schedule.lr * self.settings.later_rate,
            halve_every=0,
            decay=1.0,
            patience=0,
        )


class Redrawn(TrainingSet):
    """New examples, and old ones that are drawn anew in each pass, none twice before all were.

    Memory follows the draws of all passes, or the history where that is less.

    Args:
        trainer: Has taken in the newest part.
        passes: Over the new examples.
        draws: Old examples in each of them.

    Attributes:
        replayed: Different old examples that are drawn in all.
    """

    def __init__(self, trainer: Trainer, passes: int, draws: int) -> None:
        drawn = trainer.draw(passes * draws, 0, trainer.newest)
        old, new = trainer.old_examples(drawn), trainer.examples("train", trainer.newest)
        examples = torch.cat([old, new])
        self.replayed = len(old)
        self._draws = draws if len(old) else 0
        weight = trainer.weights(examples)
        super().__init__(trainer.objective(examples), examples, weight, self._draws)
        self._rest = torch.empty(0, dtype=torch.long, device=examples.device)

    @property
    @override
    def capturable(self) -> bool:
        return True  # a step does the same on the host each time

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
        order = torch.randperm(len(chosen), generator=generator, device=device)
        for some in torch.split(chosen[order], size):
            yield self.objective, self.examples[some], self.weight[some]

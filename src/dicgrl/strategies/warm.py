"""A few more epochs on everything, from the last model: what practitioners usually do."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from dicgrl.strategies.base import Learned, RateSettings, Strategy
from dicgrl.strategies.effort import EffortSettings
from dicgrl.trainers import Trainer
from dicgrl.training.loop import Monitor


@dataclass(frozen=True)
class WarmSettings(EffortSettings, RateSettings):
    """Settings of warm."""

    effort: str = "10%"
    later_rate: float = 0.7
    validate_on: str = "none"


class Warm(Strategy, name="warm"):
    """Trains on everything so far for a few more epochs, at least one."""

    Settings = WarmSettings
    settings: WarmSettings
    starts_from_neighbours = True
    scatters_newcomers = True

    @override
    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        if not trainer.count("train", trainer.newest):
            return Learned()
        epochs = max(round(self.settings.positives(trainer) / trainer.count("train")), 1)
        schedule = self.settings.falling(trainer.schedule, epochs)
        fit = self.fit(trainer, self.everything(trainer), monitor, schedule)
        return Learned([fit], replayed=trainer.count("train", 0, trainer.newest))

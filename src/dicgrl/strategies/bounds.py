"""The control and the paper's two bounds: learn nothing, only the new part, or everything again."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from dicgrl.strategies.base import Learned, SelectionSettings, Strategy, StrategySettings
from dicgrl.strategies.ingredients import Composed
from dicgrl.trainers import Trainer
from dicgrl.training.loop import Monitor


class Frozen(Strategy, name="frozen"):
    """Never learns after the first part; new rows stay where they start."""

    Settings = StrategySettings

    @override
    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        del trainer, monitor
        return Learned()


class Lower(Composed, name="lower"):
    """Fine-tunes on the new part alone, with nothing against forgetting."""


class Upper(Strategy, name="upper"):
    """Trains a new model on everything so far: the upper bound, and the most expensive strategy."""

    @dataclass(frozen=True)
    class Settings(SelectionSettings, StrategySettings):
        """Settings of upper."""

    @override
    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        trainer.rebuild()
        report = self.fit(trainer, self.everything(trainer), monitor, from_scratch=True)
        return Learned([report], replayed=trainer.count("train", 0, trainer.newest))

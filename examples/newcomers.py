"""Strategies of your own: found by their names, with settings of their own.

`Newcomers` lets mostly what is new learn: the rows of new entities and relations. Nothing old moves
at first, so that an old answer can only be lost to a newcomer; then everything may settle for
`settle_epochs`. It is written against `Trainer`, which knows of triples and nodes; the strategy
does not. `Remembering` is put together from ingredients: old examples are replayed, and what
mattered to them is held back. `--set`, recipes and `Learner(...)` know the settings of both.

    python examples/newcomers.py
    dicgrl --plugin examples/newcomers.py run films --strategy newcomers --set settle_epochs=5
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import dicgrl
from dicgrl.common.options import option
from dicgrl.strategies import Composed, Learned, Strategy
from dicgrl.strategies.base import LaterSettings
from dicgrl.strategies.ewc import Penalty
from dicgrl.strategies.freezing import freeze_old, unfreeze
from dicgrl.strategies.ingredients import Replay
from dicgrl.trainers import Trainer
from dicgrl.training import TrainingSet
from dicgrl.training.loop import Monitor


class Newcomers(Strategy, name="newcomers"):
    """Whatever is old stays as it is while newcomers learn."""

    @dataclass(frozen=True)
    class Settings(LaterSettings):
        """Settings of newcomers, besides those of every strategy that continues."""

        settle_epochs: int = option(0, "Epochs in which everything may learn then.", least=0)

    settings: Settings

    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        """See `Strategy`: learn the newest part, which the trainer has taken in already."""
        examples = trainer.examples("train", trainer.newest)
        training_set = TrainingSet(trainer.objective(examples), examples)
        freeze_old(trainer)
        try:
            fits = [self.fit(trainer, training_set, monitor)]
        finally:
            unfreeze(trainer)
        if self.settings.settle_epochs:
            schedule = replace(trainer.schedule, epochs=self.settings.settle_epochs)
            fits.append(self.fit(trainer, training_set, monitor, schedule))
        return Learned(fits)


class Remembering(Composed, name="remembering"):
    """Replays old examples and holds back what mattered: `budget` and `strength` come with them."""

    ingredients = (Replay, Penalty)


def main(epochs: int = 15) -> dict[str, dict[str, float]]:
    """Learn the films stream with them, beside fine-tuning and beside doing nothing."""
    stream = dicgrl.load_stream("films")
    found = {}
    strategies: dict[str, dict[str, Any]] = {
        "frozen": {},
        "lower": {},
        "newcomers": {"settle_epochs": 2},
        "remembering": {"budget": "5%", "strength": 10.0},
    }
    for strategy, own in strategies.items():
        learner = dicgrl.Learner(
            "transe", strategy, dim=64, epochs=epochs, negatives=32, lr=5e-3, device="cpu", **own
        )
        for part in stream:
            learner.learn(part)
            evaluation = learner.evaluate()
        found[strategy] = {
            "whole": evaluation.whole["hits@10"],
            "average": evaluation.average["hits@10"],
            "retention": evaluation.retention or 0.0,
        }
        listed = ", ".join(f"{name} {value:.3f}" for name, value in found[strategy].items())
        print(f"{strategy}: {listed}")
    return found


if __name__ == "__main__":
    main()

"""A strategy of your own: one class that says how a new part is learned, found by its name.

This one lets only what is new learn: the rows of new entities and relations. Nothing old moves, so
that an old answer can only be lost to a newcomer. It is written against `Run`, which knows of
triples and nodes; the strategy does not.

    python examples/newcomers.py
"""

from __future__ import annotations

import dicgrl
from dicgrl.strategies import Learned, Strategy
from dicgrl.trainers import Run
from dicgrl.training import TrainingSet
from dicgrl.training.loop import Monitor


class Newcomers(Strategy, name="newcomers"):
    """Whatever is old stays as it is."""

    def later(self, run: Run, monitor: Monitor | None) -> Learned:
        """See `Strategy`: learn the newest part, which the run has taken in already."""
        examples = run.examples("train", run.newest)
        run.open_new()
        try:
            report = run.fit(TrainingSet(run.objective(examples), examples), monitor)
        finally:
            run.open_all()
        return Learned([report])


def main(epochs: int = 15) -> dict[str, dict[str, float]]:
    """Learn the films stream with it, beside fine-tuning and beside doing nothing."""
    stream = dicgrl.load_stream("films")
    found = {}
    for strategy in ("frozen", "lower", "newcomers"):
        learner = dicgrl.Learner(
            "transe", strategy, dim=64, epochs=epochs, negatives=32, lr=5e-3, device="cpu"
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

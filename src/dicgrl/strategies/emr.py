"""Episodic memory replay: new examples mixed with a few remembered ones (Parisi et al. 2019)."""

from __future__ import annotations

import torch

from dicgrl.strategies.base import Learned, Strategy
from dicgrl.tasks.base import Run
from dicgrl.training import TrainingSet
from dicgrl.training.loop import Monitor


class EMR(Strategy, name="emr"):
    """Replays old examples, drawn evenly from the history and as many as the budget allows."""

    def later(self, run: Run, monitor: Monitor | None) -> Learned:
        """See `Strategy`."""
        memory = run.sample(self.budget(run), 0, run.newest)
        examples = torch.cat([run.examples("train", run.newest), memory])
        report = run.fit(TrainingSet(run.objective(examples), examples), monitor)
        return Learned([report], replayed=len(memory))

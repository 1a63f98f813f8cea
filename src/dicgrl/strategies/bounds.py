"""The control and the two bounds of the paper: never, only the new, everything again."""

from __future__ import annotations

from dicgrl.strategies.base import Learned, Strategy
from dicgrl.tasks.base import Run
from dicgrl.training import TrainingSet
from dicgrl.training.loop import Monitor


class Frozen(Strategy, name="frozen"):
    """Never learns after the first part: what its new rows start with is all they get."""

    def later(self, run: Run, monitor: Monitor | None) -> Learned:
        """See `Strategy`."""
        del run, monitor
        return Learned()


class Lower(Strategy, name="lower"):
    """Fine-tunes on the new part alone; forgets as much as one can."""

    def later(self, run: Run, monitor: Monitor | None) -> Learned:
        """See `Strategy`."""
        examples = run.examples("train", run.newest)
        return Learned([run.fit(TrainingSet(run.objective(examples), examples), monitor)])


class Upper(Strategy, name="upper"):
    """Trains a new model on everything so far; costs as much as one can."""

    def later(self, run: Run, monitor: Monitor | None) -> Learned:
        """See `Strategy`."""
        run.rebuild()
        report = run.fit(self.everything(run), monitor, run.settings.schedule(), anew=True)
        return Learned([report], replayed=run.count("train", 0, run.newest))

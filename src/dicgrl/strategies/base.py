"""What a strategy is: how a new part is learned, written once for every model and both tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from dicgrl.common.registry import register
from dicgrl.settings import KIND_OF, ContinualSettings, examples_within
from dicgrl.tasks.base import Run
from dicgrl.training import FitReport, TrainingSet
from dicgrl.training.loop import Monitor


@dataclass(slots=True)
class Learned:
    """What learning a part did.

    Attributes:
        fits: Reports of the training that it took.
        replayed: Old examples that were learned again, each counted once.
        candidates: Old triples or edges that were looked at.
        activated: Those that share a component with the new ones.
        details: Further figures of the strategy.
    """

    fits: list[FitReport] = field(default_factory=list)
    replayed: int = 0
    candidates: int = 0
    activated: int = 0
    details: dict[str, Any] = field(default_factory=dict)


class Strategy:
    """Learns parts; a subclass under a name, which no other module has taken, is found by it.

    The first part is learned alike by all: there is nothing yet that could be forgotten.

    Attributes:
        name: What it is called.
        recipe: What recipes call it: its name, or that of the strategy that it is a kind of, whose
            `start=auto` it has, too.
        divided: Whether it works on components, so that its model is disentangled unless one asks
            for another.

    Args:
        settings: The settings; a strategy reads those that concern it.
    """

    registry: ClassVar[dict[str, type[Strategy]]] = {}
    name: ClassVar[str]
    recipe: ClassVar[str]
    divided: ClassVar[bool] = False

    def __init_subclass__(cls, name: str | None = None) -> None:
        super().__init_subclass__()
        if name is not None:
            register(Strategy.registry, "strategy", name, cls)
            cls.name = name
            cls.recipe = KIND_OF[name] = getattr(cls, "recipe", name)

    def __init__(self, settings: ContinualSettings) -> None:
        self.settings = settings

    def learn(self, run: Run, monitor: Monitor | None = None) -> Learned:
        """Learn the newest part, which the run has taken in already."""
        learned = self.first(run, monitor) if run.newest == 0 else self.later(run, monitor)
        self.conclude(run)
        return learned

    def conclude(self, run: Run) -> None:
        """Remember a part that was learned here, or that another strategy learned alike."""
        run.reseed()  # the same numbers whether or not the part was learned in this process
        self.remember(run)

    def first(self, run: Run, monitor: Monitor | None) -> Learned:
        """Learn the first part."""
        return Learned([run.fit(self.everything(run), monitor)])

    def later(self, run: Run, monitor: Monitor | None) -> Learned:
        """Learn a part when others have been learned before."""
        raise NotImplementedError

    def remember(self, run: Run) -> None:
        """Keep what the next part will need, after a part was learned."""

    @property
    def keeps_state(self) -> bool:
        """Whether `remember` keeps something."""
        return type(self).remember is not Strategy.remember

    def state(self) -> dict[str, Tensor]:
        """What `remember` kept outside the model, for a checkpoint."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Put back what `state` gave."""

    def everything(self, run: Run) -> TrainingSet:
        """All that is known so far, as a model learns it that knows nothing yet."""
        examples = run.examples("train")
        return TrainingSet(run.objective(examples), examples, run.weights(examples))

    def budget(self, run: Run) -> int:
        """Old examples that may be replayed for the newest part."""
        old, new = run.count("train", 0, run.newest), run.count("train", run.newest)
        return examples_within(self.settings.budget, old, new)

"""The base class of strategies: how a new part is learned, for every model and task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from torch import Tensor

from dicgrl.common.options import Section, option
from dicgrl.common.registry import register
from dicgrl.errors import UserError
from dicgrl.evaluation.part_report import PartReport
from dicgrl.models import Scorer
from dicgrl.strategies.repair import repair
from dicgrl.strategies.start import scatter_newcomers, start_from_neighbours
from dicgrl.trainers import Trainer
from dicgrl.training import FitReport, Positives, Schedule, TrainingSet
from dicgrl.training.loop import Monitor


@dataclass(slots=True)
class Learned:
    """What was done to learn a part.

    Attributes:
        fits: Reports of the training runs.
        replayed: How many old examples were learned again, each counted once.
        candidates: How many old triples or edges were considered for activation.
        activated: How many of these share a component with new ones.
        besides: Examples that went through the model outside of training.
        details: Further numbers that the strategy reports.
    """

    fits: list[FitReport] = field(default_factory=list)
    replayed: int = 0
    candidates: int = 0
    activated: int = 0
    besides: Positives = field(default_factory=Positives)
    details: dict[str, Any] = field(default_factory=dict)

    def __add__(self, other: Learned) -> Learned:
        """Combine two steps of learning."""
        return Learned(
            self.fits + other.fits,
            self.replayed + other.replayed,
            self.candidates + other.candidates,
            self.activated + other.activated,
            self.besides + other.besides,
            self.details | other.details,
        )

    def report(self, trainer: Trainer, seconds: float) -> PartReport:
        """The report of the newest change.

        Args:
            trainer: The trainer, which has learned the change.
            seconds: How long that took, including validation.
        """
        change, fits = trainer.history[-1], self.fits
        arrived = {} if change.part is None else {"arrived": change.part.arrived()}
        positives = sum((fit.positives for fit in fits), self.besides)
        bests = [fit.best for fit in fits if fit.best is not None]
        return PartReport(
            trainer.newest,
            seconds - sum(fit.validate_seconds for fit in fits),
            0 if change.part is None else trainer.count("train", trainer.newest),
            self.replayed,
            self.candidates,
            self.activated,
            sum(fit.epochs for fit in fits),
            validation=bests[-1] if bests else None,
            best_epoch=fits[-1].best_epoch if fits else 0,
            positives=asdict(positives),
            details=self.details | (trainer.describe_part() if arrived else {}) | arrived,
            kind=change.kind,
        )


@dataclass(frozen=True)
class StrategySettings(Section):
    """Settings of every strategy.

    All strategies have `start`, as the answers of new rows are also measured before a part is
    learned.
    """

    start: str = option(
        "auto",
        "Where new rows start: random, neighbours (where the graph puts them; in a network, where "
        "its nodes put a new class), or auto (neighbours for fresh, warm, dicgrl and strategies "
        "derived from them, otherwise random).",
        choices=("auto", "random", "neighbours"),
    )


@dataclass(frozen=True)
class SelectionSettings(Section):
    """How the best epoch is selected."""

    validate_on: str = option(
        "seen",
        "Validation data that select the epoch of a later part: seen (of all parts so far), part "
        "(of the newest part) or none (later parts are learned to the end).",
        choices=("seen", "part", "none"),
    )


@dataclass(frozen=True)
class RateSettings(SelectionSettings, StrategySettings):
    """Settings of strategies that continue with the model they have."""

    later_rate: float = option(1.0, "Learning rate of later parts as a multiple of lr.", least=0)

    def falling(self, schedule: Schedule, epochs: int) -> Schedule:
        """A later part's schedule whose rate falls to zero, so that the last epoch is the best.

        Args:
            schedule: The schedule of the first part.
            epochs: Number of epochs.
        """
        rate = schedule.lr * self.later_rate
        return replace(schedule, epochs=epochs, lr=rate, halve_every=0, decay=1.0, patience=0)


@dataclass(frozen=True)
class LaterSettings(RateSettings):
    """Settings of strategies whose later parts have their own number of epochs."""

    later_epochs: int = option(
        0,
        "Epochs of every part but the first; 0 for as many as the first. For dicgrl with "
        "arrive_epochs, the epochs of the update after the arrival; 0 then skips the update if "
        "every new example is about something new, and otherwise takes arrive_epochs.",
        least=0,
    )

    def later(self, schedule: Schedule) -> Schedule:
        """The schedule of every later part, given that of the first part."""
        epochs = self.later_epochs or schedule.epochs
        return replace(schedule, epochs=epochs, lr=schedule.lr * self.later_rate)


class Strategy:
    """Learns parts. A subclass with a name that is not taken yet is registered under it.

    All strategies learn the first part in the same way, as nothing can be forgotten yet.

    Attributes:
        Settings: The strategy's own settings, a frozen dataclass; a subclass may extend it.
        name: Name of the strategy.
        recipe: Its name in recipes: its own, or that of the strategy that it derives from.
        divided: Whether it works on components; its model is then disentangled by default.
        starts_from_neighbours: Whether `start=auto` means neighbours.
        scatters_newcomers: Whether newcomers that start from neighbours are then moved away from
            the ideal answer. Needed if no shield keeps them behind the right answers.
        needs_links: Whether it only works on triples with plain vectors.
        needs_gradients: Whether it needs the gradients of whole tables, not of some rows.
        first_alike: Whether it learns the first part like other strategies do.

    Args:
        settings: Settings of the strategy.
    """

    registry: ClassVar[dict[str, type[Strategy]]] = {}
    Settings: ClassVar[type[StrategySettings]] = LaterSettings
    name: ClassVar[str]
    recipe: ClassVar[str]
    divided: ClassVar[bool] = False
    starts_from_neighbours: ClassVar[bool] = False
    scatters_newcomers: ClassVar[bool] = False
    needs_links: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = False
    first_alike: ClassVar[bool] = True

    def __init_subclass__(cls, name: str | None = None) -> None:
        super().__init_subclass__()
        if name is not None:
            register(Strategy.registry, "strategy", name, cls)
            cls.name = name
            cls.recipe = getattr(cls, "recipe", name)

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @classmethod
    def check_model(cls, divided: bool, model: str = "") -> None:
        """Refuse a model that the strategy cannot work with.

        Args:
            divided: Whether the model is divided into components.
            model: Name of the model, if known.

        Raises:
            UserError: The model does not fit.
        """
        if cls.divided and not divided:
            raise UserError(
                f"strategy {cls.name} works on components: it needs a disentangled model, such as "
                "components=8 top=4"
            )
        if not cls.needs_links:
            return
        if model and model not in Scorer.registry:
            raise UserError(
                f"strategy {cls.name} needs a model of triples with a vector for each entity, "
                f"which {model} is not; use fresh"
            )
        if divided:
            raise UserError(
                f"strategy {cls.name} works on whole vectors: it needs a plain model, components=0"
            )

    def prepare(self, trainer: Trainer) -> None:
        """Set the starting point of the newest part's new rows, once for each part.

        `learn` does this unless it was done before, to ask about newcomers before they are learned.
        """
        if trainer.prepared != trainer.newest:
            trainer.prepared = trainer.newest
            self.start(trainer)

    def start(self, trainer: Trainer) -> None:
        """Set where new rows start; the trainer has just taken in a part."""
        start = self.settings.start
        wanted = start == "neighbours" or (start == "auto" and self.starts_from_neighbours)
        if trainer.newest and wanted:
            start_from_neighbours(trainer)
            if self.scatters_newcomers:
                scatter_newcomers(trainer)

    def learn(self, trainer: Trainer, monitor: Monitor | None = None) -> Learned:
        """Learn the newest part, which the trainer has already taken in."""
        self.prepare(trainer)
        first = trainer.newest == 0
        learned = self.first(trainer, monitor) if first else self.later(trainer, monitor)
        self.finish_part(trainer)
        learned.besides += self.besides
        return learned

    def finish_part(self, trainer: Trainer) -> None:
        """Remember a part that this strategy, or another one in the same way, has learned."""
        trainer.reseed()  # random numbers must not depend on which process learned the part
        self.remember(trainer)

    def retrain(self, trainer: Trainer, monitor: Monitor | None = None) -> Learned:
        """Train a new model on everything so far, as on a first part."""
        trainer.rebuild()
        self.restore({})
        learned = self.learn_anew(trainer, monitor)
        trainer.reseed()
        self.retrained(trainer)
        learned.replayed = trainer.count("train")
        return learned

    def learn_anew(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        """Teach everything so far to a model that knows nothing."""
        everything = self.everything(trainer)
        fit = self.fit(trainer, everything, monitor, trainer.schedule, from_scratch=True)
        return Learned([fit])

    def retrained(self, trainer: Trainer) -> None:
        """Store what the next part will need, after a new model has learned all parts."""
        self.remember(trainer)

    def repair(self, trainer: Trainer, monitor: Monitor | None = None) -> Learned:
        """Adapt the model to the newest correction: facts that are gone, ids that were merged."""
        done = repair(trainer, monitor)
        trainer.reseed()
        self.repaired(trainer)
        return Learned(done.fits, done.replayed, besides=Positives(old=done.pushed))

    def repaired(self, trainer: Trainer) -> None:
        """Adapt what `remember` stored to a repaired model."""

    def first(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        """Learn the first part."""
        return Learned([self.fit(trainer, self.everything(trainer), monitor)])

    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        """Learn a part other than the first."""
        raise NotImplementedError

    def fit(
        self,
        trainer: Trainer,
        training_set: TrainingSet,
        monitor: Monitor | None = None,
        schedule: Schedule | None = None,
        *,
        from_scratch: bool = False,
    ) -> FitReport:
        """Train as the settings say, with early stopping on validation data.

        Args:
            trainer: Holds the model.
            training_set: What is learned.
            monitor: Told about every epoch.
            schedule: How long and how fast to train; by default that of the settings.
            from_scratch: Whether the model learns everything again.
        """
        if schedule is None:
            schedule = trainer.schedule
            if trainer.newest and isinstance(self.settings, LaterSettings):
                schedule = self.settings.later(schedule)
        validate = self.validator(trainer, from_scratch=from_scratch)
        return trainer.fit(training_set, monitor, schedule, validate=validate)

    def validator(
        self, trainer: Trainer, *, from_scratch: bool = False
    ) -> Callable[[], float] | None:
        """What decides when training stops; None if nothing does."""
        return trainer.validator(self._validate_on, from_scratch=from_scratch)

    @property
    def _validate_on(self) -> str:
        known = isinstance(self.settings, SelectionSettings)
        return self.settings.validate_on if known else "seen"

    def describe_protocol(self, trainer: Trainer) -> dict[str, Any]:
        """How results are measured and epochs selected, for the results."""
        protocol = trainer.describe_protocol()
        if self._validate_on == "none":
            protocol["selection"] = f"{protocol['selection']}; later parts: the last epoch"
        return protocol

    def remember(self, trainer: Trainer) -> None:
        """Store what the next part will need, after a part was learned."""

    @property
    def besides(self) -> Positives:
        """Examples that went through the model for the newest part outside of `fit`."""
        return Positives()

    @property
    def keeps_state(self) -> bool:
        """Whether `remember` stores anything."""
        return type(self).remember is not Strategy.remember

    def state(self) -> dict[str, Tensor]:
        """What `remember` stored outside the model, for a checkpoint."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore what `state` returned."""

    def everything(self, trainer: Trainer) -> TrainingSet:
        """Everything known so far, as training examples for a new model."""
        examples = trainer.examples("train")
        old = trainer.count("train", 0, trainer.newest)
        weight = trainer.weights(examples)
        return TrainingSet(trainer.objective(examples), examples, weight, old)

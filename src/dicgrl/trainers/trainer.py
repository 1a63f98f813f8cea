"""A trainer: one growing graph, one model, and how they meet. All that a strategy may see.

A strategy works with examples, objectives and named parameters; what an example is (a triple, a
node) and how it is scored is known here and below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from dicgrl.common.devices import check_memory
from dicgrl.common.memory import Need
from dicgrl.common.options import Sections
from dicgrl.graph import Part
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.change import LEARN, Change
from dicgrl.training import FitReport, Schedule, TrainingSet, fit
from dicgrl.training.loop import Monitor, Trainable
from dicgrl.training.stepper import Objective

#: Of a number that is trained: float32, with its gradient and two moments of Adam.
TRAINED_BYTES = 4 * 4


class Model(Trainable, Protocol):
    """What a trainer needs of a model."""

    generator: torch.Generator

    def configuration(self) -> dict[str, Any]:
        """The arguments that make an empty model like this one, ready for JSON."""

    def requires_grad_(self, requires_grad: bool = True) -> object:
        """Let dense parameters learn, or not."""


class ExampleGroup(NamedTuple):
    """Examples of one kind.

    Attributes:
        objective: What they are learned by.
        examples: The examples.
        weight: Weight of each.
        most: How many an epoch takes at most, different ones each time; 0 for all. Where a step
            learns from all examples there are, it takes these.
    """

    objective: Objective
    examples: Tensor
    weight: Tensor
    most: int = 0


class Trainer(ABC):
    """Lets a graph and its model grow, and teaches the model what a strategy asks for.

    Args:
        settings: The settings.
        seed: Seed of every random choice; each change has its own sequence, so that a run that is
            resumed continues as if it had never stopped.
        device: Where to compute.
    """

    metric: ClassVar[str]  # what a learner is judged by
    protocol: ClassVar[dict[str, Any]]  # how it is measured, for the results
    asks_one_by_one: ClassVar[bool] = True  # whether measuring takes the longer the more is asked
    model: Any  # a `Model`; each trainer says which
    graph: Any  # a `Graph`, once a part has arrived
    part: Any  # the newest part, in ids of the graph

    def __init__(self, settings: Sections, seed: int, device: torch.device) -> None:
        self.settings = settings
        self.seed = seed
        self.device = device
        self.num_parts = 0
        self.prepared = -1  # the newest part whose rows a strategy has let start
        self.history: list[Change] = []  # all that happened to the graph, in its own ids
        self.reseed()

    def reseed(self) -> None:
        """Begin the random sequence of the next change."""
        number = len(self.history)
        self.generator = torch.Generator(self.device).manual_seed(self.seed + 1_000_003 * number)
        self.choices = np.random.default_rng((self.seed, number))

    def take(self, part: Part) -> None:
        """Let the graph and the model grow by a part; nothing is learned yet.

        Raises:
            UserError: The part is of another task, or the model would not fit into memory; nothing
                has changed then.
        """
        self.undergo(Change(LEARN, part))

    def undergo(self, change: Change) -> None:
        """Let a change happen to the graph, and the model grow with it; nothing is learned yet.

        Raises:
            UserError: As of `take`.
        """
        for need in self._needs(change.part) if change.part is not None else ():
            what = f"{self.model_name} with {need.setting}"
            check_memory(need.bytes, self.device, what, need.instead)
        self.reseed()
        applied = self._apply(change)
        self.history.append(applied)
        self._prepare()
        if applied.part is not None:
            self._grow()
            self.num_parts += 1

    @property
    def weighs_repeats(self) -> bool:
        """Whether facts that arrive again count for more."""
        return False

    def note_repeats(self, part: Part) -> None:  # noqa: B027 - repeats need not be noted
        """Note what of a part was known before the newest change, or stands in it twice.

        Args:
            part: What was given, before known facts were left out of it.
        """

    def recall(self, history: Iterable[Change], model: Any) -> None:
        """Take in what a model has learned already, at the cost of all that is in it."""
        self.history = self._replay(history)
        self.num_parts = len(self.taken)
        self._prepare()
        self.model = model
        self.check_model()
        self.prepared = self.newest

    def follow(self, changes: Iterable[Change]) -> None:
        """Take in changes that the model knows already, after those so far."""
        for change in changes:
            applied = Trainer._apply(self, change)  # a merge has blended the model's rows before
            self.history.append(applied)
            if applied.part is not None:
                self.part = applied.part
                self.num_parts += 1
        self._prepare()
        self.check_model()
        self.prepared = self.newest

    def check_model(self) -> None:  # noqa: B027 - a kind of model may fit any graph
        """Refuse a model that is not of the graph's size.

        Raises:
            ValueError: It is not.
        """

    @property
    def model_name(self) -> str:
        """What the model is called."""
        name: str = self.settings.model
        return name

    @property
    def taken(self) -> list[Part]:
        """The parts as the graph sees them, oldest first."""
        return [change.part for change in self.history if change.part is not None]

    @property
    def newest(self) -> int:
        """Number of the newest part."""
        return self.num_parts - 1

    @property
    def schedule(self) -> Schedule:
        """How long and how fast everything so far is learned."""
        return self.settings.of(Schedule)

    @property
    def at_once(self) -> bool:
        """Whether a step learns from all examples there are."""
        return not self.schedule.batch

    @property
    def has_rows(self) -> bool:
        """Whether what arrives has rows of its own, which can learn alone."""
        return bool(self.model.tables())

    @abstractmethod
    def _needs(self, part: Part) -> list[Need]:
        """Memory that the part will take."""

    @abstractmethod
    def _add(self, part: Part) -> Part:
        """Let the graph grow; gives the part in the graph's own ids."""

    def _apply(self, change: Change) -> Change:
        """Let the graph change; gives the change in the graph's own ids."""
        if change.kind == LEARN and change.part is not None:
            return replace(change, part=self._add(change.part))
        applied: Change = self.graph.apply(change)
        return applied

    def _replay(self, history: Iterable[Change]) -> list[Change]:
        """Let the graph change as it did once."""
        return [self._apply(change) for change in history]

    def _prepare(self) -> None:  # noqa: B027 - a model of triples sees the graph itself
        """Make what models see of the graph as it is now."""

    @abstractmethod
    def _grow(self) -> None:
        """Let the model grow by what the newest part brought."""

    @abstractmethod
    def rebuild(self) -> None:
        """Begin with a new model of the size of the graph."""

    @abstractmethod
    def count(self, split: str, first: int = 0, last: int | None = None) -> int:
        """Examples of a split that arrived with parts [first, last)."""

    @abstractmethod
    def examples(self, split: str, first: int = 0, last: int | None = None) -> Tensor:
        """The same examples, oldest first, on the model's device."""

    @abstractmethod
    def old_examples(self, chosen: IntArray) -> Tensor:
        """Training examples by their positions in the history."""

    @abstractmethod
    def objective(self, examples: Tensor) -> Objective:
        """The loss of batches of the examples.

        Args:
            examples: All that will be asked for.
        """

    def objective_around(self, examples: Tensor, batch: int) -> Objective:
        """As `objective`, where the examples are few beside all that is known.

        Args:
            examples: All that will be asked for.
            batch: How many of them at a time.
        """
        del batch
        return self.objective(examples)

    def weights(self, examples: Tensor) -> Tensor | None:
        """How much each example counts beside all others that are known, [n]; None: all alike."""
        del examples
        return None

    def around(self, change: Change) -> IntArray:
        """Training examples that a change concerns, by their positions; each once.

        They mention what the facts did that left, or what is one now.
        """
        del change
        return np.empty(0, np.int64)

    def rows_of(self, change: Change) -> dict[str, Tensor]:
        """Rows of the model's tables that a change speaks of."""
        del change
        return {}

    def gone(self, change: Change) -> Tensor:
        """Training examples that a change took away, for `unlearning`; none where it took none."""
        del change
        return torch.empty(0, dtype=torch.long, device=self.device)

    def unlearning(self, gone: Tensor) -> Objective:
        """How far examples that are not known any more stand out from others that never were."""
        raise NotImplementedError

    def old_rows(self) -> dict[str, int]:
        """How many rows each of the model's tables had before the newest part."""
        return {}

    def rows_in(self, examples: Tensor) -> dict[str, Tensor]:
        """Rows of the model's tables that examples speak of, with repeats; none if it is not known.

        What an example is only compared with, such as the entities of its negatives, is not meant.
        """
        del examples
        return {}

    def outcome(self, examples: Tensor) -> tuple[dict[str, float], Tensor]:
        """Metrics of examples, and for each question whether it was answered (top 10, class).

        An example may ask several questions, such as for its head and its tail: first come those
        of one kind for all examples, then those of the next.
        """
        return self.outcomes([examples])[0]

    @abstractmethod
    def outcomes(self, sets: Sequence[Tensor]) -> list[tuple[dict[str, float], Tensor]]:
        """The same for each of several sets of examples, one at least; they are asked together."""

    def measure(self, examples: Tensor) -> dict[str, float]:
        """Metrics of examples."""
        return self.outcome(examples)[0]

    def describe_part(self) -> dict[str, Any]:
        """Further figures of the newest part once it is learned, for its report."""
        return {}

    @abstractmethod
    def judge(self, examples: Tensor) -> float:
        """What a model is selected by, higher is better."""

    @abstractmethod
    def chance(self) -> float:
        """The metric that a blind guess reaches."""

    def describe_protocol(self) -> dict[str, Any]:
        """How it is measured, for the results."""
        return dict(self.protocol)

    def sample(self, count: int, first: int = 0, last: int | None = None) -> Tensor:
        """Training examples of parts [first, last), drawn evenly without repeats."""
        return self.old_examples(self.draw(count, first, last))

    def draw(self, count: int, first: int = 0, last: int | None = None) -> IntArray:
        """Positions in the history of what `sample` gives."""
        begin = self.count("train", 0, first)
        available = self.count("train", first, last)
        chosen = self.choices.choice(available, min(count, available), replace=False)
        positions: IntArray = np.sort(chosen) + begin
        return positions

    def fit(
        self,
        training_set: TrainingSet,
        monitor: Monitor | None = None,
        schedule: Schedule | None = None,
        *,
        validate: Callable[[], float] | None = None,
    ) -> FitReport:
        """Train the model.

        Args:
            training_set: What is learned.
            monitor: Told about every epoch.
            schedule: How long and how fast; that of the settings unless given.
            validate: Judges the model, see `validator`: the best weights are kept.
        """
        schedule = schedule or self.schedule
        if not schedule.batch:
            schedule = replace(schedule, batch=1 << 30)
        return fit(
            self.model, training_set, schedule, self.generator, validate=validate, monitor=monitor
        )

    def validator(
        self, validate_on: str = "seen", *, from_scratch: bool = False
    ) -> Callable[[], float] | None:
        """What training is stopped by: the model judged on validation data; None without any.

        A later part without validation data of its own is learned to the end: the old data would
        choose the epoch that learned least of it.

        Args:
            validate_on: Validation data of all parts so far (`seen`), of the newest one (`part`),
                or of none (`none`, for later parts).
            from_scratch: Whether the model learns everything again: then all of it is new to it.
        """
        later = self.newest > 0 and not from_scratch
        if later and (validate_on == "none" or not self.count("valid", self.newest)):
            return None
        since = self.newest if validate_on == "part" else 0
        watched = self._watched(self.examples("valid", since))
        return (lambda: self.judge(watched)) if len(watched) else None

    def _watched(self, valid: Tensor) -> Tensor:
        """The validation examples that are looked at in training."""
        return valid

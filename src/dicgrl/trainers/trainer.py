"""The base class of trainers: a growing graph with its model, and all that a strategy may see.

A strategy works with examples, objectives and named parameters. What an example is (a triple or a
node), and how it is scored, is only known here and below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dicgrl.common.devices import check_memory
from dicgrl.common.memory import Need
from dicgrl.common.options import Sections
from dicgrl.graph import Part
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.change import FORGET, LEARN, MERGE, REPLACE, Change
from dicgrl.training import FitReport, Schedule, TrainingSet, fit
from dicgrl.training.loop import Monitor, Trainable
from dicgrl.training.stepper import Objective

#: Bytes per trained number: float32, with its gradient and two moments of Adam.
TRAINED_BYTES = 4 * 4


class Model(Trainable, Protocol):
    """What a trainer requires of a model."""

    generator: torch.Generator

    def configuration(self) -> dict[str, Any]:
        """The arguments that make an empty model like this one, ready for JSON."""

    def requires_grad_(self, requires_grad: bool = True) -> object:
        """Whether dense parameters learn."""


class ExampleGroup(NamedTuple):
    """Examples of one kind.

    Attributes:
        objective: Their loss.
        examples: The examples.
        weight: Weight of each.
        most: How many an epoch takes at most, different ones each time; 0 for all. With full-batch
            steps, so many in each step.
    """

    objective: Objective
    examples: Tensor
    weight: Tensor
    most: int = 0


class Trainer(ABC):
    """Lets a graph and its model grow, and teaches the model what a strategy asks for.

    Args:
        settings: The settings.
        seed: Seed of every random choice. Each change has its own sequence, so that a resumed run
            continues as if it had never stopped.
        device: Where to compute.
    """

    metric: ClassVar[str]  # the main metric
    protocol: ClassVar[dict[str, Any]]  # how it is measured, for the results
    asks_one_by_one: ClassVar[bool] = True  # whether measuring more examples takes longer
    model: Any  # a `Model`; each trainer has its own type
    graph: Any  # a `Graph`; None before the first part
    part: Any  # the newest part, in ids of the graph

    def __init__(self, settings: Sections, seed: int, device: torch.device) -> None:
        self.settings = settings
        self.seed = seed
        self.device = device
        self.num_parts = 0
        self.prepared = -1  # the newest part whose new rows have been set up by a strategy
        self.history: list[Change] = []  # all that happened to the graph, in its own ids
        self.reseed()

    def reseed(self) -> None:
        """Start the random sequence of the next change."""
        number = len(self.history)
        self.generator = torch.Generator(self.device).manual_seed(self.seed + 1_000_003 * number)
        self.choices = np.random.default_rng((self.seed, number))

    def take(self, part: Part) -> None:
        """Let the graph and the model grow by a part; nothing is learned yet.

        Raises:
            UserError: The part is of another task, or the model would not fit into memory. Nothing
                has changed then.
        """
        self.undergo(Change(LEARN, part))

    def undergo(self, change: Change) -> None:
        """Apply a change to the graph, and let the model grow with it; nothing is learned yet.

        Raises:
            UserError: As for `take`.
        """
        for need in self._needs(change.part) if change.part is not None else ():
            what = f"{self.model_name} with {need.setting}"
            check_memory(need.bytes, self.device, what, need.instead)
        self.reseed()
        applied = self._apply(change)
        self._append(applied)
        self._prepare()
        if applied.part is not None:
            self._grow()
            self.num_parts += 1

    def _append(self, *applied: Change) -> None:
        self.history.extend(applied)
        if {FORGET, REPLACE, MERGE} & {c.kind for c in applied}:  # the graph has new arrays
            self.history = [self.graph.shared(change) for change in self.history]

    def note_arrivals(self, part: Part) -> None:
        """Note which facts of a part, as given, arrived again, and their dates."""
        last = self.history[-1]
        if noted := self._noted_of(part, last.part):
            self.history[-1] = replace(last, arrays={**last.arrays, **noted})
            self._note(noted)

    def would_note(self, part: Part) -> bool:
        """Whether there is anything to note about a part whose facts are all known."""
        return bool(self._noted_of(part, None))

    def _noted_of(self, part: Part, arrived: Part | None) -> dict[str, npt.NDArray[Any]]:
        """What to note about a part of which only some facts arrived, as arrays of a `Change`."""
        del part, arrived
        return {}

    def _note(self, noted: Mapping[str, npt.NDArray[Any]]) -> None:  # noqa: B027
        """Note it in the graph."""

    def recall(self, history: Iterable[Change], model: Any) -> None:
        """Restore a history and the model that has learned it; costs as much as the history."""
        self.history = self._replay(history)
        self.num_parts = len(self.taken)
        self._prepare()
        self.model = model
        self.check_model()
        self.prepared = self.newest

    def follow(self, changes: Iterable[Change]) -> None:
        """Append changes that the model has learned already."""
        followed = [self._follow(change) for change in changes]
        self._append(*followed)
        for part in (change.part for change in followed if change.part is not None):
            self.part = part
            self.num_parts += 1
        self._prepare()
        self.check_model()
        self.prepared = self.newest

    def check_model(self) -> None:  # noqa: B027 - a kind of model may fit any graph
        """Refuse a model that does not have the graph's size.

        Raises:
            ValueError: It does not.
        """

    @property
    def model_name(self) -> str:
        """Name of the model."""
        return str(self.settings.model)

    @property
    def taken(self) -> list[Part]:
        """The parts in ids of the graph, oldest first."""
        return [change.part for change in self.history if change.part is not None]

    @property
    def newest(self) -> int:
        """Number of the newest part."""
        return self.num_parts - 1

    @property
    def schedule(self) -> Schedule:
        """How long and how fast to train on everything so far."""
        return self.settings.of(Schedule)

    @property
    def at_once(self) -> bool:
        """Whether steps are full-batch."""
        return not self.schedule.batch

    @property
    def has_rows(self) -> bool:
        """Whether new entities or nodes have rows of their own, which can learn alone."""
        return bool(self.model.tables())

    @abstractmethod
    def _needs(self, part: Part) -> list[Need]:
        """Memory that a part will take."""

    @abstractmethod
    def _add(self, part: Part) -> Part:
        """Let the graph grow; returns the part in the graph's ids."""

    def _apply(self, change: Change) -> Change:
        """Change the graph; returns the change in the graph's ids."""
        if change.kind == LEARN and change.part is not None:
            added = self._add(change.part)
            self._note(change.arrays)  # of an earlier change
            return replace(change, part=added)
        applied: Change = self.graph.apply(change)
        return applied

    def _follow(self, change: Change) -> Change:
        """Like `_apply`, but the model knows the change, so merged rows are blended already."""
        return Trainer._apply(self, change)

    def _replay(self, history: Iterable[Change]) -> list[Change]:
        """Rebuild the graph from its history."""
        return [self._apply(change) for change in history]

    def _prepare(self) -> None:  # noqa: B027 - a model of triples sees the graph itself
        """Prepare what models see of the current graph."""

    @abstractmethod
    def _grow(self) -> None:
        """Let the model grow by the newest part."""

    @abstractmethod
    def rebuild(self) -> None:
        """Replace the model by a new one of the size of the graph."""

    @abstractmethod
    def count(self, split: str, first: int = 0, last: int | None = None) -> int:
        """Number of examples of a split that arrived with parts [first, last)."""

    @abstractmethod
    def examples(self, split: str, first: int = 0, last: int | None = None) -> Tensor:
        """The examples of a split that arrived with parts [first, last), oldest first."""

    @abstractmethod
    def old_examples(self, chosen: IntArray) -> Tensor:
        """Training examples by their positions in the history."""

    @abstractmethod
    def objective(self, examples: Tensor) -> Objective:
        """The loss of batches of the examples.

        Args:
            examples: All examples that the loss will be computed for.
        """

    def objective_around(self, examples: Tensor, batch: int) -> Objective:
        """Like `objective`, if the examples are few compared with everything known.

        Args:
            examples: All examples that the loss will be computed for.
            batch: How many of them at a time.
        """
        del batch
        return self.objective(examples)

    def weights(self, examples: Tensor) -> Tensor | None:
        """Weight of each example among all known ones, [n]; None for equal weights."""
        del examples
        return None

    def around(self, change: Change) -> IntArray:
        """Positions of the training examples that a change concerns, each once.

        They mention the same as removed facts, or something that was merged.
        """
        del change
        return np.empty(0, np.int64)

    def rows_of(self, change: Change) -> dict[str, Tensor]:
        """Rows of the model's tables that a change concerns."""
        del change
        return {}

    def gone(self, change: Change) -> Tensor:
        """Training examples that a change removed, for `unlearning`; may be empty."""
        del change
        return torch.empty(0, dtype=torch.long, device=self.device)

    def unlearning(self, gone: Tensor) -> Objective:
        """How far removed examples stand out from comparable ones that were never known."""
        raise NotImplementedError

    def standing(self, examples: Tensor) -> Tensor | None:
        """How well the model knows examples, higher is better, [n]; None if that is expensive."""
        del examples
        return None

    def old_rows(self) -> dict[str, int]:
        """How many rows each of the model's tables had before the newest part."""
        return {}

    def rows_in(self, examples: Tensor) -> dict[str, Tensor]:
        """Rows of the model's tables that examples mention, possibly repeated; {} if not known.

        Does not include what examples are only compared with, such as entities of negatives.
        """
        del examples
        return {}

    def outcome(self, examples: Tensor) -> tuple[dict[str, float], Tensor]:
        """Metrics of examples, and for each question whether it was answered (top 10, class).

        An example may ask several questions, such as for its head and its tail. Results are sorted
        by kind of question, then by example.
        """
        return self.outcomes([examples])[0]

    @abstractmethod
    def outcomes(self, sets: Sequence[Tensor]) -> list[tuple[dict[str, float], Tensor]]:
        """`outcome` for each of several sets of examples, at least one, measured together."""

    def measure(self, examples: Tensor) -> dict[str, float]:
        """Metrics of examples."""
        return self.outcome(examples)[0]

    def describe_part(self) -> dict[str, Any]:
        """Further numbers about the newest part after it was learned, for its report."""
        return {}

    @abstractmethod
    def judge(self, examples: Tensor) -> float:
        """The value that a model is selected by; higher is better."""

    @abstractmethod
    def chance(self) -> float:
        """The metric that a random guess reaches."""

    def describe_protocol(self) -> dict[str, Any]:
        """How models are measured, for the results."""
        return dict(self.protocol)

    def sample(self, count: int, first: int = 0, last: int | None = None) -> Tensor:
        """Training examples of parts [first, last), drawn uniformly without replacement."""
        return self.old_examples(self.draw(count, first, last))

    def draw(self, count: int, first: int = 0, last: int | None = None) -> IntArray:
        """Like `sample`, but returns positions in the history."""
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
            schedule: How long and how fast to train; by default that of the settings.
            validate: Measures the model (see `validator`); the best weights are kept.
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
        """A function that measures the model on validation data; None if there are none.

        A later part without validation data of its own is trained to the end, as the old data would
        select the epoch that learned least of it.

        Args:
            validate_on: Validation data of all parts so far (`seen`), of the newest one (`part`),
                or of none (`none`, for later parts).
            from_scratch: Whether a new model learns everything.
        """
        later = self.newest > 0 and not from_scratch
        if later and (validate_on == "none" or not self.count("valid", self.newest)):
            return None
        since = self.newest if validate_on == "part" else 0
        watched = self._watched(self.examples("valid", since))
        return (lambda: self.judge(watched)) if len(watched) else None

    def _watched(self, valid: Tensor) -> Tensor:
        """The validation examples that are used during training."""
        return valid

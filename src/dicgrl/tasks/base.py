"""A run: one growing graph, one model, and how they meet. All that a strategy may see.

A strategy works with examples, objectives and named parameters; what an example is (a triple, a
node), how it is scored and which old ones a part concerns is known here and below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dicgrl.common.devices import check_memory
from dicgrl.errors import UserError
from dicgrl.graph import Part
from dicgrl.graph.arrays import IntArray
from dicgrl.models import KnowledgeModel, NetworkModel
from dicgrl.settings import LinkSettings, NodeSettings
from dicgrl.tasks.activation import MAX_COMPONENTS, Activation
from dicgrl.training import FitReport, Schedule, TrainingSet, fit
from dicgrl.training.loop import Monitor
from dicgrl.training.stepper import Objective

#: Of a number that is trained: float32, with its gradient and two moments of Adam.
TRAINED_BYTES = 4 * 4


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Old examples that a part concerns.

    Attributes:
        examples: The examples, on the model's device.
        weight: Weight of each.
        positions: Numbers that tell old examples apart.
        concerned: Old triples or edges whose common components may change.
        candidates: Old triples or edges that were looked at.
        activated: Those that share a component with the new ones.
    """

    examples: Tensor
    weight: Tensor
    positions: IntArray
    concerned: Activation
    candidates: int
    activated: int


class ExampleGroup(NamedTuple):
    """Examples of one kind.

    Attributes:
        objective: What they are learned by.
        examples: The examples.
        weight: Weight of each.
        most: How many an epoch takes at most, others each time; 0 for all. Where a step learns from
            all examples there are, it takes these.
    """

    objective: Objective
    examples: Tensor
    weight: Tensor
    most: int = 0


class Run(ABC):
    """A model that learns a graph part by part.

    Args:
        settings: The settings.
        seed: Seed of every random choice; each part has its own sequence, so that a run that is
            taken up again goes on as if it had never stopped.
        device: Where to compute.
    """

    metric: ClassVar[str]  # what a run is judged by
    settings: LinkSettings | NodeSettings
    model: KnowledgeModel | NetworkModel

    def __init__(
        self, settings: LinkSettings | NodeSettings, seed: int, device: torch.device
    ) -> None:
        if settings.components > MAX_COMPONENTS:
            raise UserError(f"components={settings.components}: at most {MAX_COMPONENTS}")
        self.settings = settings
        self.seed = seed
        self.device = device
        self.num_parts = 0
        self.taken: list[Part] = []  # the parts as the graph sees them
        self.reseed()

    def reseed(self) -> None:
        """Begin the random sequence of the next part."""
        seed = self.seed + 1_000_003 * self.num_parts
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.choices = np.random.default_rng((self.seed, self.num_parts))

    def take(self, part: Part) -> None:
        """Let the graph and the model grow by a part; nothing is learned yet.

        Raises:
            UserError: The part is of another task, or the model would not fit into memory; nothing
                has changed then.
        """
        for needed, setting in self._needs(part):
            check_memory(needed, self.device, f"{self.settings.model} with {setting}")
        self.reseed()
        self.taken.append(self._add(part))
        self._prepare()
        self._grow()
        self.num_parts += 1

    def recall(self, parts: Iterable[Part], model: KnowledgeModel | NetworkModel) -> None:
        """Take in parts that a model has learned already."""
        for part in parts:
            self.taken.append(self._add(part))
            self.num_parts += 1
        self._prepare()
        self.model = model

    @property
    def newest(self) -> int:
        """Number of the newest part."""
        return self.num_parts - 1

    @property
    def at_once(self) -> bool:
        """Whether a step learns from all examples there are."""
        return not self.settings.batch

    @abstractmethod
    def _needs(self, part: Part) -> list[tuple[int, str]]:
        """Bytes that the part will take, at least, and the settings that say so."""

    @abstractmethod
    def _add(self, part: Part) -> Part:
        """Let the graph grow; gives the part in the graph's own ids."""

    def _prepare(self) -> None:  # noqa: B027  # a model of triples sees the graph itself
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
    def objective(self, examples: Tensor, *, old: bool = False) -> Objective:
        """The loss of batches of the examples.

        Args:
            examples: All that will be asked for.
            old: Use the attention of before the part, and let gradients reach only what is open.
        """

    def weights(self, examples: Tensor) -> Tensor | None:
        """How much each example counts, [n], where all are learned from the start; None: alike."""
        del examples
        return None

    @abstractmethod
    def shield(self, examples: Tensor) -> ExampleGroup | None:
        """What protects the answers of old examples from what is new.

        Returns:
            An entry for each example, and the loss of batches of entries. None where there is
            nothing to protect, or nothing to protect it from.
        """

    @abstractmethod
    def draw_shield(self) -> tuple[Tensor, IntArray]:
        """Old examples to make a shield of, as many as the settings say, drawn evenly.

        Returns:
            The examples, and the positions of those that are learned from.
        """

    @abstractmethod
    def activate(self, budget: int, used: IntArray | None = None) -> Replay:
        """Old examples that the newest part concerns.

        Args:
            budget: How many examples the part may replay in all, each counted once.
            used: Positions of those that it has replayed already; none unless given.
        """

    @abstractmethod
    def open_concerned(self, replay: Replay) -> None:
        """Let what is new change, and of what is old the components that are concerned."""

    def brings_news_only(self) -> bool:
        """Whether every example of the newest part speaks of something that came with it.

        It is asked only where rows arrive.
        """
        return False

    @abstractmethod
    def old_rows(self) -> dict[str, int]:
        """How many rows each of the model's tables had before the newest part."""

    def old_weights(self) -> dict[str, int]:
        """Of dense weights that grow, how many rows were there before the newest part, by name."""
        return {}

    def drift(self) -> dict[str, float]:
        """How far answers about what is old moved in the newest part; empty where not known."""
        return {}

    @property
    def has_rows(self) -> bool:
        """Whether what arrives has rows of its own, which can learn alone."""
        return bool(self.model.tables())

    @abstractmethod
    def open_new(self) -> None:
        """Let only what arrived with the newest part change."""

    @abstractmethod
    def open_all(self) -> None:
        """Let everything change."""

    def outcome(self, examples: Tensor) -> tuple[dict[str, float], Tensor]:
        """Metrics of examples, and for each question whether it was answered (top 10, class)."""
        return self.outcomes([examples])[0]

    @abstractmethod
    def outcomes(self, sets: Sequence[Tensor]) -> list[tuple[dict[str, float], Tensor]]:
        """The same for each of several sets of examples, one at least; they are asked together."""

    def measure(self, examples: Tensor) -> dict[str, float]:
        """Metrics of examples."""
        return self.outcome(examples)[0]

    @abstractmethod
    def judge(self, examples: Tensor) -> float:
        """What a model is selected by, higher is better."""

    @abstractmethod
    def chance(self) -> float:
        """The metric that a blind guess reaches."""

    @abstractmethod
    def describe_protocol(self) -> dict[str, Any]:
        """How it is measured, for the results."""

    def _selected(self, protocol: Mapping[str, Any]) -> dict[str, Any]:
        if self.settings.validate_on != "none":
            return dict(protocol)
        return {**protocol, "selection": f"{protocol['selection']}; later parts: the last epoch"}

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
        lesson: TrainingSet,
        monitor: Monitor | None = None,
        schedule: Schedule | None = None,
        *,
        anew: bool = False,
    ) -> FitReport:
        """Train with early stopping on validation data.

        Args:
            lesson: What is learned.
            monitor: Told about every epoch.
            schedule: How long and how fast; that of the settings unless given.
            anew: Whether the model learns everything from the start.
        """
        if schedule is None:
            later = self.newest > 0
            schedule = self.settings.later_schedule() if later else self.settings.schedule()
        if self.at_once:
            schedule = replace(schedule, batch=1 << 30)
        return fit(
            self.model,
            lesson,
            schedule,
            self.generator,
            validate=self.validator(anew),
            monitor=monitor,
        )

    def validator(self, anew: bool = False) -> Callable[[], float] | None:
        """What training is stopped by: the model judged on validation data; None without any.

        A later part without validation data of its own is learned to the end: the old data would
        choose the epoch that learned least of it. To a model that learns `anew`, all of it is new.
        """
        chosen_by = self.settings.validate_on
        later = self.newest > 0 and not anew
        if later and (chosen_by == "none" or not self.count("valid", self.newest)):
            return None
        since = self.newest if chosen_by == "part" else 0
        watched = self._watched(self.examples("valid", since))
        return (lambda: self.judge(watched)) if len(watched) else None

    def _watched(self, valid: Tensor) -> Tensor:
        """The validation examples that are looked at in training."""
        return valid

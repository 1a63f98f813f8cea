"""The state of a learner as plain values, which is all that a run folder knows about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from dicgrl.graph import Part
from dicgrl.graph.change import Change


class Each(Sequence[Any]):
    """What a function makes of each item, made when it is asked for.

    Example:
        >>> Each(abs, [-1, -2])[-1]
        2
    """

    def __init__(self, make: Callable[[Any], Any], items: Sequence[Any]) -> None:
        self._make, self._items = make, items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, number: Any) -> Any:
        return self._make(self._items[number])


@dataclass(frozen=True, slots=True, eq=False)
class LearnerState:
    """A learner after its newest change.

    Attributes:
        identity: Tells the learner from every other one, also from one that learned the same.
        model_name: Name of the model.
        strategy_name: Name of the strategy.
        seed: Seed of every random choice.
        settings: The settings, ready for JSON.
        protocol: How it is measured, ready for JSON.
        names: Readable names by label.
        history: What happened to the learner's graph, oldest first.
        model: The model; None where nothing was learned.
        strategy: Tensors that the strategy keeps, by name.
        reports: What each change took, ready for JSON.
        tests: What was measured on the test sets after each part.
        before: The metric of each part before it was learned, above chance; None where not
            measured.
        retention: How much of the first part is still answered after each part; None where not
            measured.
        first_answers: Which questions of the first part's test set were answered at first, bool
            [questions]; None where not measured.
        version: The version that was read; 0 where it was not.
        stamp: Tells it from others of this number.
    """

    identity: str
    model_name: str
    strategy_name: str
    seed: int
    settings: Mapping[str, Any]
    protocol: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)
    history: Sequence[Change] = ()
    model: Any = None
    strategy: Mapping[str, Tensor] = field(default_factory=dict)
    reports: Sequence[Mapping[str, Any]] = ()
    tests: Sequence[Sequence[dict[str, Any]]] = ()
    before: Sequence[float | None] = ()
    retention: Sequence[float | None] = ()
    first_answers: Tensor | None = None
    version: int = 0
    stamp: int = 0

    @property
    def parts(self) -> list[Part]:
        """The parts that arrived, as the learner's graph sees them, oldest first."""
        return [change.part for change in self.history if change.part is not None]

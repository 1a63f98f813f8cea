"""The state of a learner as plain values: everything that is saved, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from dicgrl.graph import Part
from dicgrl.graph.change import Change


class Each(Sequence[Any]):
    """A sequence like `map(make, items)` that can be indexed; each value is made when it is used.

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
        identity: A random text that no other learner has, even if it learned the same facts.
        model_name: Name of the model.
        strategy_name: Name of the strategy.
        seed: Seed of every random choice.
        settings: The settings, ready for JSON.
        protocol: How it is measured, ready for JSON.
        names: Readable names by label.
        history: All changes of the learner's graph, oldest first.
        model: The model; None if nothing was learned yet.
        strategy: Tensors that the strategy keeps, by name.
        reports: The report of each change, ready for JSON.
        tests: What was measured on the test sets after each part.
        before: The metric of each part before it was learned, above chance; None where not
            measured.
        retention: How much of the first part is still answered after each part; None where not
            measured.
        first_answers: Which questions of the first part's test set were answered at first, bool
            [questions]; None where not measured.
        version: Number of the version that was read; 0 if the state was not read from a folder.
        stamp: Tells that version from one of the same number in a copy of the run.
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

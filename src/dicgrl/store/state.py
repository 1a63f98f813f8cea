"""The state of a learner as plain values: everything that is saved, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from dicgrl.graph import Part
from dicgrl.graph.change import Change

MEASURED = ("report", "before", "retention", "answers", "tests")
"""What may be measured after a version was written: attributes of a version."""


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


@dataclass(frozen=True, slots=True)
class Known:
    """What a learner remembers of a folder from the last time it read or wrote it.

    Attributes:
        version: Number of the version that it read or wrote.
        changes: How many changes the learner had at that version.
        stamp: Tells the version from one of the same number in a copy of the run; 0 if not known.
        edits: The folder's mark of what was written without a version, if the learner has all that;
            else an earlier mark.
        seen: The version at which the learner had all that was written without one.
        named: The learner's count of changes of names when they were last the folder's; -1 if they
            never were.
        measured: What was measured after the newest change, as of `LearnerState.measured`, when the
            folder had the same.
    """

    version: int = 0
    changes: int = 0
    stamp: int = 0
    edits: int = 0
    seen: int = 0
    named: int = -1
    measured: Mapping[str, Any] = field(default_factory=dict)


def merged(there: Any, mine: Any, before: Any) -> Any:
    """What is there, except for values that are mine: those that are not what they were before.

    Example:
        >>> merged({"a": 1, "b": 2}, {"a": 0, "b": 3}, {"a": 0, "b": 0})
        {'a': 1, 'b': 3}
    """
    if not isinstance(there, Mapping) or not isinstance(mine, Mapping):
        return mine
    before = before if isinstance(before, Mapping) else {}
    own = {
        key: merged(there.get(key), value, before.get(key))
        for key, value in mine.items()
        if key not in before or value != before[key]
    }
    return {**there, **own}


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
        edits: Tells what had been written without a version when it was read.
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
    edits: int = 0

    def measured(self, number: int) -> dict[str, Any]:
        """What was measured after a change, as a version has it; nothing if there is no change."""
        if not 0 <= number < len(self.reports):
            return {}
        answers = self.first_answers if number == 0 else None
        return {
            "report": self.reports[number],
            "before": self.before[number],
            "retention": self.retention[number],
            "answers": None if answers is None else "".join(map(str, answers.int().tolist())),
            "tests": self.tests[number],
        }

    @property
    def parts(self) -> list[Part]:
        """The parts that arrived, as the learner's graph sees them, oldest first."""
        return [change.part for change in self.history if change.part is not None]

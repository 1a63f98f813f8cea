"""Turn facts in any form into a checked part that holds what is new in them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dicgrl.ask.names import Names
from dicgrl.errors import DataWarning, UserError, shown
from dicgrl.graph import SPLITS, Graph, Part, Stream
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.labelled import Triples
from dicgrl.readers import NetworkFacts, Reading
from dicgrl.readers.given import as_read
from dicgrl.tasks import Task

Facts = Part | Triples | NetworkFacts | str | Path
"""What `learn` takes: a part of a stream; labelled triples; nodes and edges; a file of either."""

_CONVERTERS = {"pykeen": "from_pykeen", "torch_geometric": "from_pyg"}  # by library


@dataclass(frozen=True, slots=True)
class Intake:
    """What is new in the facts that a learner is given, before it learns them.

    Attributes:
        part: What there is to learn. Of facts, those that are known or held out are dropped; a part
            of a stream is taken as it is.
        names: Readable names that came with the facts.
        given: How many facts there were: triples, or edges of a network.
        given_part: All of them.
        known: How many of them are dropped because they were learned before.
        held_out: How many are dropped because the learner holds them out to measure with.
        self_loops: How many are dropped because they are self loops, which a network has none of.
        named_alike: New labels that are readable names of known ones. They become something new;
            whoever asks by that name then means it.
        is_empty: Whether facts hold nothing to learn; a first part and one of a stream never do.
        is_repeated: Whether it is a part of a stream, all of which is known.
    """

    part: Part
    names: Mapping[str, str]
    given: int
    given_part: Part
    known: int = 0
    held_out: int = 0
    named_alike: tuple[str, ...] = ()
    is_empty: bool = False
    is_repeated: bool = False
    self_loops: int = 0

    def warn(self, part: int) -> None:
        """Tell the caller of `Learner.learn` what is odd about the facts.

        Args:
            part: Number of the part that they become.
        """
        if self.is_repeated:
            known = DataWarning(f"part {part}", "learned before: nothing in it is new")
            warnings.warn(known, stacklevel=3)
        if alike := self.named_alike:
            some = ", ".join(map(shown, alike[:3])) + (", ..." if len(alike) > 3 else "")
            warnings.warn(f"learned as new, although others have these names: {some}", stacklevel=3)


def take_in(
    task: Task, graph: Graph | None, names: Names, facts: Any, reading: Reading | None = None
) -> Intake:
    """Check facts against what a learner knows; nothing is learned.

    Args:
        task: Says what facts are.
        graph: The graph so far; None, or an empty one, before the first part.
        names: Readable names so far.
        facts: What arrived; see `Facts`.
        reading: How files, frames or dicts are to be read, where they do not say it themselves.

    Raises:
        UserError: It is neither a part, nor facts of the task, nor a file of one part.
    """
    begun = graph is not None and graph.num_parts > 0
    part, found = _as_part(task, graph, facts, reading)
    given = part.facts
    ours = isinstance(part, task.part_type)  # else the trainer will refuse it
    if isinstance(facts, Part):
        part = part.checked()
        says = any(len(getattr(part, split)) for split in SPLITS)
        repeated = begun and ours and says and graph is not None and graph.knows_all_of(part)
        return Intake(part, found, given, part, is_repeated=repeated)
    known, held_out, whole = 0, 0, part
    loops = part.self_loops
    if graph is not None and ours:
        part, known, held_out = graph.without_known(part)
        if begun and graph.knows_all_of(part):
            known = given - held_out - loops  # also where the graph drops known ones itself
            return Intake(
                part, found, given, whole, known, held_out, is_empty=True, self_loops=loops
            )
    alike = _named_alike(graph, names, part)
    return Intake(part, found, given, whole, known, held_out, alike, self_loops=loops)


@dataclass(frozen=True, slots=True)
class Retraction:
    """Those of the facts to forget that a learner knows.

    Attributes:
        arrays: Those that it knows, as its graph takes them.
        given: How many there were, each counted once.
        known: How many of them it knows, to learn from or to measure with.
    """

    arrays: Mapping[str, IntArray]
    given: int
    known: int

    @property
    def unknown(self) -> int:
        """How many are not known, and stay so."""
        return self.given - self.known

    def besides(self, graph: Graph, part: Part) -> Retraction:
        """The same without the facts of a part, which are to stay.

        Raises:
            UserError: None is left.
        """
        stay, _ = graph.known_in(part)
        arrays = {name: _without(rows, stay[name]) for name, rows in self.arrays.items()}
        known = sum(map(len, arrays.values()))
        if not known:
            raise UserError(
                "the new facts are the same as the old ones: there is nothing to replace"
            )
        return replace(self, arrays=arrays, known=known)


def find_facts(task: Task, graph: Graph, facts: Any, reading: Reading | None = None) -> Retraction:
    """Find those of some facts that a learner knows; nothing changes.

    Args:
        task: Says what facts are.
        graph: The graph so far.
        facts: What is to be forgotten; see `Facts`.
        reading: How files, frames or dicts are to be read, where they do not say it themselves.

    Raises:
        UserError: None of them is known.
    """
    found = task.known_facts(facts, graph, reading)
    if found is None:
        part, _ = _as_part(task, graph, facts, reading)
        if not isinstance(part, task.part_type):
            raise UserError(f"these are not facts of a {task.graph_is}")
        found = graph.known_in(part.checked())
    arrays, given = found
    known = sum(map(len, arrays.values()))
    if not known:
        few = "the fact is not" if given == 1 else f"none of the {given:,} facts is"
        raise UserError(f"{few} known: there is nothing to forget")
    return Retraction(arrays, given, known)


def _as_part(
    task: Task, graph: Graph | None, facts: Any, reading: Reading | None
) -> tuple[Part, Mapping[str, str]]:
    """The part that facts make, and the readable names beside them."""
    if isinstance(facts, Part):
        return facts, {}
    if isinstance(facts, Stream):
        raise UserError("a stream is learned part by part: for part in stream: learn(part)")
    if (library := type(facts).__module__.partition(".")[0]) in _CONVERTERS:
        raise UserError(f"dicgrl.interop.{_CONVERTERS[library]} makes a stream of it, to learn")
    if isinstance(facts, str | Path):
        return task.read(facts, graph, reading)
    return task.facts(as_read(facts, reading), graph), {}


def _named_alike(graph: Graph | None, names: Names, part: Part) -> tuple[str, ...]:
    readable = {name for label, name in names.items() if name != label}
    if not readable:
        return ()
    known = [] if graph is None else list(graph.vocabularies().values())
    return tuple(
        label
        for labels in part.new_labels().values()
        for label in labels
        if label in readable and not any(label in vocabulary for vocabulary in known)
    )


def _without(rows: IntArray, others: IntArray) -> IntArray:
    """Rows that are not among others; each of both is there once."""
    every = np.concatenate([others, rows])
    first = np.unique(every, axis=0, return_index=True)[1]
    return rows[np.sort(first[first >= len(others)]) - len(others)]

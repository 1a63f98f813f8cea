"""Whether runs can stand in one table: the same graph, and the same questions about it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dicgrl.errors import UserError
from dicgrl.graph import SPLITS, KnowledgePart, NetworkPart, Part
from dicgrl.graph.arrays import IntArray, KeyArray, ids_in
from dicgrl.graph.knowledge import triple_keys
from dicgrl.store.content import part_content, same_content
from dicgrl.store.run_folder import RunFolder


def check_comparable(folders: Sequence[Path]) -> list[str]:
    """Compare what runs have learned with what the first of them has.

    Returns:
        What the reader of a table should know: sets held out of the graph differ, or runs have not
        learned the same number of parts.

    Raises:
        UserError: The runs are of different graphs.
    """
    first, *others = folders
    mine = RunFolder(first).data_checksums()
    warnings = []
    for other in others:
        theirs = RunFolder(other).data_checksums()
        common = min(len(mine), len(theirs))
        if mine[:common] != theirs[:common] and _held_out_differently(first, other, common):
            warnings.append(
                f"{first} and {other} hold out other sets of the same graph: their numbers are "
                "answers to different questions"
            )
        if len(mine) != len(theirs):
            warnings.append(
                f"{first} has learned {len(mine)} parts and {other} {len(theirs)}: the table is "
                "about the last of each"
            )
    return warnings


def _held_out_differently(first: Path, other: Path, parts: int) -> bool:
    """Whether sets are divided otherwise; parts are compared by labels, in whatever order.

    Raises:
        UserError: The parts are not of one graph.
    """
    stored = (
        [change.part for change in RunFolder(folder).history() if change.part is not None]
        for folder in (first, other)
    )
    pairs = list(zip(*stored, strict=False))[:parts]
    none: KeyArray = np.empty(0, np.int64)
    seen = (none, none)
    differs = False
    for number, (mine, theirs) in enumerate(pairs):
        found = None
        if type(mine) is type(theirs):
            found = _compared(mine, theirs, seen)
            seen = found.seen
        if found is None or not found.same:
            raise UserError(
                f"{first} and {other} have learned different graphs: part {number} differs; "
                "compare runs of one graph"
            )
        differs |= found.held_out_otherwise
    return differs


Seen = tuple[KeyArray, KeyArray]
"""Keys of all facts so far, of either run."""


class Compared(NamedTuple):
    """How two parts compare.

    Attributes:
        same: Whether they bring the same facts.
        held_out_otherwise: Whether their sets are divided otherwise.
        seen: Keys of all facts so far, where they are needed for later parts.
    """

    same: bool
    held_out_otherwise: bool
    seen: Seen


@singledispatch
def _compared(mine: Part, theirs: Part, seen: Seen) -> Compared:
    """Compare two parts of one kind; a kind of its own is compared as it stands."""
    return Compared(same_content(part_content(mine), part_content(theirs)), False, seen)


@_compared.register
def _(mine: KnowledgePart, theirs: KnowledgePart, seen: Seen) -> Compared:
    ours = {split: _in_terms_of(mine, theirs, split) for split in SPLITS}
    # What one part holds out is left out of later ones: all facts so far are compared.
    own = {split: triple_keys(getattr(mine, split), wide=True) for split in SPLITS}
    seen = _together(seen[0], own), _together(seen[1], ours)
    otherwise = any(not _same(own[split], ours[split]) for split in SPLITS)
    return Compared(np.array_equal(*seen), otherwise, seen)


@_compared.register
def _(mine: NetworkPart, theirs: NetworkPart, seen: Seen) -> Compared:
    otherwise = any(
        not _same(getattr(mine, split), mine.nodes.found(theirs.nodes, getattr(theirs, split)))
        for split in SPLITS
    )
    return Compared(_same_network(mine, theirs), otherwise, seen)


def _in_terms_of(mine: KnowledgePart, theirs: KnowledgePart, split: str) -> KeyArray:
    """Keys of their triples by our ids; -1 for those that have no meaning here."""
    rows = getattr(theirs, split)
    entity = mine.entities.found(theirs.entities, rows[:, [0, 2]])
    relation = mine.relations.found(theirs.relations, rows[:, 1])
    rows = np.stack([entity[:, 0], relation, entity[:, 1]], axis=1).clip(0)
    known = (entity >= 0).all(axis=1) & (relation >= 0)
    return np.where(known, triple_keys(rows, wide=True), -1)


def _together(before: KeyArray, sets: dict[str, KeyArray]) -> KeyArray:
    """Keys of all triples so far, of whatever set, each once."""
    return np.unique(np.concatenate([before, *sets.values()]))


def _same(one: KeyArray, other: KeyArray) -> bool:
    """Whether two lists hold the same numbers, in whatever order."""
    return np.array_equal(np.unique(one), np.unique(other))


def _same_network(mine: NetworkPart, theirs: NetworkPart) -> bool:
    """Whether nodes, their features and classes, and edges are the same by labels."""
    at = mine.nodes.found(theirs.nodes, ids_in(theirs.new_nodes)) - mine.new_nodes.start
    if not np.array_equal(np.sort(at), np.arange(len(mine.new_nodes))):
        return False
    known = theirs.labels >= 0
    classes = np.full(len(known), -1)
    found = mine.classes.found(theirs.classes, theirs.labels[known])
    classes[known] = np.where(found < 0, -2, found)  # a class that is not known here
    ends = mine.nodes.found(theirs.nodes, theirs.edges)
    return (
        np.array_equal(mine.features[at], theirs.features)
        and np.array_equal(mine.labels[at], classes)
        and np.array_equal(_undirected(mine.edges), _undirected(ends))
    )


def _undirected(edges: IntArray) -> IntArray:
    """Edges in one order; their direction has no meaning."""
    return np.unique(np.sort(edges, axis=1), axis=0)

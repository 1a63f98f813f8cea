"""Whether runs can stand in one table: the same graph, and the same questions about it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dicgrl.errors import UserError
from dicgrl.graph import SPLITS, KnowledgePart, NetworkPart
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.knowledge import triple_keys
from dicgrl.storage import data_checksums, stored_parts


def check_comparable(folders: Sequence[Path]) -> list[str]:
    """Compare what runs have learned with what the first of them has.

    Returns:
        What the reader of a table should know: sets held out of the graph differ, or runs have not
        learned the same number of parts.

    Raises:
        UserError: The runs are of different graphs.
    """
    first, *others = folders
    warnings = []
    for other in others:
        mine, theirs = data_checksums(first), data_checksums(other)
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
    pairs = list(zip(stored_parts(first), stored_parts(other), strict=False))[:parts]
    none: IntArray = np.empty(0, np.int64)
    seen = (none, none)
    differs = False
    for number, (mine, theirs) in enumerate(pairs):
        same = False
        if isinstance(mine, KnowledgePart) and isinstance(theirs, KnowledgePart):
            ours = {split: _in_terms_of(mine, theirs, split) for split in SPLITS}
            # What one part holds out is left out of later ones: all facts so far are compared.
            own = {split: triple_keys(getattr(mine, split)) for split in SPLITS}
            seen = _together(seen[0], own), _together(seen[1], ours)
            same = np.array_equal(*seen)
            differs |= any(set(own[split]) != set(ours[split]) for split in SPLITS)
        elif isinstance(mine, NetworkPart) and isinstance(theirs, NetworkPart):
            same = _content(mine) == _content(theirs)
            differs |= any(_labels_in(mine, split) != _labels_in(theirs, split) for split in SPLITS)
        if not same:
            raise UserError(
                f"{first} and {other} have learned different graphs: part {number} differs; "
                "compare runs of one graph"
            )
    return differs


def _in_terms_of(mine: KnowledgePart, theirs: KnowledgePart, split: str) -> IntArray:
    """Keys of their triples by our ids; -1 for those that have no meaning here."""
    rows = getattr(theirs, split)
    entity = mine.entities.found(theirs.entities, rows[:, [0, 2]])
    relation = mine.relations.found(theirs.relations, rows[:, 1])
    keys = triple_keys(np.stack([entity[:, 0], relation, entity[:, 1]], axis=1).clip(0))
    known = (entity >= 0).all(axis=1) & (relation >= 0)
    return np.where(known, keys, -1)


def _together(before: IntArray, sets: dict[str, IntArray]) -> IntArray:
    """Keys of all triples so far, of whatever set, each once."""
    return np.unique(np.concatenate([before, *sets.values()]))


def _content(part: NetworkPart) -> tuple[object, ...]:
    """Nodes with features and classes, and edges, by labels."""
    nodes = part.nodes.labels(part.new_nodes)
    classes = [*part.classes.labels(range(part.new_classes.stop)), ""]  # -1: not known
    described = zip(part.features.tolist(), (classes[c] for c in part.labels), strict=True)
    ends = [part.nodes.labels(part.edges[:, column]) for column in (0, 1)]
    edges = set(map(frozenset, zip(*ends, strict=True)))  # their direction has no meaning
    return dict(zip(nodes, described, strict=True)), edges


def _labels_in(part: NetworkPart, split: str) -> set[str]:
    return set(part.nodes.labels(getattr(part, split)))

"""Whether runs can stand in one table: the same graph, and the same questions about it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dicgrl.errors import UserError
from dicgrl.graph import SPLITS, KnowledgePart, NetworkPart, Part
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.knowledge import triple_keys
from dicgrl.storage import data_checksums, stored_parts

_NETWORK = ("edges", "features", "labels")


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
    pairs = list(zip(stored_parts(first), stored_parts(other), strict=False))[:parts]
    none: IntArray = np.empty(0, np.int64)
    seen = (none, none)
    differs = False
    for number, (mine, theirs) in enumerate(pairs):
        same = type(mine) is type(theirs) and _labels(mine) == _labels(theirs)
        if isinstance(mine, NetworkPart):
            same = same and all(
                np.array_equal(getattr(mine, name), getattr(theirs, name)) for name in _NETWORK
            )
        elif isinstance(theirs, KnowledgePart):
            # What one part holds out is left out of later ones: all facts so far are compared.
            seen = _facts(seen[0], mine), _facts(seen[1], theirs)
            same = same and np.array_equal(*seen)
        if not same:
            raise UserError(
                f"{first} and {other} have learned different graphs: part {number} differs; "
                "compare runs of one graph"
            )
        differs |= any(
            not np.array_equal(getattr(mine, split), getattr(theirs, split)) for split in SPLITS
        )
    return differs


def _labels(part: Part) -> tuple[list[str], list[str]]:
    if isinstance(part, KnowledgePart):
        return part.entities.labels(part.new_entities), part.relations.labels(part.new_relations)
    return part.nodes.labels(part.new_nodes), part.classes.labels(part.new_classes)


def _facts(before: IntArray, part: KnowledgePart) -> IntArray:
    """Keys of all triples so far, of whatever set, each once."""
    return np.unique(np.concatenate([before, *(triple_keys(getattr(part, s)) for s in SPLITS)]))

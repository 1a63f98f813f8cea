"""How far new entities are from the old graph, and how many facts they have (vectorised)."""

from __future__ import annotations

import numpy as np

from dicgrl.graph.arrays import IntArray


def distances(triples: IntArray, known: int, total: int) -> IntArray:
    """Number of facts between each entity and the nearest of the first `known` ones, [total].

    An entity that cannot be reached has the distance `total` + 1.

    Args:
        triples: The facts, [m, 3].
        known: How many entities are old; their distance is 0.
        total: How many entities there are.

    Example:
        >>> distances(np.array([[0, 0, 2], [3, 0, 2], [4, 0, 5]]), known=2, total=6).tolist()
        [0, 0, 1, 2, 7, 7]
    """
    far = total + 1
    found = np.full(total, far, dtype=np.int64)
    found[:known] = 0
    heads, tails = triples[:, 0], triples[:, 2]
    for level in range(total + 1):
        at_head, at_tail = found[heads], found[tails]
        reached = np.concatenate(
            [
                tails[(at_head == level) & (at_tail == far)],
                heads[(at_tail == level) & (at_head == far)],
            ]
        )
        if not len(reached):
            break
        found[reached] = level + 1
    return found


def degrees(triples: IntArray, total: int) -> IntArray:
    """How often each entity is an end of a fact, [total]."""
    return np.bincount(triples[:, [0, 2]].ravel(), minlength=total)

"""How far new entities are from the old graph, and how many facts they have: arrays, no loops."""

from __future__ import annotations

import numpy as np

from dicgrl.graph.arrays import IntArray


def distances(triples: IntArray, known: int, total: int) -> IntArray:
    """Facts between each entity and the nearest of the first `known` ones, [total].

    What no fact leads to is farther than everything else: `total` + 1.

    Args:
        triples: The facts, [m, 3].
        known: How many entities are old: those are 0 away.
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
    """How many ends of facts each entity is, [total]."""
    return np.bincount(triples[:, [0, 2]].ravel(), minlength=total)

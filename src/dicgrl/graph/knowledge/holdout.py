"""Chooses the triples that a part holds out for validation and testing."""

from __future__ import annotations

import numpy as np

from dicgrl.graph.arrays import BoolArray, IntArray
from dicgrl.graph.holdout import check_shares, divide
from dicgrl.graph.knowledge.keys import triple_keys


def hold_out_triples(
    triples: IntArray,
    valid: float,
    test: float,
    generator: np.random.Generator,
    taught: BoolArray | None = None,
) -> tuple[IntArray, IntArray, IntArray]:
    """Choose positions of train, valid and test triples; each keeps the order of the rows.

    A triple that is the only one left to mention an entity or a relation stays in train, so that
    nothing is asked about that was never taught; so does one that occurs more than once, since its
    copy would give the answer away, and one that was `taught` before. Fewer triples than asked for
    are held out where the graph is too sparse.

    Example:
        >>> rows = np.array([[0, 0, 1], [1, 0, 0], [0, 0, 2], [2, 0, 0]])
        >>> [len(part) for part in hold_out_triples(rows, 0.25, 0.25, np.random.default_rng(0))]
        [2, 1, 1]
    """
    check_shares(valid, test)
    order = generator.permutation(len(triples))
    shuffled = triples[order]
    needed = np.zeros(len(triples), dtype=np.bool_)
    # The first triple (in random order) that mentions something stays in the training set.
    ends = shuffled[:, [0, 2]].ravel()
    needed[np.unique(ends, return_index=True)[1] // 2] = True
    needed[np.unique(shuffled[:, 1], return_index=True)[1]] = True
    _, group, copies = np.unique(triple_keys(shuffled), return_inverse=True, return_counts=True)
    needed |= copies[group] > 1
    if taught is not None:
        needed |= taught[order]
    return divide(order, ~needed, valid, test)

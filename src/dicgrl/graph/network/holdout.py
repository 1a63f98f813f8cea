"""Chooses the nodes that a part holds out for validation and testing."""

from __future__ import annotations

import numpy as np

from dicgrl.graph.arrays import IntArray
from dicgrl.graph.holdout import check_shares, divide


def hold_out_nodes(
    labels: IntArray, valid: float, test: float, generator: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Choose positions of train, valid and test nodes; one node of every class stays in train.

    Nodes without a class (label -1) are in none of the three.

    Example:
        >>> labels = np.array([0, 0, 1, 1, -1])
        >>> [len(part) for part in hold_out_nodes(labels, 0.25, 0.25, np.random.default_rng(0))]
        [2, 1, 1]
    """
    check_shares(valid, test)
    order = generator.permutation(np.flatnonzero(labels >= 0))
    needed = np.zeros(len(order), dtype=np.bool_)
    needed[np.unique(labels[order], return_index=True)[1]] = True
    return divide(order, ~needed, valid, test)

"""Keys: one number per edge, which does not change while the network grows."""

from __future__ import annotations

import numpy as np

from dicgrl.graph.arrays import IntArray

_NODE_BITS = 31


def edge_keys(edges: IntArray) -> IntArray:
    """One int64 per edge, [m].

    Example:
        >>> edge_keys(np.array([[0, 1], [1, 2]])).tolist()
        [1, 2147483650]
    """
    return (edges[:, 0].astype(np.int64) << _NODE_BITS) | edges[:, 1]

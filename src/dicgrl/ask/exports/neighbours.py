"""Which rows have vectors that point in the same direction."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dicgrl.graph.arrays import FloatArray, IntArray

_AT_ONCE = 1 << 24  # numbers of a block of cosines


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The nearest other rows of each row, the nearest one first.

    Attributes:
        rows: Their positions, [n, k].
        distances: How far they are, 1 - cosine, [n, k].
    """

    rows: IntArray
    distances: FloatArray


def nearest_rows(vectors: FloatArray, k: int) -> Neighbours:
    """The k nearest other rows of each row, all compared; fewer where there are fewer rows.

    Example:
        >>> import numpy as np
        >>> nearest_rows(np.array([[1, 0], [0, 1], [2, 1]], np.float32), 1).rows.tolist()
        [[2], [2], [0]]
    """
    directions = torch.nn.functional.normalize(torch.from_numpy(vectors), dim=1)
    count = len(directions)
    k = min(k, count - 1)
    height = max(_AT_ONCE // max(count, 1), 1)
    rows, distances = [], []
    for first in range(0, count, height):
        cosine = directions[first : first + height] @ directions.T
        own = torch.arange(len(cosine))
        cosine[own, first + own] = -torch.inf
        best = cosine.topk(k, dim=1)
        rows.append(best.indices)
        distances.append(1 - best.values)
    return Neighbours(torch.cat(rows).numpy(), torch.cat(distances).numpy())

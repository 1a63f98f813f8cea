"""Nearest neighbours by brute force, a block of rows at a time.

Exact, and of bounded memory; at the sizes that a map can show, nothing cleverer is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dicgrl.graph.arrays import IntArray

_ENTRIES = 1 << 23  # distances that are there at a time
_STRETCH = 64  # columns whose least is looked at first


class Neighbours(NamedTuple):
    """The nearest rows of some rows, the nearest first.

    Attributes:
        ids: Which rows, [n, k].
        distances: How far away they are, [n, k].
    """

    ids: IntArray
    distances: NDArray[np.float32]


def nearest(vectors: Tensor, rows: Tensor, k: int) -> Neighbours:
    """The k nearest of all rows, by Euclidean distance, itself left out.

    Args:
        vectors: All rows, [N, d].
        rows: The rows to find neighbours of, [n].
        k: How many; all others where there are fewer.
    """
    k = min(k, len(vectors) - 1)
    squares = vectors.square().sum(1)
    ids = np.empty((len(rows), k), dtype=np.int64)
    distances = np.empty((len(rows), k), dtype=np.float32)
    step = max(1, _ENTRIES // max(1, len(vectors)))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        # |a - b|^2 less |a|^2, which is the same for all of a row
        found = torch.addmm(squares[None], vectors[block], vectors.T, alpha=-2.0)  # [block, N]
        found[torch.arange(len(block)), block] = torch.inf
        values, columns = _least(found, k)
        ids[start : start + step] = columns.numpy()
        square = values + squares[block, None]
        distances[start : start + step] = square.clamp_min(0.0).sqrt().numpy()
    return Neighbours(ids, distances)


def _least(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k least values of each row, least first, and their columns.

    No more than k stretches of a row can hold them: those whose own least values are the least. So
    most values are only read once, which is three times as quick as to select among all.

    Args:
        values: Rows, [n, N].
        k: How many.
    """
    rows, count = values.shape
    whole = count // _STRETCH * _STRETCH
    if whole <= 2 * k * _STRETCH:
        return tuple(values.topk(k, largest=False))  # type: ignore[return-value]
    stretches = values[:, :whole].view(rows, -1, _STRETCH).amin(2).topk(k, largest=False).indices
    columns = (stretches[:, :, None] * _STRETCH + torch.arange(_STRETCH)).flatten(1)
    rest = torch.arange(whole, count).expand(rows, -1)
    columns = torch.cat([columns, rest], 1)
    best = values.gather(1, columns).topk(k, largest=False)
    return best.values, columns.gather(1, best.indices)

"""Rows of what is one from now on: the mean of both, by the evidence for each."""

from __future__ import annotations

from torch import Tensor

from dicgrl.graph.arrays import IntArray


def blend_rows(rows: Tensor, pairs: IntArray, evidence: IntArray) -> None:
    """Put into the first row of each pair the mean of both, by the evidence for each.

    Args:
        rows: [n, width]; they are changed.
        pairs: Positions of the rows, [m, 2].
        evidence: How much there is for each of them, [m, 2].

    Example:
        >>> import numpy as np
        >>> import torch
        >>> rows = torch.tensor([[0.0], [4.0]])
        >>> blend_rows(rows, np.array([[0, 1]]), np.array([[1, 3]]))
        >>> rows.tolist()
        [[3.0], [4.0]]
    """
    gathered: dict[int, int] = {}  # of one that takes in several
    for (kept, gone), (own, more) in zip(pairs.tolist(), evidence.tolist(), strict=True):
        before = gathered.get(kept, own)
        more = gathered.get(gone, more)
        if more:
            rows[kept] += (rows[gone] - rows[kept]) * (more / (before + more))
        gathered[kept] = before + more

"""Rows of merged ids: the mean of both, weighted by the evidence for each."""

from __future__ import annotations

from torch import Tensor

from dicgrl.graph.arrays import IntArray


def blend_rows(rows: Tensor, pairs: IntArray, evidence: IntArray) -> None:
    """Replace the first row of each pair by the mean of both, weighted by evidence.

    Args:
        rows: [n, width]; changed in place.
        pairs: Positions of the rows, [m, 2].
        evidence: Weight of each row, [m, 2].

    Example:
        >>> import numpy as np
        >>> import torch
        >>> rows = torch.tensor([[0.0], [4.0]])
        >>> blend_rows(rows, np.array([[0, 1]]), np.array([[1, 3]]))
        >>> rows.tolist()
        [[3.0], [4.0]]
    """
    gathered: dict[int, int] = {}  # evidence of a row that others were merged into before
    for (kept, gone), (own, more) in zip(pairs.tolist(), evidence.tolist(), strict=True):
        before = gathered.get(kept, own)
        more = gathered.get(gone, more)
        if more:
            rows[kept] += (rows[gone] - rows[kept]) * (more / (before + more))
        gathered[kept] = before + more

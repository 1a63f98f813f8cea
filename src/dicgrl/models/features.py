"""Feature vectors that are mostly zero, such as bags of words."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


class SparseRows:
    """The non-zero numbers of a matrix, row by row.

    The cost of dropout and multiplication depends on the number of non-zero values. For bags of
    words that is a hundredth of the whole matrix, which would take most of a training step.

    Args:
        rows: A matrix, [N, F].

    Example:
        >>> rows = SparseRows(torch.tensor([[0.0, 2.0], [0.0, 0.0]]))
        >>> len(rows), rows.values.tolist()
        (2, [2.0])
        >>> rows.linear(torch.tensor([[1.0, 3.0]]), torch.tensor([0.5])).tolist()
        [[6.5], [0.5]]
    """

    def __init__(self, rows: Tensor) -> None:
        row, self.column = rows.nonzero().unbind(1)
        self.values = rows[row, self.column]
        self.shape = rows.shape
        self.start = torch.zeros(len(rows), dtype=torch.long, device=rows.device)
        torch.cumsum(torch.bincount(row, minlength=len(rows))[:-1], 0, out=self.start[1:])

    def __len__(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def density(self) -> float:
        """Share of the numbers that are not zero."""
        return len(self.values) / max(self.shape.numel(), 1)

    def linear(self, weight: Tensor, bias: Tensor, dropout: float = 0.0) -> Tensor:
        """Rows times weight [o, F], plus bias [o], after dropout."""
        values = F.dropout(self.values, dropout)
        return bias + F.embedding_bag(
            self.column, weight.T.contiguous(), self.start, mode="sum", per_sample_weights=values
        )

"""Compact gradients: only the rows that a step has touched have one.

A gradient buffer as large as the table takes as much memory as the table, and its rows are far
apart. A step touches some ten thousand rows whatever the size of the table, so a buffer with as
many places is enough, and fits in a cache. Rows get their places without sorting and without
waiting for the device: every mention of a row writes its own place into one number per row
(`claims`), one of them wins, and whoever adds to the row's gradient reads it there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dicgrl.kernels import available


class TouchedGradients:
    """Places for the gradients of a step; all zero while nothing is claimed.

    Args:
        width: Length of a row.
        device: Where the rows live.

    Example:
        >>> gradients, claims = TouchedGradients(1, torch.device("cpu")), torch.zeros(9).int()
        >>> ids = torch.tensor([7, 2, 7])
        >>> places = places_of(ids, gradients.claim(ids, claims))
        >>> gradients.rows.index_add_(0, places, torch.ones(3, 1))[claims[[2, 7]] - 1].tolist()
        [[1.0], [2.0]]
    """

    def __init__(self, width: int, device: torch.device) -> None:
        self._rows = torch.zeros(0, width, device=device)
        self._outgrown: list[Tensor] = []
        self.taken = 0

    @property
    def rows(self) -> Tensor:
        """Gradients by place, [taken, width]; zero for places that no row uses."""
        return self._rows[: self.taken]

    def claim(self, ids: Tensor, claims: Tensor) -> Tensor:
        """Give rows [m], which may be repeated, new places, unless they have one.

        Args:
            ids: The rows.
            claims: For each row of the table its place plus 1, or 0; int32.

        Returns:
            `claims`, in which the places are written.
        """
        first, self.taken = self.taken, self.taken + len(ids)
        if self.taken > len(self._rows):
            self._reserve(self.taken)
        if available(ids, claims):
            from dicgrl.kernels.claims import claim  # needs Triton

            claim(ids, claims, first)
            return claims
        places = torch.arange(first + 1, self.taken + 1, device=ids.device, dtype=torch.int32)
        if first:
            held = claims.index_select(0, ids)
            places = torch.where(held > 0, held, places)
        return claims.index_copy_(0, ids, places)

    def clear(self) -> None:
        """Set all gradients to zero and release their places."""
        self.rows.zero_()
        self.taken = 0

    def forget(self) -> None:
        """Release the places; the gradients have been set to zero already."""
        self.taken = 0

    def _reserve(self, places: int) -> None:
        larger = self._rows.new_zeros(places, self._rows.shape[1])
        larger[: len(self._rows)] = self._rows
        if self._rows.is_cuda:  # a recorded step keeps using its buffer
            self._outgrown.append(self._rows)
        self._rows = larger


def places_of(ids: Tensor, claims: Tensor) -> Tensor:
    """Places of rows [m] that have claimed one."""
    return claims.index_select(0, ids).long().sub_(1)


class Gather(torch.autograd.Function):
    """Reads rows of a table, and adds their gradients to the table's."""

    @staticmethod
    def forward(ctx: Any, _anchor: Tensor, table: Any, ids: Tensor) -> Tensor:
        """Rows of a `Table`, [*ids.shape, width], in the type used for training."""
        ctx.table = table
        ctx.save_for_backward(ids)
        rows: Tensor = table.rows[ids].to(table.learned)
        return rows

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        """Add their gradients to the table's."""
        (ids,) = ctx.saved_tensors
        ctx.table.accumulate(ids, gradient)
        return None, None, None


class Run(torch.autograd.Function):
    """Reads a range of rows of a table without a copy, and adds their gradients to the table's."""

    @staticmethod
    def forward(ctx: Any, _anchor: Tensor, table: Any, first: int, last: int) -> Tensor:
        """Rows [first, last) of a `Table`, in the type used for training."""
        ctx.table, ctx.first = table, first
        rows: Tensor = table.rows[first:last].to(table.learned)
        return rows

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None, None]:
        """Add their gradients to the table's."""
        ctx.table.pull(gradient, ctx.first)
        return None, None, None, None

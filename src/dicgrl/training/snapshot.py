"""A copy of weights that training can return to."""

from __future__ import annotations

import torch
from torch import nn

from dicgrl.models.copies import RowCopies
from dicgrl.models.table import Table


class Snapshot:
    """The last good state of everything that may change: rows of tables, and dense parameters.

    Tables that are too large for a copy in memory are left out.

    Args:
        tables: The tables.
        parameters: The dense parameters.
    """

    def __init__(self, tables: list[Table], parameters: list[nn.Parameter]) -> None:
        self._rows = [RowCopies(table) for table in tables]
        self._parameters = parameters
        self.take()

    @property
    def kept(self) -> bool:
        """Whether nothing was left out."""
        return all(rows.complete for rows in self._rows)

    def take(self) -> None:
        """Copy the current state of what may change."""
        for rows in self._rows:
            rows.retake()
        self._dense = [parameter.detach().clone() for parameter in self._parameters]

    def cover(self) -> None:
        """Add rows that have been allowed to move since."""
        for rows in self._rows:
            rows.cover()

    @torch.no_grad()
    def restore(self) -> None:
        """Restore the copy."""
        for rows in self._rows:
            rows.restore()
        for parameter, values in zip(self._parameters, self._dense, strict=True):
            parameter.copy_(values)

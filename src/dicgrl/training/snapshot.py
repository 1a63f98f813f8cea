"""The weights that training goes back to."""

from __future__ import annotations

import torch
from torch import nn

from dicgrl.models.copies import RowCopies
from dicgrl.models.table import Table


class Snapshot:
    """The last good state of what may change: open rows of tables, and dense parameters.

    Of a table so large that there is no memory for a copy, nothing is kept.

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
        """Whether all of it is kept."""
        return all(rows.complete for rows in self._rows)

    def take(self) -> None:
        """Copy what may change as it is now."""
        for rows in self._rows:
            rows.retake()
        self._dense = [parameter.detach().clone() for parameter in self._parameters]

    def cover(self) -> None:
        """Add rows that may move since."""
        for rows in self._rows:
            rows.cover()

    @torch.no_grad()
    def restore(self) -> None:
        """Put back what was kept."""
        for rows in self._rows:
            rows.restore()
        for parameter, values in zip(self._parameters, self._dense, strict=True):
            parameter.copy_(values)

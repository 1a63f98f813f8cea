"""The last good state of a model while it is trained."""

from __future__ import annotations

import torch
from torch import nn

from dicgrl.models.table import RowCopies, Table


class Snapshot:
    """The last good state of what may change: open rows of tables, and dense parameters.

    Args:
        tables: Tables of rows.
        parameters: Dense parameters.
    """

    def __init__(self, tables: list[Table], parameters: list[nn.Parameter]) -> None:
        self._rows = [RowCopies(table) for table in tables]
        self._parameters = parameters
        self.take()

    def take(self) -> None:
        """Forget the copies and take new ones."""
        for rows in self._rows:
            rows.retake()
        self._dense = [parameter.detach().clone() for parameter in self._parameters]

    def cover(self) -> None:
        """Add rows that may move since."""
        for rows in self._rows:
            rows.cover()

    @torch.no_grad()
    def restore(self) -> None:
        """Put back what was copied."""
        for rows in self._rows:
            rows.restore()
        for parameter, values in zip(self._parameters, self._dense, strict=True):
            parameter.copy_(values)

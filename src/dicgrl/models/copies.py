"""Copies of rows of a table, taken before they change; the cost depends on how many may change."""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.common.devices import free_memory
from dicgrl.models.table import Table


class RowCopies:
    """Copies of the rows of a table that may change, taken before they do.

    Call `cover` whenever more rows may move: until then they could not have changed.

    Args:
        table: The table.
        state: Copy the optimiser's state as well, for `restore`.

    Attributes:
        copies: Ids of rows, and what they and their state were.
        complete: Whether all rows that may change were copied: of a large table of which all may,
            none is where there is no memory for it.
    """

    def __init__(self, table: Table, *, state: bool = True) -> None:
        self.table = table
        self._state = state
        self._none = torch.empty(0, dtype=torch.long, device=table.rows.device)
        self._movable: Tensor | None = self._none
        self.copies: list[tuple[Tensor, dict[str, Tensor]]] = []
        self.complete = True

    def cover(self) -> None:
        """Copy the rows that may change now and were not copied before."""
        table = self.table
        if table.movable is self._movable:
            return
        self._movable = table.movable
        ids = table.movable
        if ids is None:
            self.complete = self._has_room()
            if not self.complete:
                self.copies = []
                return
            ids = torch.arange(len(table), device=self._none.device)
            if not self.copies:  # all of them, which is quicker than one by one
                self.copies.append((ids, table.read(None, state=self._state)))
                return
        if self.copies:
            ids = ids[~torch.isin(ids, torch.cat([copied for copied, _ in self.copies]))]
        self.copies.append((ids, table.read(ids, state=self._state)))

    def _has_room(self) -> bool:
        """Whether a copy of all rows leaves as much memory free as it takes."""
        if not self.table.sparse:
            return True
        free = free_memory(self._none.device)
        return free is None or 2 * self.table.bytes_of(state=self._state) < free

    def retake(self) -> None:
        """Forget the copies and copy the rows that may change as they are now."""
        self._movable, self.copies = self._none, []
        self.cover()

    def restore(self) -> None:
        """Put every copied row back."""
        for ids, values in self.copies:
            self.table.write(ids, values)

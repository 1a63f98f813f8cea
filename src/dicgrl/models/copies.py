"""Copies of rows of a table, taken before they change; the cost depends on how many may change."""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.common.devices import free_memory
from dicgrl.models.table import Table


class RowCopies:
    """Copies of the rows of a table that may change, taken before they do.

    Call `cover` whenever further rows are allowed to change.

    Args:
        table: The table.
        state: Whether to copy the optimiser's state as well, for `restore`.

    Attributes:
        copies: Ids of rows, with copies of the rows and their state.
        complete: Whether all rows that may change were copied. If all rows of a large table may
            change and there is no memory for a copy, none are.
    """

    def __init__(self, table: Table, *, state: bool = True) -> None:
        self.table = table
        self._state = state
        self._none = torch.empty(0, dtype=torch.long, device=table.rows.device)
        self._movable: Tensor | None = self._none
        self.copies: list[tuple[Tensor, dict[str, Tensor]]] = []
        self.complete = True

    def cover(self) -> None:
        """Copy the rows that may change and have not been copied yet."""
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
            if not self.copies:  # copying everything is faster than by ids
                self.copies.append((ids, table.read(None, state=self._state)))
                return
        if self.copies:
            ids = ids[~torch.isin(ids, torch.cat([copied for copied, _ in self.copies]))]
        self.copies.append((ids, table.read(ids, state=self._state)))

    def _has_room(self) -> bool:
        """Whether at least as much memory as a copy of all rows takes would remain free."""
        if not self.table.sparse:
            return True
        free = free_memory(self._none.device)
        return free is None or 2 * self.table.bytes_of(state=self._state) < free

    def retake(self) -> None:
        """Replace the copies by the current values of the rows that may change."""
        self._movable, self.copies = self._none, []
        self.cover()

    def restore(self) -> None:
        """Restore every copied row."""
        for ids, values in self.copies:
            self.table.write(ids, values)

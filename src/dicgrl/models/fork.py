"""A copy of a table that can be extended on its own, at the cost of what is appended to it."""

from __future__ import annotations

import torch

from dicgrl.models.table import Table


def fork_table(table: Table, rows: int = 0) -> Table:
    """The same rows, to be extended on their own and not to be trained.

    While the fork is used, the table must rest: room for more is shared.

    Args:
        table: The table.
        rows: How many will be appended; the table has room for them afterwards, so that the next
            fork need not copy anything.

    Example:
        >>> table = Table(2)
        >>> table.grow(torch.zeros(3, 2))
        >>> fork = fork_table(table, 1)
        >>> fork.grow(torch.ones(1, 2))
        >>> len(table), len(fork)
        (3, 4)
    """
    table.reserve(rows)
    made = Table(table.width, table.rows.device, table.rows.dtype)
    buffer = table._buffers["rows"]
    nothing = torch.zeros((), device=buffer.device).expand(buffer.shape)  # it has no memory
    made._length, made._buffers = table._length, {"rows": buffer, "gradient": nothing}
    return made

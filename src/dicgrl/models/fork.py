"""A copy of a table that can be extended on its own, at the cost of what is appended to it."""

from __future__ import annotations

import torch

from dicgrl.models.table import Table


def fork_table(table: Table, rows: int = 0) -> Table:
    """A copy of a table that can be extended independently, but not trained.

    While the fork is in use, the table must not be changed, as they share memory.

    Args:
        table: The table.
        rows: How many rows will be appended. The table then has room for them, so that the next
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
    nothing = torch.zeros((), device=buffer.device).expand(buffer.shape)  # takes no memory
    made._length, made._buffers = table._length, {"rows": buffer, "gradient": nothing}
    return made

"""Rows: how many at a time, which are an entity's, and longer buffers of them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dicgrl.common.devices import free_memory

_AT_ONCE = 1 << 24  # numbers of new rows that are drawn at a time


def in_blocks(count: int, width: int) -> Iterator[int]:
    """Sizes of blocks that so many rows are made in: the same numbers as if it were one.

    Example:
        >>> list(in_blocks(3_000_000, 10))
        [1677712, 1322288]
    """
    most = max(_AT_ONCE // width // 16, 1) * 16  # a generator draws sixteen numbers together
    while count > most:
        yield most
        count -= most
    yield count


def all_rows_of(ids: Tensor, count: int) -> Tensor:
    """All rows that entities [n] of so many rows each have, [n * count]."""
    if count == 1:
        return ids
    return (ids[:, None] * count + torch.arange(count, device=ids.device)).flatten()


def longer(rows: Tensor, count: int, used: int) -> Tensor:
    """A buffer of so many rows that begins with the used ones of another, zero behind them.

    Where a device has no room for both, they wait on the host. Whoever calls this keeps no other
    reference to the old one.
    """
    place, shape = rows.device, (count, *rows.shape[1:])
    if rows.is_cuda:
        free = free_memory(place)
        if free is not None and rows[:1].numel() * count * rows.element_size() > free:
            rows = rows[:used].cpu()
            torch.cuda.empty_cache()
    made = torch.zeros(shape, dtype=rows.dtype, device=place)
    made[:used] = rows[:used]
    return made

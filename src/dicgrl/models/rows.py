"""Helpers for rows: block sizes, the rows of an entity, and longer buffers."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dicgrl.common.devices import free_memory

_AT_ONCE = 1 << 24  # numbers to draw at a time for new rows


def in_blocks(count: int, width: int) -> Iterator[int]:
    """Sizes of blocks to draw rows in, which give the same numbers as one large block.

    Example:
        >>> list(in_blocks(3_000_000, 10))
        [1677712, 1322288]
    """
    most = max(_AT_ONCE // width // 16, 1) * 16  # a generator draws numbers in groups of sixteen
    while count > most:
        yield most
        count -= most
    yield count


def all_rows_of(ids: Tensor, count: int) -> Tensor:
    """All rows of entities [n] that have `count` rows each, [n * count]."""
    if count == 1:
        return ids
    return (ids[:, None] * count + torch.arange(count, device=ids.device)).flatten()


def longer(rows: Tensor, count: int, used: int) -> Tensor:
    """A buffer of `count` rows that begins with the used rows of another, followed by zeros.

    If a device has no room for both, the rows are moved to the host meanwhile. The caller must not
    hold another reference to the old buffer.
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

"""Numbers of rows: how many at a time, and which are an entity's."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

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

"""Rows of a table claim places: each mention writes its place, and one of them wins.

Neither sorts nor waits. The reference is `TouchedGradients.claim` in PyTorch.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


def claim(ids: Tensor, claims: Tensor, first: int = 0) -> None:
    """Write the place of each mention plus 1 to its row, unless the row has an earlier place.

    Args:
        ids: Rows, possibly repeated, [m]; their places are consecutive.
        claims: For each row its place plus 1, or 0; int32.
        first: Place of the first of them; rows with a place before it keep theirs.
    """
    if len(ids):
        _claim[(triton.cdiv(len(ids), _BLOCK),)](
            ids.contiguous(), claims, first, len(ids), HELD=first > 0, BLOCK=_BLOCK
        )


@triton.jit(do_not_specialize=["first", "count"])
def _claim(ids, claims, first, count, HELD: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    number = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = number < count
    row = tl.load(ids + number, mask=inside, other=0)
    if HELD:  # a later place is that of another mention here, which may be overwritten
        held = tl.load(claims + row, mask=inside, other=0)
        inside = inside & ((held == 0) | (held > first))
    tl.store(claims + row, first + number + 1, mask=inside)

"""Adam on the touched rows of a table: gradient in, row and moments out, gradient cleared.

A row may be listed many times. Every place in the list writes its number to the row's entry of
`claims`, one of them stays, and that one moves the row. Where the list is longer than the table,
all rows are visited instead and those without a claim are left. The reference is `RowAdam` in
PyTorch.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl
from torch import Tensor

_TILE = 2048  # rows x dimensions that a program holds
_CLAIMS = 1024


def adam(
    rows: Tensor,
    gradient: Tensor,
    moments: tuple[Tensor, Tensor],
    steps: Tensor,
    pace: Tensor | None,
    claims: Tensor,
    touched: Tensor,
    rate: Tensor,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> None:
    """Move the touched rows in place and set their gradients to zero.

    Args:
        rows: [n, width].
        gradient: Likewise.
        moments: Likewise, both.
        steps: Steps of each row, [n, 1].
        pace: Learning rate of each row as a multiple of `rate`, 0 for none, [n, 1]; None for 1.
        claims: Zeros, [n], int32; left as zeros where the next step reads them.
        touched: Rows with a gradient, with repeats, [m].
        rate: Learning rate, one number on the device.
        betas: Decay of the moments.
        eps: Added to the denominator.
        weight_decay: Pull towards zero.
    """
    touched = touched.contiguous()
    listed = len(touched) < len(rows)
    count, width = len(touched) if listed else len(rows), rows.shape[1]
    dims = triton.next_power_of_2(width)
    tall = max(_TILE // dims, 1)
    _claim[(triton.cdiv(len(touched), _CLAIMS),)](touched, claims, len(touched), BLOCK=_CLAIMS)
    _adam[(triton.cdiv(count, tall),)](
        rows, gradient, *moments, steps, pace, claims, touched, rate, count,
        1 - betas[0], betas[1], 1 - betas[1], math.log(betas[0]), math.log(betas[1]), eps,
        weight_decay,
        width=width, LISTED=listed, RESTRICTED=pace is not None, ROWS=tall, DIMS=dims,
    )  # fmt: skip


@triton.jit(do_not_specialize=["count"])
def _claim(touched, claims, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(touched + place, mask=place < count, other=0)
    tl.store(claims + row, place + 1, mask=place < count)


@triton.jit(do_not_specialize=["count"])
def _adam(  # type: ignore[no-untyped-def]
    rows, gradient, moment1, moment2, steps, pace, claims, touched, rate, count,
    new1, keep2, new2, log1, log2, eps, weight_decay,
    width: tl.constexpr, LISTED: tl.constexpr, RESTRICTED: tl.constexpr,
    ROWS: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = place < count
    if LISTED:
        row = tl.load(touched + place, mask=inside, other=0).to(tl.int64)
        mine = inside & (tl.load(claims + row, mask=inside, other=0) == place + 1)
    else:
        row = place.to(tl.int64)
        mine = inside & (tl.load(claims + row, mask=inside, other=0) > 0)
    tl.store(claims + row, tl.zeros([ROWS], dtype=tl.int32), mask=mine)
    dims = tl.arange(0, DIMS)
    at = row[:, None] * width + dims[None, :]
    both = mine[:, None] & (dims < width)[None, :]
    cleared = both
    if RESTRICTED:  # frozen rows are only cleared
        share = tl.load(pace + row, mask=mine, other=0.0)
        mine = mine & (share > 0.0)
        both = mine[:, None] & (dims < width)[None, :]
    g = tl.load(gradient + at, mask=both, other=0.0)
    tl.store(gradient + at, tl.zeros([ROWS, DIMS], dtype=tl.float32), mask=cleared)
    x = tl.load(rows + at, mask=both, other=0.0)
    first = tl.load(moment1 + at, mask=both, other=0.0)
    second = tl.load(moment2 + at, mask=both, other=0.0)
    number = tl.load(steps + row, mask=mine, other=0.0) + 1.0
    g += weight_decay * x
    first += new1 * (g - first)
    second = keep2 * second + new2 * g * g
    # In double precision: in single the difference to 1 would lose half its digits at the start.
    wide = number.to(tl.float64)
    bias1 = (1.0 - tl.exp(wide * log1)).to(tl.float32)
    bias2 = (1.0 - tl.exp(wide * log2)).to(tl.float32)
    move = (first / bias1[:, None]) / (tl.sqrt(second / bias2[:, None]) + eps)
    if RESTRICTED:
        move = move * share[:, None]
    tl.store(rows + at, x - tl.load(rate) * move, mask=both)
    tl.store(moment1 + at, first, mask=both)
    tl.store(moment2 + at, second, mask=both)
    tl.store(steps + row, number, mask=mine)

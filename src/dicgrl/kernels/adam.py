"""Adam on the touched rows of a table: reads the gradient, updates row and state, clears it.

A row may be listed several times. Each place in the list writes its number to the row's entry in
`claims`; one of them wins, and this one updates the row. If the list is longer than the table, all
rows are visited instead, and those without a claim are skipped. In a table with sparse gradients
the claims were made when rows were touched, and a gradient is at the place that its row kept. The
reference is `RowAdam` in PyTorch.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from dicgrl.kernels.claims import claim

_TILE = 1024  # rows x dimensions that a program holds
_ALIGNED = 2048  # with a single moment, and rows that are read four numbers at a time


def adam(
    rows: Tensor,
    gradient: Tensor,
    state: tuple[Tensor, ...],
    pace: Tensor | None,
    claims: Tensor,
    touched: Tensor,
    rate: Tensor,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
    *,
    sparse: bool = False,
    total: bool = False,
) -> None:
    """Move the touched rows in place and set their gradients to zero.

    Args:
        rows: [n, width], float32, or bfloat16 with stochastic rounding.
        gradient: [n, width]; if sparse, one row for each place in `touched`.
        state: Both moments, [n, width], or the mean of a row's squared gradients, [n, 1], or the
            sums of all squared gradients, [n, width]; then the steps of each row, [n, 1].
        pace: Learning rate of each row as a multiple of `rate`, 0 if frozen, [n, 1]; None for 1.
        claims: Zeros, [n], int32; if sparse, the place of each row in `touched` plus 1. Set back to
            zero where the next step reads them.
        touched: Rows with a gradient, possibly repeated, [m].
        rate: Learning rate, one number on the device.
        betas: Decay of the moments.
        eps: Added to the denominator.
        weight_decay: Pull towards zero.
        sparse: Whether gradients are stored by place.
        total: Whether the state is the sums of squared gradients.
    """
    touched = touched.contiguous()
    listed = sparse or len(touched) < len(rows)
    count, width = len(touched) if listed else len(rows), rows.shape[1]
    dims = triton.next_power_of_2(width)
    tile = _ALIGNED if len(state) == 2 and width % 4 == 0 else _TILE
    tall = max(tile // dims, 1)
    if not sparse:
        claim(touched, claims)
    *moments, steps = state
    first, second = (None, *moments) if len(moments) == 1 else moments
    _adam[(triton.cdiv(count, tall),)](
        rows, gradient, first, second, steps, pace, claims, touched, rate, count,
        1 - betas[0], betas[1], 1 - betas[1], math.log(betas[0]), math.log(betas[1]), eps,
        weight_decay,
        width=width, LISTED=listed, RESTRICTED=pace is not None, SPARSE=sparse,
        ROWWISE=first is None and not total, TOTAL=total, SHORT=rows.dtype == torch.bfloat16,
        ROWS=tall, DIMS=dims,
    )  # fmt: skip


@triton.jit
def _rounded(x, row, moves, place):  # type: ignore[no-untyped-def]
    """As `dicgrl.common.rounding.stochastic`."""
    word = row.to(tl.uint32)[:, None] * 0x9E3779B1 + moves.to(tl.uint32)[:, None] * 0x85EBCA77
    word += place.to(tl.uint32)[None, :] * 0xC2B2AE3D
    word = (word ^ (word >> 16)) * 0x7FEB352D
    word = (word ^ (word >> 15)) * 0x846CA68B
    added = ((word ^ (word >> 16)) & 0xFFFF).to(tl.int32)
    bits = x.to(tl.int32, bitcast=True)
    finite = (bits & 0x7F800000) != 0x7F800000
    kept = ((bits + added) & -65536).to(tl.float32, bitcast=True)
    return tl.where(finite, kept, x).to(tl.bfloat16)


@triton.jit
def _short_of_one(y):  # type: ignore[no-untyped-def]
    """1 - exp(y) of numbers below 0; a series keeps the digits that the difference would lose."""
    series = 1.0 + y / 6.0 * (1.0 + y / 7.0 * (1.0 + y / 8.0))
    series = 1.0 + y / 3.0 * (1.0 + y / 4.0 * (1.0 + y / 5.0 * series))
    return tl.where(y > -0.5, -y * (1.0 + y / 2.0 * series), 1.0 - tl.exp(y))


@triton.jit(do_not_specialize=["count"])
def _adam(  # type: ignore[no-untyped-def]
    rows, gradient, moment1, moment2, steps, pace, claims, touched, rate, count,
    new1, keep2, new2, log1, log2, eps, weight_decay,
    width: tl.constexpr, LISTED: tl.constexpr, RESTRICTED: tl.constexpr, SPARSE: tl.constexpr,
    ROWWISE: tl.constexpr, TOTAL: tl.constexpr, SHORT: tl.constexpr,
    ROWS: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = place < count
    if LISTED:
        row = tl.load(touched + place, mask=inside, other=0).to(tl.int64)
        claimed = inside & (tl.load(claims + row, mask=inside, other=0) == place + 1)
    else:
        row = place.to(tl.int64)
        claimed = inside & (tl.load(claims + row, mask=inside, other=0) > 0)
    dims = tl.arange(0, DIMS)
    real = (dims < width)[None, :]
    at = row[:, None] * width + dims[None, :]
    at_gradient = at
    if SPARSE:
        at_gradient = place.to(tl.int64)[:, None] * width + dims[None, :]
    mine = claimed
    if RESTRICTED:  # frozen rows are only cleared
        share = tl.load(pace + row, mask=mine, other=0.0)
        mine = mine & (share > 0.0)
    both = mine[:, None] & real
    # All loads before any store: a store between them makes the kernel three times as slow.
    number = tl.load(steps + row, mask=mine, other=0.0) + 1.0
    if ROWWISE:
        second = tl.load(moment2 + row, mask=mine, other=0.0)[:, None]
    else:
        second = tl.load(moment2 + at, mask=both, other=0.0)
    if not (ROWWISE or TOTAL):
        first = tl.load(moment1 + at, mask=both, other=0.0)
    g = tl.load(gradient + at_gradient, mask=both, other=0.0)
    x = tl.load(rows + at, mask=both, other=0.0).to(tl.float32)
    g += weight_decay * x
    if TOTAL:
        second += g * g
        move = g / (tl.sqrt(second) + eps)
    else:
        if ROWWISE:
            first = g
            second = keep2 * second + (new2 / width) * tl.sum(g * g, 1)[:, None]
        else:
            first += new1 * (g - first)
            second = keep2 * second + new2 * g * g
        move = 1.0 / (tl.sqrt(second / _short_of_one(number * log2)[:, None]) + eps)
        move *= first if ROWWISE else first / _short_of_one(number * log1)[:, None]
    if RESTRICTED:
        move = move * share[:, None]
    x = x - tl.load(rate) * move
    if SHORT:
        tl.store(rows + at, _rounded(x, row, number, dims), mask=both)
    else:
        tl.store(rows + at, x, mask=both)
    if ROWWISE:
        tl.store(moment2 + row, tl.sum(second, 1), mask=mine)
    else:
        tl.store(moment2 + at, second, mask=both)
    if not (ROWWISE or TOTAL):
        tl.store(moment1 + at, first, mask=both)
    tl.store(steps + row, number, mask=mine)
    nothing = tl.zeros([ROWS, DIMS], dtype=tl.float32)
    tl.store(gradient + at_gradient, nothing, mask=claimed[:, None] & real)
    tl.store(claims + row, tl.zeros([ROWS], dtype=tl.int32), mask=claimed)

"""A loss and its gradient in one pass over the scores.

A program takes a block of triples with all their negatives, and writes each triple's share of the
loss and the gradients of its scores; the backward pass only scales these. The references are the
losses in `dicgrl.training.losses`.
"""

from __future__ import annotations

from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

KINDS: Final = ("softmargin", "margin", "selfadversarial", "softmax", "meanmargin")
_TILE = 2048  # triples x negatives that a program holds


def loss(
    kind: str,
    margin: float,
    temperature: float,
    positive: Tensor,
    negative: Tensor,
    mask: Tensor | None,
    weight: Tensor,
) -> Tensor:
    """Weighted mean of a loss, differentiable in the scores.

    Args:
        kind: One of `KINDS`.
        margin: Margin of the loss; the softmax has none.
        temperature: Temperature of the self-adversarial loss.
        positive: [b].
        negative: [b, m]; for the softmax, the first half have other heads.
        mask: Which negatives exist, [b, m]; None for all.
        weight: [b].
    """
    options = (KINDS.index(kind), margin, temperature)
    total: Tensor = _Loss.apply(options, positive, negative, mask, weight)  # type: ignore[no-untyped-call]
    return total


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        options: tuple[int, float, float],
        positive: Tensor,
        negative: Tensor,
        mask: Tensor | None,
        weight: Tensor,
    ) -> Tensor:
        kind, margin, temperature = options
        triples, count = negative.shape
        width = triton.next_power_of_2(max(count, 1))
        rows = max(_TILE // width, 1)
        each = torch.empty_like(positive)
        # One buffer for both gradients: scaled by a single operation.
        slopes = torch.empty(triples * (1 + count), device=each.device, dtype=each.dtype)
        if triples:
            _loss[(triton.cdiv(triples, rows),)](
                positive.contiguous(), negative.contiguous(),
                None if mask is None else mask.contiguous(), weight.contiguous(), weight.sum(),
                each, slopes, slopes[triples:], triples, count, margin, temperature,
                KIND=kind, MASKED=mask is not None, ROWS=rows, WIDTH=width,
            )  # fmt: skip
        ctx.save_for_backward(slopes)
        ctx.shape = negative.shape
        return each.sum()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (slopes,) = ctx.saved_tensors
        triples = ctx.shape[0]
        slopes = slopes * upstream
        return None, slopes[:triples], slopes[triples:].view(ctx.shape), None, None


@triton.jit
def _softplus(x):  # type: ignore[no-untyped-def]
    small = tl.exp(-tl.abs(x))
    # log(1 + e) would lose the digits of a small e.
    rest = tl.where(small < 1e-3, small - 0.5 * small * small, tl.log(1.0 + small))
    return tl.maximum(x, 0.0) + rest


@triton.jit
def _sigmoid(x):  # type: ignore[no-untyped-def]
    small = tl.exp(-tl.abs(x))
    return tl.where(x >= 0.0, 1.0, small) / (1.0 + small)


@triton.jit(do_not_specialize=["triples"])
def _loss(  # type: ignore[no-untyped-def]
    positive, negative, mask, weight, weight_sum, each, d_positive, d_negative,
    triples, count, margin, temperature,
    KIND: tl.constexpr, MASKED: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    inside = row < triples
    exists = inside[:, None] & (column < count)[None, :]
    place = row[:, None] * count + column[None, :]
    p = tl.load(positive + row, mask=inside, other=0.0)
    n = tl.load(negative + place, mask=exists, other=0.0)
    if MASKED:
        exists = exists & (tl.load(mask + place, mask=exists, other=0) != 0)
    share = tl.load(weight + row, mask=inside, other=0.0)
    share = share / tl.maximum(tl.load(weight_sum), 1e-12)
    if KIND == 1:
        gap = margin - p[:, None] + n
        wrong = tl.where(exists, tl.maximum(gap, 0.0), 0.0)
        wrong = tl.where(exists & (gap != gap), gap, wrong)  # a maximum may swallow a NaN
        number = tl.maximum(tl.sum(exists.to(tl.float32), 1), 1.0)
        value = tl.sum(wrong, 1) / number
        d_n = tl.where(exists & (gap > 0.0), 1.0, 0.0) / number[:, None]
        d_p = -tl.sum(d_n, 1)
    elif KIND == 4:
        number = tl.maximum(tl.sum(exists.to(tl.float32), 1), 1.0)
        gap = margin - p + tl.sum(tl.where(exists, n, 0.0), 1) / number
        value = tl.where(gap != gap, gap, tl.maximum(gap, 0.0)) / (1.0 + count)
        d_p = tl.where(gap > 0.0, -1.0, 0.0) / (1.0 + count)
        d_n = tl.where(exists, -d_p[:, None] / number[:, None], 0.0)
    elif KIND == 3:
        # The two sides are separate: each has its own highest score and sum.
        head = (column < count // 2)[None, :]
        n = tl.where(exists, n, -float("inf"))
        head_top = tl.maximum(p, tl.max(tl.where(head, n, -float("inf")), 1))
        tail_top = tl.maximum(p, tl.max(tl.where(head, -float("inf"), n), 1))
        d_n = tl.exp(n - tl.where(head, head_top[:, None], tail_top[:, None]))
        head_wrong = tl.sum(tl.where(head, d_n, 0.0), 1)
        tail_wrong = tl.sum(tl.where(head, 0.0, d_n), 1)
        head_sum = tl.exp(p - head_top) + head_wrong
        tail_sum = tl.exp(p - tail_top) + tail_wrong
        value = 0.5 * (head_top + tail_top + tl.log(head_sum) + tl.log(tail_sum)) - p
        d_p = -0.5 * (head_wrong / head_sum + tail_wrong / tail_sum)
        d_n = d_n * tl.where(head, (0.5 / head_sum)[:, None], (0.5 / tail_sum)[:, None])
    else:
        value = _softplus(-p - margin)
        d_p = -_sigmoid(-p - margin)
        wrong = tl.where(exists, _softplus(n + margin), 0.0)
        d_n = tl.where(exists, _sigmoid(n + margin), 0.0)
        if KIND == 0:
            scale = 1.0 / (1.0 + count)
            value = (value + tl.sum(wrong, 1)) * scale
        else:
            scale = 0.5
            logits = tl.where(exists, n * temperature, -1e30)
            hard = tl.where(exists, tl.exp(logits - tl.max(logits, 1)[:, None]), 0.0)
            hard = hard / tl.maximum(tl.sum(hard, 1), 1e-30)[:, None]
            value = (value + tl.sum(hard * wrong, 1)) * scale
            d_n = d_n * hard
        d_p = d_p * scale
        d_n = d_n * scale
    tl.store(each + row, value * share, mask=inside)
    tl.store(d_positive + row, d_p * share, mask=inside)
    written = inside[:, None] & (column < count)[None, :]
    tl.store(d_negative + place, d_n * share[:, None], mask=written)

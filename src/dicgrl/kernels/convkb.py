"""ConvKB's score and gradients without its [pairs, dim, filters] intermediate.

score(p) = sum_i sum_m W[i, m] relu(k0[m] h[p, i] + k1[m] r[p, i] + k2[m] t[p, i] + b[m])

For each pair, dim x filters inner terms of about five operations are computed and consumed in
registers; only the three vectors are read, and one number is written. The backward pass runs the
same loop twice: once per pair for the gradients of the vectors, and, if the parameters learn, once
per tile of filters and dimensions, pair after pair, for theirs. The reference is `ConvKB.score` in
PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

_PAIRS, _DIMS = 16, 64  # tile of pairs x dimensions that a program holds
_FILTERS = 8  # x _DIMS: tile of the parameter gradients, which walks over pairs
_CHUNK = 1024  # pairs per program


def conv_score(
    head: Tensor, relation: Tensor, tail: Tensor, kernel: Tensor, bias: Tensor, weight: Tensor
) -> Tensor:
    """Scores of pairs, differentiable in everything.

    Args:
        head: Vectors [..., dim]; the leading shapes of the three broadcast.
        relation: Likewise.
        tail: Likewise.
        kernel: Filters, [3, M].
        bias: [M].
        weight: [dim, M].
    """
    shape = torch.Size(np.broadcast_shapes(head.shape, relation.shape, tail.shape))
    flat = [_two_level(vectors, shape) for vectors in (head, relation, tail)]
    scores: Tensor = _ConvScore.apply(*flat, kernel, bias, weight)  # type: ignore[no-untyped-call]
    return scores.view(shape[:-1])


def _two_level(vectors: Tensor, shape: torch.Size) -> Tensor:
    """A view or copy of shape [a, b, dim]; broadcast axes keep stride 0 where they can."""
    expanded = vectors.expand(shape)
    if len(shape) == 3:
        return expanded
    return expanded.reshape(1, -1, shape[-1])


class _ConvScore(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        head: Tensor,
        relation: Tensor,
        tail: Tensor,
        kernel: Tensor,
        bias: Tensor,
        weight: Tensor,
    ) -> Tensor:
        outer, inner, dim = head.shape
        filters = torch.cat([kernel, bias[None]]).contiguous()  # [4, M]
        by_filter = weight.t().contiguous()  # [M, dim]
        scores = torch.empty(outer * inner, device=head.device, dtype=head.dtype)
        grid = (triton.cdiv(outer * inner, _PAIRS),)
        _forward[grid](
            head, relation, tail, filters, by_filter, scores,
            outer * inner, inner, *head.stride(), *relation.stride(), *tail.stride(),
            dim=dim, count=kernel.shape[1], PAIRS=_PAIRS, DIMS=_DIMS,
        )  # fmt: skip
        ctx.save_for_backward(head, relation, tail, filters, by_filter)
        return scores

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        head, relation, tail, filters, by_filter = ctx.saved_tensors
        outer, inner, dim = head.shape
        pairs, count = outer * inner, by_filter.shape[0]
        upstream = upstream.contiguous()
        strides = (*head.stride(), *relation.stride(), *tail.stride())
        d_vectors = torch.empty(3, outer, inner, dim, device=head.device, dtype=head.dtype)
        _backward_vectors[(triton.cdiv(pairs, _PAIRS), triton.cdiv(dim, _DIMS))](
            head, relation, tail, filters, by_filter, upstream, d_vectors, pairs * dim,
            pairs, inner, *strides,
            dim=dim, count=count, PAIRS=_PAIRS, DIMS=_DIMS,
        )  # fmt: skip
        if not any(ctx.needs_input_grad[3:]):
            return (*d_vectors.unbind(0), None, None, None)
        d_filters = torch.zeros_like(filters)
        d_weight = torch.zeros_like(by_filter)
        grid = (triton.cdiv(count, _FILTERS), triton.cdiv(dim, _DIMS), triton.cdiv(pairs, _CHUNK))
        _backward_parameters[grid](
            head, relation, tail, filters, by_filter, upstream, d_filters, d_weight,
            pairs, inner, *strides,
            dim=dim, count=count, FILTERS=_FILTERS, DIMS=_DIMS, CHUNK=_CHUNK, num_warps=2,
        )  # fmt: skip
        return (*d_vectors.unbind(0), d_filters[:3], d_filters[3], d_weight.t())


@triton.jit
def _tile(base, pair, dims, inner, s_outer, s_inner, s_dim, mask):  # type: ignore[no-untyped-def]
    """Rows of vectors [PAIRS, DIMS] at pair numbers, 0 where masked."""
    row = (pair // inner).to(tl.int64) * s_outer + (pair % inner).to(tl.int64) * s_inner
    return tl.load(base + row[:, None] + dims[None, :] * s_dim, mask=mask, other=0.0)


@triton.jit(do_not_specialize=["pairs", "inner"])
def _forward(  # type: ignore[no-untyped-def]
    head, relation, tail, filters, weight, scores,
    pairs, inner,
    h0, h1, h2, r0, r1, r2, t0, t1, t2,
    dim: tl.constexpr, count: tl.constexpr, PAIRS: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0) * PAIRS + tl.arange(0, PAIRS)
    total = tl.zeros([PAIRS], dtype=tl.float32)
    for first in range(0, dim, DIMS):
        dims = first + tl.arange(0, DIMS)
        mask = (pair < pairs)[:, None] & (dims < dim)[None, :]
        h = _tile(head, pair, dims, inner, h0, h1, h2, mask)
        r = _tile(relation, pair, dims, inner, r0, r1, r2, mask)
        t = _tile(tail, pair, dims, inner, t0, t1, t2, mask)
        part = tl.zeros([PAIRS, DIMS], dtype=tl.float32)
        for m in range(count):
            k0 = tl.load(filters + m)
            k1 = tl.load(filters + count + m)
            k2 = tl.load(filters + 2 * count + m)
            b = tl.load(filters + 3 * count + m)
            w = tl.load(weight + m * dim + dims, mask=dims < dim, other=0.0)
            seen = tl.maximum(k0 * h + k1 * r + k2 * t + b, 0.0)
            part += seen * w[None, :]
        total += tl.sum(part, 1)
    tl.store(scores + pair, total, mask=pair < pairs)


@triton.jit(do_not_specialize=["step", "pairs", "inner"])
def _backward_vectors(  # type: ignore[no-untyped-def]
    head, relation, tail, filters, weight, upstream, d_vectors, step,
    pairs, inner,
    h0, h1, h2, r0, r1, r2, t0, t1, t2,
    dim: tl.constexpr, count: tl.constexpr, PAIRS: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0) * PAIRS + tl.arange(0, PAIRS)
    dims = tl.program_id(1) * DIMS + tl.arange(0, DIMS)
    mask = (pair < pairs)[:, None] & (dims < dim)[None, :]
    h = _tile(head, pair, dims, inner, h0, h1, h2, mask)
    r = _tile(relation, pair, dims, inner, r0, r1, r2, mask)
    t = _tile(tail, pair, dims, inner, t0, t1, t2, mask)
    g = tl.load(upstream + pair, mask=pair < pairs, other=0.0)
    d_h = tl.zeros([PAIRS, DIMS], dtype=tl.float32)
    d_r = tl.zeros([PAIRS, DIMS], dtype=tl.float32)
    d_t = tl.zeros([PAIRS, DIMS], dtype=tl.float32)
    for m in range(count):
        k0 = tl.load(filters + m)
        k1 = tl.load(filters + count + m)
        k2 = tl.load(filters + 2 * count + m)
        b = tl.load(filters + 3 * count + m)
        w = tl.load(weight + m * dim + dims, mask=dims < dim, other=0.0)
        open_ = k0 * h + k1 * r + k2 * t + b > 0.0
        slope = tl.where(open_, w[None, :], 0.0)
        d_h += slope * k0
        d_r += slope * k1
        d_t += slope * k2
    place = d_vectors + pair.to(tl.int64)[:, None] * dim + dims[None, :]
    tl.store(place, d_h * g[:, None], mask=mask)
    tl.store(place + step, d_r * g[:, None], mask=mask)
    tl.store(place + 2 * step, d_t * g[:, None], mask=mask)


@triton.jit(do_not_specialize=["pairs", "inner"])
def _backward_parameters(  # type: ignore[no-untyped-def]
    head, relation, tail, filters, weight, upstream, d_filters, d_weight,
    pairs, inner,
    h0, h1, h2, r0, r1, r2, t0, t1, t2,
    dim: tl.constexpr, count: tl.constexpr,
    FILTERS: tl.constexpr, DIMS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * FILTERS + tl.arange(0, FILTERS)
    dims = tl.program_id(1) * DIMS + tl.arange(0, DIMS)
    there, inside = m < count, dims < dim
    k0 = tl.load(filters + m, mask=there, other=0.0)[:, None]
    k1 = tl.load(filters + count + m, mask=there, other=0.0)[:, None]
    k2 = tl.load(filters + 2 * count + m, mask=there, other=0.0)[:, None]
    b = tl.load(filters + 3 * count + m, mask=there, other=0.0)[:, None]
    both = there[:, None] & inside[None, :]
    at_weight = m[:, None] * dim + dims[None, :]
    w = tl.load(weight + at_weight, mask=both, other=0.0)
    d_w = tl.zeros([FILTERS, DIMS], dtype=tl.float32)
    d_k0 = tl.zeros([FILTERS, DIMS], dtype=tl.float32)
    d_k1 = tl.zeros([FILTERS, DIMS], dtype=tl.float32)
    d_k2 = tl.zeros([FILTERS, DIMS], dtype=tl.float32)
    d_b = tl.zeros([FILTERS, DIMS], dtype=tl.float32)
    for step in range(CHUNK):
        pair = tl.program_id(2) * CHUNK + step
        real = tl.where(pair < pairs, inside, False)
        outer_at, inner_at = (pair // inner).to(tl.int64), (pair % inner).to(tl.int64)
        h = tl.load(head + outer_at * h0 + inner_at * h1 + dims * h2, mask=real, other=0.0)
        r = tl.load(relation + outer_at * r0 + inner_at * r1 + dims * r2, mask=real, other=0.0)
        t = tl.load(tail + outer_at * t0 + inner_at * t1 + dims * t2, mask=real, other=0.0)
        g = tl.load(upstream + pair, mask=pair < pairs, other=0.0)
        seen = k0 * h[None, :] + k1 * r[None, :] + k2 * t[None, :] + b
        slope = tl.where(seen > 0.0, g, 0.0)
        d_w += slope * seen
        d_k0 += slope * h[None, :]
        d_k1 += slope * r[None, :]
        d_k2 += slope * t[None, :]
        d_b += slope
    tl.atomic_add(d_weight + at_weight, d_w, mask=both)
    tl.atomic_add(d_filters + m, tl.sum(d_k0 * w, 1), mask=there)
    tl.atomic_add(d_filters + count + m, tl.sum(d_k1 * w, 1), mask=there)
    tl.atomic_add(d_filters + 2 * count + m, tl.sum(d_k2 * w, 1), mask=there)
    tl.atomic_add(d_filters + 3 * count + m, tl.sum(d_b * w, 1), mask=there)

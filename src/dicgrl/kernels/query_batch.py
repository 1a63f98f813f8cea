"""Compare queries with the triples' own ends and their negatives: scores, and gradients of rows.

A query decoder compares a query, made of one end and the relation, with the other end. It makes its
queries in PyTorch, [b, l] for each side, and gets their gradients from here. What would be
[b, m, l] only exists in registers. A program takes one triple and one side, as in
`dicgrl.kernels.transe_batch`: it gathers a tile of negatives x dimensions, and only writes scores.
The backward pass gathers the tile again, adds the negatives' gradients to the table's buffer by
atomic additions, and sums up the gradient of the query. The reference is the decoder's `score` on
gathered vectors in PyTorch.

If only some rows may change, the backward pass skips a negative if neither its rows nor the query
may.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dicgrl.kernels.batch import Batch, Compare
from dicgrl.kernels.rows import asked_of, columns_of, movable, placed

_TILE = 2048  # negatives x dimensions that a program holds
# The same as for TransE, whose programs move the same rows.
_FORWARD_WARPS = {False: 1, True: 2}  # whether vectors are routed -> warps of a program
_BACKWARD_WARPS = {False: 2, True: 4}


def scores(batch: Batch, queries: Tensor, compare: Compare) -> tuple[Tensor, Tensor]:
    """Scores of the triples, [b], and of their negatives, [b, m].

    Args:
        batch: The triples and their negatives.
        queries: The queries that heads, and that tails, are compared with, [2, b, l].
        compare: How to compare.
    """
    positive = queries.new_empty(len(batch.triples))
    negative = queries.new_empty(batch.others.shape)
    if len(batch.triples):
        _forward[(len(batch.triples), 2)](
            *_pointers(batch, queries), positive, negative, len(batch.triples),
            **_sizes(batch, compare), num_warps=_FORWARD_WARPS[batch.chosen is not None],
        )  # fmt: skip
    return positive, negative


def scatter(
    batch: Batch,
    queries: Tensor,
    compare: Compare,
    upstream: tuple[Tensor, Tensor],
    d_entities: Tensor,
    gated: bool,
) -> tuple[Tensor, Tensor | None]:
    """Add the gradients of the negatives, and of the tails from the triples' scores, to the buffer.

    The decoder turns the gradients of queries into those of their ends and relations.

    Args:
        batch: As in the forward pass.
        queries: Likewise, [2, b, l].
        compare: Likewise.
        upstream: Gradients of the scores, [b] and [b, m].
        d_entities: Gradients of the entities' rows, or of those that have a place, added to.
        gated: Whether the components' gates need a gradient.

    Returns:
        Gradients of the queries, [2, b, l], which are 0 if nothing that a query is made of may
        change; and gradients of the gates through the vectors that queries are compared with,
        [b, n], None if not needed.
    """
    parts = 1 if batch.chosen is None else batch.chosen.shape[1]
    d_queries = torch.empty_like(queries)
    d_gate = queries.new_empty(2, len(batch.triples), parts) if gated else None
    if len(batch.triples):
        paces = (None, None, None) if batch.pace is None else batch.pace
        _backward[(len(batch.triples), 2)](
            *_pointers(batch, queries), *(each.contiguous() for each in upstream),
            d_entities, d_queries, d_gate, batch.claims, *paces, len(batch.triples),
            **_sizes(batch, compare), DIVIDED=batch.divided, GATED=gated,
            RESTRICTED=batch.pace is not None, PLACED=batch.claims is not None,
            num_warps=_BACKWARD_WARPS[batch.chosen is not None],
        )  # fmt: skip
    return d_queries, None if d_gate is None else d_gate.sum(0)


def _pointers(batch: Batch, queries: Tensor) -> tuple[Tensor | None, ...]:
    assert queries.is_contiguous()
    chosen = None if batch.chosen is None else batch.chosen.contiguous()
    others = batch.others.contiguous()
    return batch.entities, queries, batch.triples.contiguous(), others, chosen


def _sizes(batch: Batch, compare: Compare) -> dict[str, int | bool | str]:
    size = batch.entities.shape[1]
    parts = 1 if batch.chosen is None else batch.chosen.shape[1]
    dims = max(triton.next_power_of_2(size * parts), 2)
    return {
        "heads": batch.heads, "total": batch.others.shape[1],
        "size": size, "parts": parts, "count": batch.count, "ROUTED": batch.chosen is not None,
        "COMPARE": compare, "DIMS": dims, "NEGATIVES": max(_TILE // dims, 1),
    }  # fmt: skip


@triton.jit
def _moduli(difference, ROWS: tl.constexpr, DIMS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Moduli of complex numbers whose parts are side by side: [ROWS, DIMS] to [ROWS, DIMS / 2]."""
    return tl.sqrt(tl.sum(tl.reshape(difference * difference, [ROWS, DIMS // 2, 2]), 2))


@triton.jit
def _score(q, x, ROWS: tl.constexpr, DIMS: tl.constexpr, COMPARE: tl.constexpr):  # type: ignore[no-untyped-def]
    """Scores of vectors [ROWS, DIMS] with a query; coordinates beyond the length are 0 in both."""
    if COMPARE == "dot":
        score = tl.sum(q[None, :] * x, 1)
    elif COMPARE == "modulus":
        score = -tl.sum(_moduli(q[None, :] - x, ROWS, DIMS), 1)
    elif COMPARE == "l2":
        score = -tl.sqrt(tl.sum((q[None, :] - x) * (q[None, :] - x), 1))
    else:
        score = -tl.sum(tl.abs(q[None, :] - x), 1)
    return score


@triton.jit
def _slopes(  # type: ignore[no-untyped-def]
    q, x, upstream, ROWS: tl.constexpr, DIMS: tl.constexpr, COMPARE: tl.constexpr
):
    """Gradients of vectors [ROWS, DIMS], and of the query for each of them; 0 at distance 0."""
    if COMPARE == "dot":
        d_x = upstream[:, None] * q[None, :]
        d_q = upstream[:, None] * x
    else:
        difference = q[None, :] - x
        if COMPARE == "modulus":
            modulus = _moduli(difference, ROWS, DIMS)
            pull = upstream[:, None] / tl.where(modulus > 0.0, modulus, 1.0)
            both = tl.broadcast_to(pull[:, :, None], [ROWS, DIMS // 2, 2])
            d_x = difference * tl.reshape(both, [ROWS, DIMS])
        elif COMPARE == "l2":
            distance = tl.sqrt(tl.sum(difference * difference, 1))
            d_x = difference * (upstream / tl.where(distance > 0.0, distance, 1.0))[:, None]
        else:
            sign = (difference > 0.0).to(tl.float32) - (difference < 0.0).to(tl.float32)
            d_x = sign * upstream[:, None]
        d_q = -d_x
    return d_x, d_q


@triton.jit(do_not_specialize=["triple_count"])
def _forward(  # type: ignore[no-untyped-def]
    entities, queries, triples, others, chosen, positive, negative, triple_count,
    heads: tl.constexpr, total: tl.constexpr,
    size: tl.constexpr, parts: tl.constexpr, count: tl.constexpr,
    ROUTED: tl.constexpr, COMPARE: tl.constexpr, DIMS: tl.constexpr, NEGATIVES: tl.constexpr,
):  # fmt: skip
    triple = tl.program_id(0).to(tl.int64)
    side = tl.program_id(1)
    dims = tl.arange(0, DIMS)
    real = dims < size * parts
    columns = columns_of(chosen, triple, dims, size, parts, ROUTED)
    stride: tl.constexpr = size * count
    q_at = (side * triple_count + triple) * (size * parts) + dims
    q = tl.load(queries + q_at, mask=real, other=0.0)
    if side == 1:
        at_tail = tl.load(triples + triple * 3 + 2).to(tl.int64) * stride + columns
        t = tl.load(entities + at_tail, mask=real, other=0.0).to(tl.float32)
        tl.store(positive + triple + tl.arange(0, 1), _score(q, t[None, :], 1, DIMS, COMPARE))
    for first in range(side * heads, heads + side * (total - heads), NEGATIVES):
        number = first + tl.arange(0, NEGATIVES)
        there = number < heads + side * (total - heads)
        ids = tl.load(others + triple * total + number, mask=there, other=0).to(tl.int64)
        both = there[:, None] & real[None, :]
        place = ids[:, None] * stride + columns[None, :]
        x = tl.load(entities + place, mask=both, other=0.0).to(tl.float32)
        score = _score(q, x, NEGATIVES, DIMS, COMPARE)
        tl.store(negative + triple * total + number, score, mask=there)


@triton.jit(do_not_specialize=["triple_count"])
def _backward(  # type: ignore[no-untyped-def]
    entities, queries, triples, others, chosen, d_positive, d_negative,
    d_entities, d_queries, d_gate, claims, pace, relation_pace, attention_pace, triple_count,
    heads: tl.constexpr, total: tl.constexpr,
    size: tl.constexpr, parts: tl.constexpr, count: tl.constexpr,
    ROUTED: tl.constexpr, COMPARE: tl.constexpr, DIMS: tl.constexpr, NEGATIVES: tl.constexpr,
    DIVIDED: tl.constexpr, GATED: tl.constexpr, RESTRICTED: tl.constexpr, PLACED: tl.constexpr,
):  # fmt: skip
    triple = tl.program_id(0).to(tl.int64)
    side = tl.program_id(1)
    dims = tl.arange(0, DIMS)
    real = dims < size * parts
    columns = columns_of(chosen, triple, dims, size, parts, ROUTED)
    stride: tl.constexpr = size * count
    q_at = (side * triple_count + triple) * (size * parts) + dims
    q = tl.load(queries + q_at, mask=real, other=0.0)
    asked = True  # whether what the query is made of may change
    if RESTRICTED:
        end = tl.load(triples + triple * 3 + 2 * (1 - side)).to(tl.int64)  # the one that stays
        relation = tl.load(triples + triple * 3 + 1).to(tl.int64)
        asked = asked_of(
            pace, relation_pace, attention_pace, chosen, triple, end, relation,
            parts, count, ROUTED, DIVIDED, GATED,
        )  # fmt: skip
    summed = tl.zeros([DIMS], dtype=tl.float32)  # gradient of the query
    gate = tl.zeros([DIMS], dtype=tl.float32)
    for first in range(side * heads, heads + side * (total - heads), NEGATIVES):
        number = first + tl.arange(0, NEGATIVES)
        there = number < heads + side * (total - heads)
        ids = tl.load(others + triple * total + number, mask=there, other=0).to(tl.int64)
        moves = there
        if RESTRICTED:
            moves = movable(pace, chosen, triple, ids, there, parts, count, ROUTED)
            there = moves | (there & asked)
        upstream = tl.load(d_negative + triple * total + number, mask=there, other=0.0)
        place = ids[:, None] * stride + columns[None, :]
        read = there[:, None] & real[None, :]
        if RESTRICTED and COMPARE == "dot":  # its own gradient does not depend on the vector
            read = read & asked
        x = tl.load(entities + place, mask=read, other=0.0).to(tl.float32)
        d_x, d_q = _slopes(q, x, upstream, NEGATIVES, DIMS, COMPARE)
        # A negative beyond the margin has no gradient: nothing to add.
        moves = moves & (upstream != 0.0)
        if PLACED:
            place = placed(claims, ids[:, None], columns[None, :], size, count, ROUTED)
        tl.atomic_add(d_entities + place, d_x, mask=moves[:, None] & real[None, :], sem="relaxed")
        summed += tl.sum(d_q, 0)
        if GATED:
            gate += tl.sum(x * d_x, 0)
    if side == 1:  # the triple itself
        tail = tl.load(triples + triple * 3 + 2).to(tl.int64)
        at_tail = tail * stride + columns
        t = tl.load(entities + at_tail, mask=real, other=0.0).to(tl.float32)
        upstream = tl.load(d_positive + triple + tl.arange(0, 1))
        d_x, d_q = _slopes(q, t[None, :], upstream, 1, DIMS, COMPARE)
        if PLACED:
            at_tail = placed(claims, tail, columns, size, count, ROUTED)
        tl.atomic_add(d_entities + at_tail, tl.sum(d_x, 0), mask=real, sem="relaxed")
        summed += tl.sum(d_q, 0)
        if GATED:
            gate += t * tl.sum(d_x, 0)
    tl.store(d_queries + q_at, tl.where(asked, summed, 0.0), mask=real)
    if GATED:
        for part in range(parts):
            share = tl.sum(tl.where(dims // size == part, gate, 0.0), 0)
            tl.store(d_gate + (side * triple_count + triple) * parts + part, share)

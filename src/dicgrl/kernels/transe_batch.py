"""TransE on a batch of triples and their negatives: scores, and gradients of the tables' rows.

A program takes one triple and one side: the head side has the negatives with another head, the tail
side those with another tail and the triple itself. It gathers a tile of negatives x dimensions, and
only writes scores. The backward pass gathers the tile again, which costs less than storing it, and
adds the gradients to the tables' buffers by atomic additions. The reference is `TransE.score` on
gathered vectors in PyTorch.

With n of K components, `chosen` says which rows of an entity make its vector; they are the same for
all entities of a triple. If only some rows may change, the backward pass skips a negative if
neither its rows nor what it is compared with may.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dicgrl.kernels.batch import Batch
from dicgrl.kernels.rows import asked_of, columns_of, movable, placed

_TILE = 2048  # negatives x dimensions that a program holds
# Components may be unaligned, which means more and smaller accesses.
_FORWARD_WARPS = {False: 1, True: 2}  # whether vectors are routed -> warps of a program
_BACKWARD_WARPS = {False: 2, True: 4}


def scores(batch: Batch, p: int) -> tuple[Tensor, Tensor]:
    """Scores of the triples, [b], and of their negatives, [b, m], by the norm p, 1 or 2."""
    positive = batch.relations.new_empty(len(batch.triples))
    negative = batch.relations.new_empty(batch.others.shape)
    if len(batch.triples):
        _forward[(len(batch.triples), 2)](
            *_pointers(batch), positive, negative, **_sizes(batch, p),
            num_warps=_FORWARD_WARPS[batch.chosen is not None],
        )  # fmt: skip
    return positive, negative


def scatter(
    batch: Batch,
    p: int,
    negative: Tensor,
    d_positive: Tensor,
    d_negative: Tensor,
    d_entities: Tensor,
    d_relations: Tensor | None,
    gated: bool,
) -> Tensor | None:
    """Add the gradients of all vectors to the tables' buffers.

    Args:
        batch: As in the forward pass.
        p: Norm of the distance, 1 or 2.
        negative: Scores of the negatives, [b, m].
        d_positive: Gradients of the scores, [b].
        d_negative: Likewise, [b, m].
        d_entities: Gradients of the entities' rows, or of those that have a place, added to.
        d_relations: Likewise of the relations; None if none of them may change.
        gated: Whether the components' gates need a gradient.

    Returns:
        Gradient of the gates, [b, n]; None if not needed.
    """
    parts = 1 if batch.chosen is None else batch.chosen.shape[1]
    d_gate = torch.empty(2, len(batch.triples), parts, device=negative.device) if gated else None
    if len(batch.triples):
        pace = batch.pace
        paces = (None, None, None) if pace is None else pace
        _backward[(len(batch.triples), 2)](
            *_pointers(batch), negative, d_positive.contiguous(), d_negative.contiguous(),
            d_entities, d_relations, d_gate, batch.claims, *paces, len(batch.triples),
            **_sizes(batch, p), GATED=gated, RESTRICTED=pace is not None,
            RELATIONS=d_relations is not None, PLACED=batch.claims is not None,
            num_warps=_BACKWARD_WARPS[batch.chosen is not None],
        )  # fmt: skip
    return None if d_gate is None else d_gate.sum(0)


def _pointers(batch: Batch) -> tuple[Tensor | None, ...]:
    others = batch.others.contiguous()
    chosen = None if batch.chosen is None else batch.chosen.contiguous()
    return batch.entities, batch.relations, batch.triples.contiguous(), others, chosen


def _sizes(batch: Batch, p: int) -> dict[str, int | bool]:
    size = batch.entities.shape[1]
    parts = 1 if batch.chosen is None else batch.chosen.shape[1]
    dims = triton.next_power_of_2(size * parts)
    return {
        "heads": batch.heads, "total": batch.others.shape[1],
        "size": size, "parts": parts, "count": batch.count, "ROUTED": batch.chosen is not None,
        "DIVIDED": batch.divided, "SQUARED": p == 2, "DIMS": dims,
        "NEGATIVES": max(_TILE // dims, 1),
    }  # fmt: skip


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    entities, relations, triples, others, chosen, positive, negative,
    heads: tl.constexpr, total: tl.constexpr,
    size: tl.constexpr, parts: tl.constexpr, count: tl.constexpr,
    ROUTED: tl.constexpr, DIVIDED: tl.constexpr, SQUARED: tl.constexpr,
    DIMS: tl.constexpr, NEGATIVES: tl.constexpr,
):  # fmt: skip
    triple = tl.program_id(0).to(tl.int64)
    dims = tl.arange(0, DIMS)
    real = dims < size * parts
    columns = columns_of(chosen, triple, dims, size, parts, ROUTED)
    stride: tl.constexpr = size * count
    relation = tl.load(triples + triple * 3 + 1).to(tl.int64)
    at_relation = relation * stride + columns if DIVIDED else relation * (size * parts) + dims
    r = tl.load(relations + at_relation, mask=real, other=0.0)
    at_tail = tl.load(triples + triple * 3 + 2).to(tl.int64) * stride + columns
    if tl.program_id(1) == 0:
        t = tl.load(entities + at_tail, mask=real, other=0.0).to(tl.float32)
        for first in range(0, heads, NEGATIVES):
            number = first + tl.arange(0, NEGATIVES)
            there = number < heads
            ids = tl.load(others + triple * total + number, mask=there, other=0).to(tl.int64)
            both = there[:, None] & real[None, :]
            place = ids[:, None] * stride + columns[None, :]
            x = tl.load(entities + place, mask=both, other=0.0).to(tl.float32)
            difference = tl.where(both, (x + r[None, :]) - t[None, :], 0.0)
            if SQUARED:
                distance = tl.sqrt(tl.sum(difference * difference, 1))
            else:
                distance = tl.sum(tl.abs(difference), 1)
            tl.store(negative + triple * total + number, -distance, mask=there)
    else:
        at_head = tl.load(triples + triple * 3).to(tl.int64) * stride + columns
        h = tl.load(entities + at_head, mask=real, other=0.0).to(tl.float32)
        t = tl.load(entities + at_tail, mask=real, other=0.0).to(tl.float32)
        target = h + r
        own = target - t
        if SQUARED:
            tl.store(positive + triple, -tl.sqrt(tl.sum(own * own, 0)))
        else:
            tl.store(positive + triple, -tl.sum(tl.abs(own), 0))
        for first in range(heads, total, NEGATIVES):
            number = first + tl.arange(0, NEGATIVES)
            there = number < total
            ids = tl.load(others + triple * total + number, mask=there, other=0).to(tl.int64)
            both = there[:, None] & real[None, :]
            place = ids[:, None] * stride + columns[None, :]
            x = tl.load(entities + place, mask=both, other=0.0).to(tl.float32)
            difference = tl.where(both, target[None, :] - x, 0.0)
            if SQUARED:
                distance = tl.sqrt(tl.sum(difference * difference, 1))
            else:
                distance = tl.sum(tl.abs(difference), 1)
            tl.store(negative + triple * total + number, -distance, mask=there)


@triton.jit
def _slope(difference, distance, upstream, SQUARED: tl.constexpr):  # type: ignore[no-untyped-def]
    """Gradient of a difference: that of -|x| or of -||x||, 0 where x is 0."""
    if SQUARED:
        slope = difference * (-upstream / tl.where(distance > 0.0, distance, 1.0))
    else:
        slope = tl.where(difference > 0.0, -upstream, tl.where(difference < 0.0, upstream, 0.0))
    return slope


@triton.jit(do_not_specialize=["triple_count"])
def _backward(  # type: ignore[no-untyped-def]
    entities, relations, triples, others, chosen, negative, d_positive, d_negative,
    d_entities, d_relations, d_gate, claims, pace, relation_pace, attention_pace, triple_count,
    heads: tl.constexpr, total: tl.constexpr,
    size: tl.constexpr, parts: tl.constexpr, count: tl.constexpr,
    ROUTED: tl.constexpr, DIVIDED: tl.constexpr, SQUARED: tl.constexpr,
    DIMS: tl.constexpr, NEGATIVES: tl.constexpr, GATED: tl.constexpr, RESTRICTED: tl.constexpr,
    RELATIONS: tl.constexpr, PLACED: tl.constexpr,
):  # fmt: skip
    triple = tl.program_id(0).to(tl.int64)
    side = tl.program_id(1)
    dims = tl.arange(0, DIMS)
    real = dims < size * parts
    columns = columns_of(chosen, triple, dims, size, parts, ROUTED)
    stride: tl.constexpr = size * count
    head = tl.load(triples + triple * 3).to(tl.int64)
    tail = tl.load(triples + triple * 3 + 2).to(tl.int64)
    at_head, at_tail = head * stride + columns, tail * stride + columns
    relation = tl.load(triples + triple * 3 + 1).to(tl.int64)
    at_relation = relation * stride + columns if DIVIDED else relation * (size * parts) + dims
    asked = True  # whether what the negatives are compared with may change
    if RESTRICTED:
        end = tl.load(triples + triple * 3 + 2 * (1 - side)).to(tl.int64)  # the one that stays
        asked = asked_of(
            pace, relation_pace, attention_pace, chosen, triple, end, relation,
            parts, count, ROUTED, DIVIDED, GATED,
        )  # fmt: skip
    r = tl.load(relations + at_relation, mask=real, other=0.0)
    t = tl.load(entities + at_tail, mask=real, other=0.0).to(tl.float32)
    summed = tl.zeros([DIMS], dtype=tl.float32)  # gradient of r, and of the end not replaced
    gate = tl.zeros([DIMS], dtype=tl.float32)
    if side == 0:
        for first in range(0, heads, NEGATIVES):
            number = first + tl.arange(0, NEGATIVES)
            there = number < heads
            ids = tl.load(others + triple * total + number, mask=there, other=0).to(tl.int64)
            moves = there
            if RESTRICTED:
                moves = movable(pace, chosen, triple, ids, there, parts, count, ROUTED)
                there = moves | (there & asked)
            distance = -tl.load(negative + triple * total + number, mask=there, other=0.0)
            upstream = tl.load(d_negative + triple * total + number, mask=there, other=0.0)
            both = there[:, None] & real[None, :]
            place = ids[:, None] * stride + columns[None, :]
            x = tl.load(entities + place, mask=both, other=0.0).to(tl.float32)
            difference = tl.where(both, (x + r[None, :]) - t[None, :], 0.0)
            slope = _slope(difference, distance[:, None], upstream[:, None], SQUARED)
            # A negative beyond the margin has no gradient: nothing to add.
            moves = moves & (upstream != 0.0)
            if PLACED:
                place = placed(claims, ids[:, None], columns[None, :], size, count, ROUTED)
            tl.atomic_add(d_entities + place, slope, mask=both & moves[:, None], sem="relaxed")
            summed += tl.sum(slope, 0)
            if GATED:
                gate += tl.sum(slope * difference, 0)
        if PLACED:
            at_tail = placed(claims, tail, columns, size, count, ROUTED)
        tl.atomic_add(d_entities + at_tail, -summed, mask=real & asked, sem="relaxed")
    else:
        h = tl.load(entities + at_head, mask=real, other=0.0).to(tl.float32)
        target = h + r
        for first in range(heads, total, NEGATIVES):
            number = first + tl.arange(0, NEGATIVES)
            there = number < total
            ids = tl.load(others + triple * total + number, mask=there, other=0).to(tl.int64)
            moves = there
            if RESTRICTED:
                moves = movable(pace, chosen, triple, ids, there, parts, count, ROUTED)
                there = moves | (there & asked)
            distance = -tl.load(negative + triple * total + number, mask=there, other=0.0)
            upstream = tl.load(d_negative + triple * total + number, mask=there, other=0.0)
            both = there[:, None] & real[None, :]
            place = ids[:, None] * stride + columns[None, :]
            x = tl.load(entities + place, mask=both, other=0.0).to(tl.float32)
            difference = tl.where(both, target[None, :] - x, 0.0)
            slope = _slope(difference, distance[:, None], upstream[:, None], SQUARED)
            moves = moves & (upstream != 0.0)
            if PLACED:
                place = placed(claims, ids[:, None], columns[None, :], size, count, ROUTED)
            tl.atomic_add(d_entities + place, -slope, mask=both & moves[:, None], sem="relaxed")
            summed += tl.sum(slope, 0)
            if GATED:
                gate += tl.sum(slope * difference, 0)
        own = target - t
        own_distance = tl.sqrt(tl.sum(own * own, 0)) if SQUARED else 0.0
        own_slope = _slope(own, own_distance, tl.load(d_positive + triple), SQUARED)
        if PLACED:
            at_head = placed(claims, head, columns, size, count, ROUTED)
            at_tail = placed(claims, tail, columns, size, count, ROUTED)
        tl.atomic_add(d_entities + at_tail, -own_slope, mask=real, sem="relaxed")
        summed += own_slope
        if GATED:
            gate += own_slope * own
        tl.atomic_add(d_entities + at_head, summed, mask=real & asked, sem="relaxed")
    if RELATIONS:
        tl.atomic_add(d_relations + at_relation, summed, mask=real & asked, sem="relaxed")
    if GATED:
        # The score is homogeneous in a component: its gate gets gradient times difference.
        for part in range(parts):
            share = tl.sum(tl.where(dims // size == part, gate, 0.0), 0)
            tl.store(d_gate + (side * triple_count + triple) * parts + part, share)

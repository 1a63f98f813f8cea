"""TransE's scores of triples and their negatives, with gradients that are written down.

What autograd would keep and pass through memory, [b, m, l] several times over, is made here block
by block and used while it is in the cache: the negatives' rows are gathered, subtracted and summed
in the forward pass, and gathered again in the backward pass, where their gradients go straight to
the table. On a GPU with Triton the same is done by `dicgrl.kernels.transe`. The reference is
`TransE.score` on gathered vectors.

For a query q (t - r where the head is replaced, h + r where the tail is) a replacement x has the
score -||x - q||, and everything follows from the gradient u of x - q: that of x is u, that of q is
the sum of -u. Where a table lets only some rows change, neither is computed for the others: while
newcomers learn alone, most of the work of the backward pass falls away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dicgrl.kernels import available
from dicgrl.kernels.batch import Batch, Pace
from dicgrl.models.components import Route
from dicgrl.models.table import Table

_HEAD, _TAIL = 0, 2  # columns of a triple
_BLOCK = 1 << 18  # numbers of a block on a CPU: a megabyte, about its second-level cache


def translation_scores(
    entities: Table,
    relations: Table,
    links: tuple[Tensor, Tensor, int],
    route: Route | None,
    counts: tuple[int, int],
    p: int,
    attention: Table | None,
) -> tuple[Tensor, Tensor]:
    """Scores of triples, [b], and of their negatives, [b, m], differentiable.

    Args:
        entities: A row for each component of each entity.
        relations: Likewise, or a row for each relation.
        links: Triples [b, 3], entities that replace their heads, then tails, [b, m], and how many
            of these replace heads.
        route: Components that each triple uses, [b, n]; None for plain vectors.
        counts: Rows of an entity and of a relation.
        p: Norm of the distance, 1 or 2.
        attention: What the route was made from, a row for each relation; None for plain vectors.
    """
    triples, others, heads = links
    batch = Batch(
        entities.rows,
        relations.rows,
        triples,
        others,
        heads,
        None if route is None else route.chosen,
        counts[0],
        counts[1] > 1,
        p,
    )
    gate = None if route is None else route.gate
    if torch.is_grad_enabled():
        tables = [entities, relations]
        if gate is not None and gate.requires_grad:
            assert attention is not None
            tables.append(attention)
        batch = replace(batch, pace=_pace(*tables))
    scores: tuple[Tensor, Tensor] = _Scores.apply(  # type: ignore[no-untyped-call]
        entities.anchor, gate, entities, relations, batch
    )
    return scores


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, _anchor: Tensor, gate: Tensor | None, entities: Table, relations: Table, b: Batch
    ) -> tuple[Tensor, Tensor]:
        if available(b.entities):
            from dicgrl.kernels import transe  # needs Triton

            positive, negative = transe.scores(b)
        else:
            positive, negative = _scores(b)
        ctx.tables, ctx.batch = (entities, relations), b
        ctx.gated = gate is not None and gate.requires_grad
        ctx.save_for_backward(positive, negative)
        return positive, negative

    @staticmethod
    def backward(
        ctx: Any, d_positive: Tensor, d_negative: Tensor
    ) -> tuple[None, Tensor | None, None, None, None]:
        positive, negative = ctx.saved_tensors
        b: Batch = ctx.batch
        entities, relations = ctx.tables
        into = (entities.gradient, None if relations.closed else relations.gradient)
        if available(b.entities):
            from dicgrl.kernels import transe  # needs Triton

            d_gate = transe.scatter(b, negative, d_positive, d_negative, *into, ctx.gated)
        else:
            d_gate = _scatter(b, (positive, negative), (d_positive, d_negative), into, ctx.gated)
        heads, ids, tails = b.triples.unbind(1)
        every = torch.cat([heads[:, None], tails[:, None], b.others], 1)
        entities.touch(_rows(every, b).reshape(-1))
        if into[1] is not None:
            relations.touch(_rows(ids, b).reshape(-1) if b.divided else ids)
        return None, d_gate, None, None, None


def _pace(*tables: Table) -> Pace | None:
    """How fast rows may change, where each of the tables lets only some of them."""
    paces = [pace for pace in (table.pace() for table in tables) if pace is not None]
    return Pace(*paces) if len(paces) == len(tables) else None


def _rows(ids: Tensor, b: Batch) -> Tensor:
    """Rows of entities [b] or [b, m], or of divided relations: [..., n], or the ids where plain."""
    if b.chosen is None:
        return ids
    chosen = b.chosen if ids.dim() == 1 else b.chosen[:, None]
    return ids[..., None] * b.count + chosen


def _queries(b: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """The tails, and what the heads and the tails are compared with, [b, l] each."""
    heads, ids, tails = b.triples.unbind(1)
    r = b.relations[_rows(ids, b) if b.divided else ids].flatten(1)
    h, t = (b.entities[_rows(end, b)].flatten(1) for end in (heads, tails))
    return t, t - r, h + r


def _norm_(differences: Tensor, p: int) -> Tensor:
    """Norms over the last axis; overwrites it, which beats `vector_norm` on a CPU many times."""
    return differences.abs_().sum(-1) if p == 1 else differences.square_().sum(-1).sqrt_()


def _blocks(
    b: Batch, others: Tensor, queries: Tensor, triples: Tensor | None = None
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Blocks of replacements [k, m], their rows and these minus the query, [block, m, l], in turn.

    The queries [b, l] are those of the batch; `triples` says which the replacements belong to, [k],
    unless they are all of them in order.
    """
    width = queries.shape[1]
    height = max(len(others), 1)
    if not others.is_cuda:  # a GPU would only wait for the launches
        height = max(_BLOCK // max(others.shape[1] * width, 1), 1)
    for first in range(0, len(others) if others.shape[1] else 0, height):
        block = slice(first, first + height)
        here = block if triples is None else triples[block]
        ids = others[block]
        rows = ids if b.chosen is None else ids[..., None] * b.count + b.chosen[here][:, None]
        rows = rows.reshape(-1)
        x = b.entities.index_select(0, rows).view(*ids.shape, width)
        yield block, rows, x.sub_(queries[here][:, None])


def _sides(b: Batch) -> tuple[slice, slice]:
    return slice(0, b.heads), slice(b.heads, None)


def _scores(b: Batch) -> tuple[Tensor, Tensor]:
    t, *queries = _queries(b)
    negative = b.entities.new_empty(b.others.shape)
    for query, side in zip(queries, _sides(b), strict=True):
        for block, _, difference in _blocks(b, b.others[:, side], query):
            negative[block, side] = _norm_(difference, b.p)
    return _norm_(t - queries[1], b.p).neg_(), negative.neg_()


def _scatter(
    b: Batch,
    scores: tuple[Tensor, Tensor],
    upstream: tuple[Tensor, Tensor],
    into: tuple[Tensor, Tensor | None],
    gated: bool,
) -> Tensor | None:
    t, *queries = _queries(b)
    d_entities, d_relations = into
    parts = 1 if b.chosen is None else b.chosen.shape[1]
    d_gate = t.new_zeros(len(t), parts) if gated else None
    factor = [_factor(score, up, b.p) for score, up in zip(scores, upstream, strict=True)]
    d_query = [torch.zeros_like(t), torch.zeros_like(t)]
    for number, (side, stays) in enumerate(zip(_sides(b), (_TAIL, _HEAD), strict=True)):
        for group in _groups(b, side, stays, factor[1]):
            for block, rows, x in _blocks(b, group.others, queries[number], group.triples):
                pull = group.pull[block]
                here = block if group.triples is None else group.triples[block]
                if d_gate is not None and group.asked:
                    d_gate[here] += _by_part(x, pull, parts, b.p)
                slope = x.sign_() if b.p == 1 else x
                if group.asked:
                    d_query[number][here] = torch.bmm(pull[:, None], slope)[:, 0]
                slope.mul_(pull[..., None])
                _add_rows(d_entities, rows, slope.view(-1, d_entities.shape[1]), b.pace)
    # The triple itself: t takes the place of a replaced tail.
    difference = (t - queries[1])[:, None]
    if d_gate is not None:
        d_gate += _by_part(difference, factor[0][:, None], parts, b.p)
    slope = (difference[:, 0].sign() if b.p == 1 else difference[:, 0]) * factor[0][:, None]
    heads, ids, tails = b.triples.unbind(1)
    d_heads = -(d_query[1] + slope)
    for end, gradient in ((heads, d_heads), (tails, slope - d_query[0])):
        d_entities.index_add_(0, _rows(end, b).reshape(-1), gradient.view(-1, d_entities.shape[1]))
    if d_relations is not None:
        at = _rows(ids, b).reshape(-1) if b.divided else ids
        d_relations.index_add_(0, at, (d_heads + d_query[0]).view(-1, d_relations.shape[1]))
    return d_gate


class _Group(NamedTuple):
    """Replacements whose gradients are computed together.

    Attributes:
        others: The replacements, [k, m].
        pull: What the signs or differences are multiplied by, [k, m].
        triples: The triples that they belong to, [k]; None for all of the batch in order.
        asked: Whether the queries want a gradient too.
    """

    others: Tensor
    pull: Tensor
    triples: Tensor | None = None
    asked: bool = True


def _groups(b: Batch, side: slice, end: int, pull: Tensor) -> Iterator[_Group]:
    """The replacements of a side that take part in the backward pass.

    Args:
        b: The batch.
        side: Their columns.
        end: The column of a triple that stays.
        pull: Of all replacements, [b, m].
    """
    others, pull = b.others[:, side], pull[:, side]
    if b.pace is None or others.is_cuda:  # choosing would wait for the device
        yield _Group(others, pull)
        return
    moves = (b.pace.entities[_rows(others, b)] > 0).flatten(2).any(2)  # [b, m]
    # Where most replacements of a triple move, all of them cost less than these one by one.
    together = _asked(b, b.pace, end) | (2 * moves.sum(1) > moves.shape[1])
    whole = together.nonzero()[:, 0]
    yield _Group(others[whole], pull[whole], whole)
    triples, at = (moves & ~together[:, None]).nonzero().unbind(1)
    yield _Group(others[triples, at][:, None], pull[triples, at][:, None], triples, asked=False)


def _asked(b: Batch, pace: Pace, end: int) -> Tensor:
    """Which queries want a gradient: the end that stays, the relation or the gates may change."""
    ids = b.triples[:, 1]
    fastest = pace.entities[_rows(b.triples[:, end], b)].flatten(1).amax(1)
    fastest += pace.relations[_rows(ids, b) if b.divided else ids].flatten(1).amax(1)
    if pace.attention is not None:
        fastest += pace.attention[ids, 0]
    return fastest > 0


def _add_rows(into: Tensor, rows: Tensor, values: Tensor, pace: Pace | None) -> None:
    """Add values [k, l] to rows, to those that may change where that is known."""
    if pace is not None and not rows.is_cuda:
        moves = (pace.entities[rows, 0] > 0).nonzero()[:, 0]
        if len(moves) < len(rows):
            rows, values = rows[moves], values[moves]
    into.index_add_(0, rows, values)


def _factor(scores: Tensor, upstream: Tensor, p: int) -> Tensor:
    """What the signs (p = 1) or differences (p = 2) are multiplied by to give their gradient."""
    return -upstream if p == 1 else torch.where(scores < 0, upstream / scores, 0.0)


def _by_part(difference: Tensor, factor: Tensor, parts: int, p: int) -> Tensor:
    """Gradient of the gates: a score is homogeneous in a component."""
    divided = difference.view(*difference.shape[:-1], parts, difference.shape[-1] // parts)
    each = (divided.abs() if p == 1 else divided.square()).sum(-1)  # [b, m, n]
    return torch.einsum("bm,bmn->bn", factor, each)

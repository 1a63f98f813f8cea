"""TransE's scores of triples and their negatives, with gradients that are written down.

What autograd would keep and pass through memory, [b, m, l] several times over, is made here block
by block and used while it is in the cache: the negatives' rows are gathered, subtracted and summed
in the forward pass, and gathered again in the backward pass, where their gradients go straight to
the table. On a GPU with Triton `dicgrl.kernels.transe_batch` does the same. The reference is
`TransE.score` on gathered vectors.

For a query q (t - r where the head is replaced, h + r where the tail is) a replacement x has the
score -||x - q||, and everything follows from the gradient u of x - q: that of x is u, that of q is
the sum of -u. Where a table lets only some rows change, neither is computed for the others: while
newcomers learn alone, most of the work of the backward pass falls away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from dicgrl.kernels import available
from dicgrl.kernels.batch import Batch, Pace
from dicgrl.models.fast import FastBatch

_HEAD, _TAIL = 0, 2  # columns of a triple
_BLOCK = 1 << 18  # numbers of a block on a CPU: a megabyte, about its second-level cache


@dataclass(frozen=True, slots=True)
class TranslationBatch(FastBatch):
    """TransE's fast path through a training batch.

    Attributes:
        p: Norm of the distance, 1 or 2.
        kernels: Whether kernels do the work.
        blocks: Whether few vectors are there at a time; not where PyTorch works on a GPU, which
            would only wait for the launches.
    """

    leaves_out: ClassVar[bool] = True

    p: int
    kernels: bool
    blocks: bool

    @classmethod
    def on(cls, rows: Tensor, p: int) -> TranslationBatch:
        """The path where these rows of entities live."""
        kernels = available(rows)
        return cls(p, kernels, kernels or not rows.is_cuda)

    @property
    @override
    def negative_bytes(self) -> int | None:
        return 20 if self.blocks else None  # its id twice and its score

    @property
    @override
    def shares(self) -> bool:
        return self.blocks and not self.kernels

    @override
    def scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        if self.kernels:
            from dicgrl.kernels import transe_batch  # needs Triton

            return transe_batch.scores(batch, self.p)
        return _scores(batch, self.p)

    @override
    def add_gradients(
        self,
        batch: Batch,
        scores: tuple[Tensor, Tensor],
        upstream: tuple[Tensor, Tensor],
        into: tuple[Tensor, Tensor | None],
        gated: bool,
    ) -> Tensor | None:
        if self.kernels:
            from dicgrl.kernels import transe_batch  # needs Triton

            return transe_batch.scatter(batch, self.p, scores[1], *upstream, *into, gated)
        return _scatter(batch, self.p, scores, upstream, into, gated)


def _queries(b: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """The tails, and what the heads and the tails are compared with, [b, l] each."""
    heads, _, tails = b.triples.unbind(1)
    r = _vectors(b.relations, b.relation_rows())
    h, t = (_vectors(b.entities, b.entity_rows(end)) for end in (heads, tails))
    return t, t - r, h + r


def _vectors(table: Tensor, rows: Tensor) -> Tensor:
    """What rows [b] or [b, n] make up, [b, l]; on a CPU much faster than by an index."""
    length = rows.shape[1:].numel() * table.shape[1]
    return table.index_select(0, rows.reshape(-1)).view(len(rows), length)


def _norm_(differences: Tensor, p: int) -> Tensor:
    """Norms over the last axis; overwrites it, which beats `vector_norm` on a CPU many times."""
    return differences.abs_().sum(-1) if p == 1 else differences.square_().sum(-1).sqrt_()


def _blocks(
    b: Batch, others: Tensor, queries: Tensor, triples: Tensor | None = None
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Blocks of replacements [k, m], their rows and these minus the query, [block, m, l], in turn.

    The queries [b, l] are those of the batch; `triples` says which the replacements belong to, [k],
    unless they are all of them in order. Replacements that triples share are gathered once.
    """
    if b.share > 1:
        yield from _shared_blocks(b, others, queries)
        return
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


def _shared_blocks(
    b: Batch, others: Tensor, queries: Tensor
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """The same for replacements [g, m] that so many triples, one after the other, share."""
    (groups, m), (count, width) = others.shape, queries.shape
    whole = F.pad(queries, (0, 0, 0, groups * b.share - count)).view(groups, b.share, 1, width)
    every = others.repeat_interleave(b.share, 0)[:count]
    height = max(_BLOCK // max(b.share * m * width, 1), 1)
    scratch = queries.new_empty(min(height, groups), b.share, m, width)
    for first in range(0, groups if m else 0, height):
        some = slice(first, first + height)
        block = slice(first * b.share, min((first + height) * b.share, count))
        x = b.entities.index_select(0, others[some].reshape(-1)).view(-1, 1, m, width)
        difference = torch.sub(x, whole[some], out=scratch[: len(x)]).view(-1, m, width)
        yield block, every[block].reshape(-1), difference[: block.stop - block.start]


def _scores(b: Batch, p: int) -> tuple[Tensor, Tensor]:
    t, *queries = _queries(b)
    negative = b.entities.new_empty(len(t), b.others.shape[1])
    for query, side in zip(queries, b.sides(), strict=True):
        for block, _, difference in _blocks(b, b.others[:, side], query):
            negative[block, side] = _norm_(difference, p)
    return _norm_(t - queries[1], p).neg_(), negative.neg_()


def _scatter(
    b: Batch,
    p: int,
    scores: tuple[Tensor, Tensor],
    upstream: tuple[Tensor, Tensor],
    into: tuple[Tensor, Tensor | None],
    gated: bool,
) -> Tensor | None:
    t, *queries = _queries(b)
    d_entities, d_relations = into
    parts = 1 if b.chosen is None else b.chosen.shape[1]
    d_gate = t.new_zeros(len(t), parts) if gated else None
    factor = [_factor(score, up, p) for score, up in zip(scores, upstream, strict=True)]
    d_query = [torch.zeros_like(t), torch.zeros_like(t)]
    for number, (side, stays) in enumerate(zip(b.sides(), (_TAIL, _HEAD), strict=True)):
        for group in _groups(b, side, stays, factor[1]):
            for block, rows, x in _blocks(b, group.others, queries[number], group.triples):
                pull = group.pull[block]
                here = block if group.triples is None else group.triples[block]
                if d_gate is not None and group.asked:
                    d_gate[here] += _by_part(x, pull, parts, p)
                slope = x.sign_() if p == 1 else x
                if group.asked:
                    d_query[number][here] = torch.bmm(pull[:, None], slope)[:, 0]
                _add_rows(d_entities, rows, slope, pull, b.pace)
    # The triple itself: t takes the place of a replaced tail.
    difference = (t - queries[1])[:, None]
    if d_gate is not None:
        d_gate += _by_part(difference, factor[0][:, None], parts, p)
    slope = (difference[:, 0].sign() if p == 1 else difference[:, 0]) * factor[0][:, None]
    heads, _, tails = b.triples.unbind(1)
    d_heads = -(d_query[1] + slope)
    for end, gradient in ((heads, d_heads), (tails, slope - d_query[0])):
        d_entities.index_add_(
            0, b.entity_rows(end).reshape(-1), gradient.view(-1, d_entities.shape[1])
        )
    if d_relations is not None:
        at = b.relation_rows().reshape(-1)
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
    if b.pace is None or b.share > 1 or others.is_cuda:  # choosing would wait for the device
        yield _Group(others, pull)
        return
    moves = (b.pace.entities[b.entity_rows(others)] > 0).flatten(2).any(2)  # [b, m]
    # Where most replacements of a triple move, all of them cost less than these one by one.
    together = _asked(b, b.pace, end) | (2 * moves.sum(1) > moves.shape[1])
    if together.all():
        yield _Group(others, pull)
        return
    whole = together.nonzero()[:, 0]
    yield _Group(others[whole], pull[whole], whole)
    triples, at = (moves & ~together[:, None]).nonzero().unbind(1)
    yield _Group(others[triples, at][:, None], pull[triples, at][:, None], triples, asked=False)


def _asked(b: Batch, pace: Pace, end: int) -> Tensor:
    """Which queries want a gradient: the end that stays, the relation or the gates may change."""
    fastest = pace.entities[b.entity_rows(b.triples[:, end])].flatten(1).amax(1)
    fastest += pace.relations[b.relation_rows()].flatten(1).amax(1)
    if pace.attention is not None:
        fastest += pace.attention[b.triples[:, 1], 0]
    return fastest > 0


def _add_rows(into: Tensor, rows: Tensor, slope: Tensor, pull: Tensor, pace: Pace | None) -> None:
    """Add slopes [k, m, l] times pulls [k, m] to rows; to those that may change where it is known.

    The slopes may be overwritten.
    """
    values = slope.view(-1, into.shape[1])  # [k * m * n, size]
    each = pull.reshape(-1).repeat_interleave(len(rows) // pull.numel())
    if pace is not None and not rows.is_cuda:
        moves = (pace.entities.view(-1)[rows] > 0).nonzero()[:, 0]
        if len(moves) < len(rows):
            rows, values, each = rows[moves], values[moves], each[moves]
    into.index_add_(0, rows, values.mul_(each[:, None]))


def _factor(scores: Tensor, upstream: Tensor, p: int) -> Tensor:
    """What the signs (p = 1) or differences (p = 2) are multiplied by to give their gradient."""
    return -upstream if p == 1 else torch.where(scores < 0, upstream / scores, 0.0)


def _by_part(difference: Tensor, factor: Tensor, parts: int, p: int) -> Tensor:
    """Gradient of the gates: a score is homogeneous in a component."""
    divided = difference.view(*difference.shape[:-1], parts, difference.shape[-1] // parts)
    each = (divided.abs() if p == 1 else divided.square()).sum(-1)  # [b, m, n]
    return torch.einsum("bm,bmn->bn", factor, each)

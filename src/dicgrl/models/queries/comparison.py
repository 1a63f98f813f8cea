"""Queries against the negatives of a batch, block by block, with gradients that are written down.

What autograd would keep and pass through memory, [b, m, l] several times over, is made here block
by block and used while it is in the cache: the negatives' rows are gathered and compared in the
forward pass, and gathered again in the backward pass, where their gradients go straight to the
table. The reference is `Likeness.of` on gathered vectors.

Where a table lets only some rows change, no gradient is computed for the others: while newcomers
learn alone, most of the work of the backward pass falls away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dicgrl.kernels.batch import Batch, Pace
from dicgrl.models.queries.likeness import Likeness

_HEAD, _TAIL = 0, 2  # columns of a triple
_BLOCK = 1 << 18  # numbers of a block on a CPU: a megabyte, about its second-level cache


def scores(batch: Batch, likeness: Likeness, queries: Sequence[Tensor]) -> Tensor:
    """Scores of the negatives, [b, m].

    Args:
        batch: The triples and their negatives.
        likeness: How a query and a negative are compared.
        queries: What heads are compared with, and what tails are, [b, l] each.
    """
    found = batch.entities.new_empty(len(batch.triples), batch.others.shape[1])
    for query, side in zip(queries, batch.sides(), strict=True):
        for block, _, x in _blocks(batch, batch.others[:, side], query.shape[1]):
            found[block, side] = likeness.block_(x, query[block])
    return found


def add_gradients(
    batch: Batch,
    likeness: Likeness,
    queries: Sequence[Tensor],
    pull: Tensor,
    d_entities: Tensor,
    parts: int,
) -> tuple[list[Tensor], Tensor | None]:
    """Add the gradients of the negatives' rows to those of the table.

    Args:
        batch: As in the forward pass.
        likeness: Likewise.
        queries: Likewise.
        pull: What the slopes are multiplied by (`Likeness.pull`), [b, m].
        d_entities: Gradients of the entities' rows, added to.
        parts: Components whose gates want a gradient; 0 where they want none.

    Returns:
        Gradients of the queries, [b, l] each, 0 where nothing that a query is made of may change;
        and what queries and negatives pull at the gates, [b, n], None where these want none.
    """
    d_queries = [torch.zeros_like(query) for query in queries]
    d_gate = pull.new_zeros(len(pull), parts) if parts else None
    for number, (side, stays) in enumerate(zip(batch.sides(), (_TAIL, _HEAD), strict=True)):
        query = queries[number]
        for group in _groups(batch, side, stays, pull):
            for block, rows, x in _blocks(batch, group.others, query.shape[1], group.triples):
                here = block if group.triples is None else group.triples[block]
                slopes = likeness.slopes_(x, query[here], group.pull[block], parts, group.asked)
                if d_gate is not None and slopes.gates is not None:
                    d_gate[here] += slopes.gates
                if slopes.queries is not None:
                    d_queries[number][here] = slopes.queries
                gradient = slopes.candidates.view(-1, d_entities.shape[1])
                add_rows(d_entities, rows, gradient, batch.pace)
    return d_queries, d_gate


def _blocks(
    b: Batch, others: Tensor, width: int, triples: Tensor | None = None
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Blocks of replacements [k, m], their rows and their vectors, [block, m, l], in turn.

    `triples` says which of the batch the replacements belong to, [k], unless they are all of them
    in order. Replacements that triples share are gathered once.
    """
    if b.share > 1:
        yield from _shared_blocks(b, others, width)
        return
    height = max(len(others), 1)
    if not others.is_cuda:  # a GPU would only wait for the launches
        height = max(_BLOCK // max(others.shape[1] * width, 1), 1)
    for first in range(0, len(others) if others.shape[1] else 0, height):
        block = slice(first, first + height)
        here = block if triples is None else triples[block]
        ids = others[block]
        rows = ids if b.chosen is None else ids[..., None] * b.count + b.chosen[here][:, None]
        rows = rows.reshape(-1)
        yield block, rows, b.entities.index_select(0, rows).view(*ids.shape, width)


def _shared_blocks(b: Batch, others: Tensor, width: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """The same for replacements [g, m] that so many triples, one after the other, share."""
    (groups, m), count = others.shape, len(b.triples)
    every = others.repeat_interleave(b.share, 0)[:count]
    height = max(_BLOCK // max(b.share * m * width, 1), 1)
    scratch = b.entities.new_empty(min(height, groups), b.share, m, width)
    for first in range(0, groups if m else 0, height):
        some = slice(first, first + height)
        block = slice(first * b.share, min((first + height) * b.share, count))
        x = b.entities.index_select(0, others[some].reshape(-1)).view(-1, 1, m, width)
        each = scratch[: len(x)].copy_(x).view(-1, m, width)
        yield block, every[block].reshape(-1), each[: block.stop - block.start]


class _Group(NamedTuple):
    """Replacements whose gradients are computed together.

    Attributes:
        others: The replacements, [k, m].
        pull: What their slopes are multiplied by, [k, m].
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


def add_rows(into: Tensor, rows: Tensor, values: Tensor, pace: Pace | None) -> None:
    """Add values [k, l] to rows, to those that may change where that is known."""
    if pace is not None and not rows.is_cuda:
        moves = (pace.entities.view(-1)[rows] > 0).nonzero()[:, 0]
        if len(moves) < len(rows):
            rows, values = rows[moves], values[moves]
    into.index_add_(0, rows, values)

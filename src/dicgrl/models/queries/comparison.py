"""Compare queries with the negatives of a batch, block by block, with hand-written gradients.

Autograd would store several tensors [b, m, l]. Here they are computed block by block and used while
they are in the cache: the negatives' rows are gathered and compared in the forward pass, and
gathered again in the backward pass, where their gradients are added directly to the table. The
reference is `Likeness.of` on gathered vectors.

If only some rows of a table may change, no gradients are computed for the others. While newcomers
learn alone, this saves most of the work of the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dicgrl.kernels.batch import Batch, Pace
from dicgrl.models.queries.likeness import Likeness

_HEAD, _TAIL = 0, 2  # columns of a triple
_BLOCK = 1 << 18  # numbers in a block on a CPU: a megabyte, about its second-level cache


def scores(batch: Batch, likeness: Likeness, queries: Sequence[Tensor]) -> Tensor:
    """Scores of the negatives, [b, m].

    Args:
        batch: The triples and their negatives.
        likeness: How a query and a negative are compared.
        queries: The queries that heads, and that tails, are compared with, [b, l] each.
    """
    found = queries[0].new_empty(len(batch.triples), batch.others.shape[1])
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
        pull: Factors of the slopes (`Likeness.pull`), [b, m].
        d_entities: Gradients of the entities' rows, added to.
        parts: Number of components whose gates need a gradient; 0 if none do.

    Returns:
        Gradients of the queries, [b, l] each, 0 if nothing that a query is made of may change; and
        gradients of the gates through queries and negatives, [b, n], None if not needed.
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
                add_rows(batch, d_entities, rows, gradient)
    return d_queries, d_gate


def _blocks(
    b: Batch, others: Tensor, width: int, triples: Tensor | None = None
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Iterate over blocks of replacements [k, m], with their rows and vectors, [block, m, l].

    `triples` says which triples of the batch they belong to, [k]; None if they are all triples in
    order. Replacements that triples share are gathered once.
    """
    if b.share > 1:
        yield from _shared_blocks(b, others, width)
        return
    height = max(len(others), 1)
    if not others.is_cuda:  # on a GPU, blocks would only add launches
        height = max(_BLOCK // max(others.shape[1] * width, 1), 1)
    for first in range(0, len(others) if others.shape[1] else 0, height):
        block = slice(first, first + height)
        here = block if triples is None else triples[block]
        ids = others[block]
        rows = ids if b.chosen is None else ids[..., None] * b.count + b.chosen[here][:, None]
        rows = rows.reshape(-1)
        yield block, rows, b.vectors(rows).view(*ids.shape, width)


def _shared_blocks(b: Batch, others: Tensor, width: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """The same for replacements [g, m] that consecutive triples share."""
    (groups, m), count = others.shape, len(b.triples)
    every = others.repeat_interleave(b.share, 0)[:count]
    height = max(_BLOCK // max(b.share * m * width, 1), 1)
    scratch: Tensor | None = None
    for first in range(0, groups if m else 0, height):
        some = slice(first, first + height)
        block = slice(first * b.share, min((first + height) * b.share, count))
        x = b.vectors(others[some].reshape(-1)).view(-1, 1, m, width)
        if scratch is None:
            scratch = x.new_empty(len(x), b.share, m, width)
        each = scratch[: len(x)].copy_(x).view(-1, m, width)
        yield block, every[block].reshape(-1), each[: block.stop - block.start]


class _Group(NamedTuple):
    """Replacements whose gradients are computed together.

    Attributes:
        others: The replacements, [k, m].
        pull: Factors of their slopes, [k, m].
        triples: The triples that they belong to, [k]; None for the whole batch in order.
        asked: Whether the queries need a gradient, too.
    """

    others: Tensor
    pull: Tensor
    triples: Tensor | None = None
    asked: bool = True


def _groups(b: Batch, side: slice, end: int, pull: Tensor) -> Iterator[_Group]:
    """The replacements of a side that take part in the backward pass.

    Args:
        b: The batch.
        side: Columns of the replacements.
        end: Column of a triple that is not replaced.
        pull: Factors of all replacements, [b, m].
    """
    others, pull = b.others[:, side], pull[:, side]
    if b.pace is None or b.share > 1 or others.is_cuda:  # selecting would wait for the device
        yield _Group(others, pull)
        return
    moves = (b.pace.entities[b.entity_rows(others)] > 0).flatten(2).any(2)  # [b, m]
    # If most replacements of a triple move, it is cheaper to take all of them together.
    together = _asked(b, b.pace, end) | (2 * moves.sum(1) > moves.shape[1])
    if together.all():
        yield _Group(others, pull)
        return
    whole = together.nonzero()[:, 0]
    yield _Group(others[whole], pull[whole], whole)
    triples, at = (moves & ~together[:, None]).nonzero().unbind(1)
    yield _Group(others[triples, at][:, None], pull[triples, at][:, None], triples, asked=False)


def _asked(b: Batch, pace: Pace, end: int) -> Tensor:
    """Which queries need a gradient: those whose other end, relation or gates may change."""
    fastest = pace.entities[b.entity_rows(b.triples[:, end])].flatten(1).amax(1)
    fastest += pace.relations[b.relation_rows()].flatten(1).amax(1)
    if pace.attention is not None:
        fastest += pace.attention[b.triples[:, 1], 0]
    return fastest > 0


def add_rows(batch: Batch, into: Tensor, rows: Tensor, values: Tensor) -> None:
    """Add values [k, l] to the gradients of rows; on a CPU only of those that may change."""
    if batch.pace is not None and not rows.is_cuda:
        moves = (batch.pace.entities.view(-1)[rows] > 0).nonzero()[:, 0]
        if len(moves) < len(rows):
            rows, values = rows[moves], values[moves]
    into.index_add_(0, batch.places(rows), values)

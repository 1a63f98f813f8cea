"""Helpers inside kernels: which rows a triple's vectors are made of, and which may change.

With n of K components, `chosen` says which rows of an entity make its vector; they are the same for
all entities of a triple. Ids have 64 bits, as positions in a large table do.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def columns_of(  # type: ignore[no-untyped-def]
    chosen, triple, dims, size: tl.constexpr, parts: tl.constexpr, ROUTED: tl.constexpr
):
    """Positions of the coordinates of a triple's vectors within an entity's rows."""
    columns = dims
    if ROUTED:
        part = tl.minimum(dims // size, parts - 1)
        columns = tl.load(chosen + triple * parts + part) * size + dims % size
        if size % 4 == 0:  # four coordinates are aligned, and are read by one access
            columns = tl.max_contiguous(tl.multiple_of(columns, 4), 4)
        elif size % 2 == 0:
            columns = tl.max_contiguous(tl.multiple_of(columns, 2), 2)
    return columns


@triton.jit
def placed(  # type: ignore[no-untyped-def]
    claims, ids, columns, size: tl.constexpr, count: tl.constexpr, ROUTED: tl.constexpr
):
    """Positions of gradients where only touched rows have one, at the places that they claimed.

    `ids` and `columns` are broadcast; rows that nothing is added to need no claim.
    """
    if ROUTED:
        place = tl.load(claims + ids * count + columns // size) - 1
        at = place.to(tl.int64) * size + columns % size
        together: tl.constexpr = 4 if size % 4 == 0 else 1  # as in `columns_of`
        if len(at.shape) == 2:
            at = tl.max_contiguous(tl.multiple_of(at, (1, together)), (1, together))
        else:
            at = tl.max_contiguous(tl.multiple_of(at, together), together)
    else:
        at = (tl.load(claims + ids) - 1).to(tl.int64) * size + columns
    return at


@triton.jit
def row_of(  # type: ignore[no-untyped-def]
    chosen, triple, ids, part, parts: tl.constexpr, count: tl.constexpr, ROUTED: tl.constexpr
):
    """The row of an entity, or of a divided relation, for one of the chosen components."""
    row = ids * count
    if ROUTED:
        row += tl.load(chosen + triple * parts + part)
    return row


@triton.jit
def movable(  # type: ignore[no-untyped-def]
    pace, chosen, triple, ids, there,
    parts: tl.constexpr, count: tl.constexpr, ROUTED: tl.constexpr,
):  # fmt: skip
    """Which entities (or divided relations) have a chosen row that may change."""
    fastest = tl.load(
        pace + row_of(chosen, triple, ids, 0, parts, count, ROUTED), mask=there, other=0.0
    )
    for part in tl.static_range(1, parts):
        row = row_of(chosen, triple, ids, part, parts, count, ROUTED)
        fastest = tl.maximum(fastest, tl.load(pace + row, mask=there, other=0.0))
    return there & (fastest > 0.0)


@triton.jit
def asked_of(  # type: ignore[no-untyped-def]
    pace, relation_pace, attention_pace, chosen, triple, end, relation,
    parts: tl.constexpr, count: tl.constexpr,
    ROUTED: tl.constexpr, DIVIDED: tl.constexpr, GATED: tl.constexpr,
):  # fmt: skip
    """Whether what negatives are compared with may change: the other end, or the relation."""
    asked = movable(pace, chosen, triple, end, True, parts, count, ROUTED)
    if DIVIDED:
        asked |= movable(relation_pace, chosen, triple, relation, True, parts, count, ROUTED)
    else:
        asked |= tl.load(relation_pace + relation) > 0.0
    if GATED:
        asked |= tl.load(attention_pace + relation) > 0.0
    return asked

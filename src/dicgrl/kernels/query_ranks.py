"""Ranks without storing scores: distances of queries to all candidates are compared in registers.

A program holds a tile of queries x candidates and walks over the dimensions. It only writes two
counts per query (`count`), or the distances themselves if they are asked for (`distances`). One
launch serves all relations: a tile of queries has one relation, whose chosen components say which
rows of the transposed candidates to read. Known answers are bits of a mask
(`dicgrl.kernels.ranking`).

Ties must be exact. So the distance of the true answer, which `_truth` computes beforehand, uses the
same operations in the same order as those of the candidates: one dimension after the other, with
explicit fused multiply-adds for products. For the norm 2 squares are compared, and the distance of
a dot product is its negative. A matrix product on tensor cores would be faster, but does not
guarantee that a pair is rounded in the same way wherever it is in a tile. The reference is `Ranker`
in PyTorch.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dicgrl.kernels.batch import Compare
from dicgrl.kernels.ranking import tiles as tiles_of

QUERIES, CANDIDATES = 8, 512  # tile of a program
_WARPS = 4
_ROWS = 128  # queries of a program of `_truth`


def truth(
    queries: Tensor,
    entities: Tensor,
    answers: Tensor,
    chosen: Tensor | None,
    size: int,
    compare: Compare,
) -> Tensor:
    """Distances of the true answers, [q]; squared for the norm 2.

    Args:
        queries: The queries that the answers are compared with, [q, l].
        entities: Vectors of all entities, [N, d].
        answers: Entities, [q].
        chosen: Components of an entity that a query uses, [q, n]; None for all.
        size: Length of a component.
        compare: Which distance to use.
    """
    found = torch.empty(len(queries), device=queries.device, dtype=queries.dtype)
    _truth[(triton.cdiv(len(queries), _ROWS),)](
        queries, entities, answers, chosen, found, len(queries),
        stride=entities.shape[1], size=size, parts=queries.shape[1] // size,
        ROUTED=chosen is not None, COMPARE=compare, ROWS=_ROWS,
    )  # fmt: skip
    return found


def count(
    queries: Tensor,
    candidates: Tensor,
    threshold: Tensor,
    bits: Tensor,
    chosen: Tensor | None,
    size: int,
    tiles: tuple[Tensor, Tensor],
    higher: Tensor,
    equal: Tensor,
    compare: Compare,
) -> None:
    """Count the candidates that are nearer than the true answer, and those that are as near.

    Args:
        queries: [q, l], sorted by relation.
        candidates: Vectors of the candidates, [c, d].
        threshold: Distances of the true answers, [q].
        bits: Candidates that do not compete, [q, words].
        chosen: Components that a query uses, [q, n], the same within a tile; None for all.
        size: Length of a component.
        tiles: First query of each tile and the one after its last.
        higher: Counts of nearer candidates, [q], int32, added to.
        equal: Counts of equally near candidates, likewise.
        compare: Which distance to use.
    """
    tiled, lines = _laid_out(queries, candidates, tiles[0])
    _count[(len(tiles[0]), lines.shape[1] // CANDIDATES)](
        tiled, lines, threshold, bits, chosen, *tiles, higher, equal,
        len(candidates), lines.shape[1], bits.shape[1],
        size=size, parts=queries.shape[1] // size, ROUTED=chosen is not None, COMPARE=compare,
        QUERIES=QUERIES, CANDIDATES=CANDIDATES,
        UNROLL=_unroll(size, compare), num_warps=_WARPS,
    )  # fmt: skip


def distances(queries: Tensor, candidates: Tensor, compare: Compare) -> Tensor:
    """Distances of all queries [q, l] to all candidates [c, l], [q, c]; squared for the norm 2."""
    size = queries.shape[1]
    found = torch.empty(len(queries), len(candidates), device=queries.device)
    if not found.numel():
        return found
    first, _ = tiles_of(queries[:, 0], 0, QUERIES)
    tiled, lines = _laid_out(queries, candidates, first)
    _distances[(len(first), lines.shape[1] // CANDIDATES)](
        tiled, lines, found, first, len(queries), len(candidates), lines.shape[1],
        size=size, COMPARE=compare, QUERIES=QUERIES, CANDIDATES=CANDIDATES,
        UNROLL=_unroll(size, compare), num_warps=_WARPS,
    )  # fmt: skip
    return found


def _laid_out(queries: Tensor, candidates: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """Queries in tiles [t, l, QUERIES] from `first` on, and candidates transposed, [d, padded].

    A thread holds all queries of a tile and a few neighbouring candidates. Both are laid out so
    that one dimension of a tile is contiguous and complete, so that the loop needs neither masks
    nor a pointer per query.
    """
    padded = triton.cdiv(len(candidates), CANDIDATES) * CANDIDATES
    lines = torch.zeros(candidates.shape[1], padded, device=queries.device, dtype=queries.dtype)
    lines[:, : len(candidates)] = candidates.t()
    row = first[:, None] + torch.arange(QUERIES, device=queries.device)
    return queries[row.clamp_(max=len(queries) - 1)].transpose(1, 2).contiguous(), lines


def _unroll(size: int, compare: Compare) -> int:
    """Number of dimensions per iteration of the loop; a complex number has two."""
    steps = (4, 10, 6, 2) if compare == "modulus" else (4, 5, 3, 2, 1)
    return next(step for step in steps if size % step == 0)


# Only these two functions decide how a distance is rounded.
@triton.jit
def _added(total, q, c, COMPARE: tl.constexpr):  # type: ignore[no-untyped-def]
    """A distance with one more dimension."""
    if COMPARE == "dot":
        total = tl.fma(-q, c, total)
    elif COMPARE == "l2":
        total = tl.fma(q - c, q - c, total)
    else:
        total = total + tl.abs(q - c)
    return total


@triton.jit
def _added_modulus(total, q_real, q_imaginary, c_real, c_imaginary):  # type: ignore[no-untyped-def]
    """A distance with one more complex dimension."""
    real, imaginary = q_real - c_real, q_imaginary - c_imaginary
    return total + tl.sqrt(tl.fma(imaginary, imaginary, real * real))


@triton.jit
def _walked(  # type: ignore[no-untyped-def]
    total, q_at, c_at, line_length,
    size: tl.constexpr, COMPARE: tl.constexpr, QUERIES: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Distances of a tile with `size` more dimensions."""
    for _ in range(0, size, UNROLL):
        for j in tl.static_range(0, UNROLL, 2 if COMPARE == "modulus" else 1):
            c = tl.load(c_at + j * line_length)
            q = tl.load(q_at + j * QUERIES)
            if COMPARE == "modulus":
                c_imaginary = tl.load(c_at + (j + 1) * line_length)
                q_imaginary = tl.load(q_at + (j + 1) * QUERIES)
                total = _added_modulus(total, q, q_imaginary, c, c_imaginary)
            else:
                total = _added(total, q, c, COMPARE)
        c_at += UNROLL * line_length
        q_at += UNROLL * QUERIES
    return total


@triton.jit(do_not_specialize=["count"])
def _truth(  # type: ignore[no-untyped-def]
    queries, entities, answers, chosen, found, count,
    stride: tl.constexpr, size: tl.constexpr, parts: tl.constexpr,
    ROUTED: tl.constexpr, COMPARE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < count
    entity = tl.load(answers + row, mask=inside, other=0)
    total = tl.zeros([ROWS], dtype=tl.float32)
    for part in range(parts):
        at = entity * stride
        if ROUTED:
            at += tl.load(chosen + row * parts + part, mask=inside, other=0) * size
        q_at = queries + (row * parts + part) * size
        c_at = entities + at
        for k in range(0, size, 2 if COMPARE == "modulus" else 1):
            q = tl.load(q_at + k, mask=inside, other=0.0)
            c = tl.load(c_at + k, mask=inside, other=0.0)
            if COMPARE == "modulus":
                q_imaginary = tl.load(q_at + k + 1, mask=inside, other=0.0)
                c_imaginary = tl.load(c_at + k + 1, mask=inside, other=0.0)
                total = _added_modulus(total, q, q_imaginary, c, c_imaginary)
            else:
                total = _added(total, q, c, COMPARE)
    tl.store(found + row, total, mask=inside)


@triton.jit(do_not_specialize=["candidate_count", "words"])
def _count(  # type: ignore[no-untyped-def]
    tiled, lines, threshold, bits, chosen, tile_first, tile_stop, higher, equal,
    candidate_count, line_length, words,
    size: tl.constexpr, parts: tl.constexpr, ROUTED: tl.constexpr, COMPARE: tl.constexpr,
    QUERIES: tl.constexpr, CANDIDATES: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0).to(tl.int64)
    first = tl.load(tile_first + tile)
    stop = tl.load(tile_stop + tile)
    if first >= stop:
        return
    place = tl.arange(0, QUERIES)
    column = tl.program_id(1) * CANDIDATES + tl.arange(0, CANDIDATES)
    q_at = tiled + tile * (size * parts * QUERIES) + place[:, None]
    total = tl.zeros([QUERIES, CANDIDATES], dtype=tl.float32)
    for part in range(parts):
        line = (tl.load(chosen + first * parts + part) if ROUTED else part) * size
        c_at = lines + line.to(tl.int64) * line_length + column[None, :]
        total = _walked(
            total, q_at + part * (size * QUERIES), c_at, line_length, size, COMPARE, QUERIES, UNROLL
        )
    row = first + place
    inside = row < stop
    limit = tl.load(threshold + row, mask=inside, other=0.0)[:, None]
    competes = inside[:, None] & (column < candidate_count)[None, :]
    word = tl.load(bits + row[:, None] * words + (column // 32)[None, :], mask=competes, other=0)
    competes = competes & (((word >> (column % 32)[None, :]) & 1) == 0)
    # Not `<`: a NaN must not make the true answer look good.
    above = ((total >= limit) == 0) & competes
    same = (total == limit) & competes
    tl.atomic_add(higher + row, tl.sum(above.to(tl.int32), 1), mask=inside, sem="relaxed")
    tl.atomic_add(equal + row, tl.sum(same.to(tl.int32), 1), mask=inside, sem="relaxed")


@triton.jit(do_not_specialize=["query_count", "candidate_count"])
def _distances(  # type: ignore[no-untyped-def]
    tiled, lines, found, tile_first, query_count, candidate_count, line_length,
    size: tl.constexpr, COMPARE: tl.constexpr, QUERIES: tl.constexpr, CANDIDATES: tl.constexpr,
    UNROLL: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0).to(tl.int64)
    row = tl.load(tile_first + tile) + tl.arange(0, QUERIES)
    column = tl.program_id(1) * CANDIDATES + tl.arange(0, CANDIDATES)
    q_at = tiled + tile * (size * QUERIES) + tl.arange(0, QUERIES)[:, None]
    total = tl.zeros([QUERIES, CANDIDATES], dtype=tl.float32)
    total = _walked(
        total, q_at, lines + column[None, :], line_length, size, COMPARE, QUERIES, UNROLL
    )
    place = row.to(tl.int64)[:, None] * candidate_count + column[None, :]
    inside = (row < query_count)[:, None] & (column < candidate_count)[None, :]
    tl.store(found + place, total, mask=inside)

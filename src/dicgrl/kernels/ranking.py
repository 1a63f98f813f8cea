"""What kernels that rank have in common: known answers as bits, queries in tiles.

The kernel that compares is `dicgrl.kernels.query_ranks`, or a scorer's own.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_ANSWERS = 128  # known answers that a program of `_mask` marks at a time


def mask(
    first: Tensor, last: Tensor, known: Tensor, answers: Tensor, candidates: range
) -> tuple[Tensor, Tensor]:
    """Bits of the candidates that do not compete, [q, words], and how many of them are known.

    Args:
        first: Where the known answers of each query begin, [q].
        last: Where they end, [q].
        known: Known answers of all questions.
        answers: The true answer of each query, [q]; it is marked but not counted.
        candidates: The entities of bits 0, 1, ...
    """
    words = triton.cdiv(len(candidates), 32)
    bits = torch.zeros(len(answers), words, device=answers.device, dtype=torch.int32)
    counted = torch.empty(len(answers), device=answers.device, dtype=torch.int32)
    _mask[(len(answers),)](
        first, last, known, answers, bits, counted, words, candidates.start, candidates.stop,
        BLOCK=_ANSWERS,
    )  # fmt: skip
    return bits, counted


def tiles(relations: Tensor, num_relations: int, height: int) -> tuple[Tensor, Tensor]:
    """First query of each tile and the one after its last.

    The exact number of tiles would only be known after waiting for the device. It is at most one
    more per relation, so some of the tiles may be empty.

    Args:
        relations: Relation of each query, [q], sorted if a tile has only one relation.
        num_relations: Number of relations; 0 if a tile may have several.
        height: Queries of a tile.
    """
    count = len(relations)
    if not num_relations:
        first = torch.arange(0, count, height, device=relations.device)
        return first, (first + height).clamp(max=count)
    each = torch.zeros(num_relations, dtype=torch.long, device=relations.device)
    each.index_add_(0, relations, torch.ones_like(relations))
    stop = each.cumsum(0)
    needed = (each + height - 1) // height
    up_to = needed.cumsum(0)
    most = (count + height - 1) // height + min(num_relations, count)
    tile = torch.arange(most, device=relations.device)
    relation = torch.searchsorted(up_to, tile, right=True).clamp_(max=num_relations - 1)
    first = (stop - each)[relation] + (tile - (up_to - needed)[relation]) * height
    return first, torch.minimum(first + height, stop[relation])


@triton.jit(do_not_specialize=["words", "start", "stop"])
def _mask(  # type: ignore[no-untyped-def]
    first, last, known, answers, bits, counted, words, start, stop, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    answer = tl.load(answers + row)
    stop_at = tl.load(last + row)
    number = 0
    at = tl.load(first + row)
    while at < stop_at:
        place = at + tl.arange(0, BLOCK)
        entity = tl.load(known + place, mask=place < stop_at, other=-1)
        marked = (entity >= start) & (entity < stop) & (entity != answer) & (place < stop_at)
        bit = entity - start
        one = tl.full([BLOCK], 1, dtype=tl.int32) << (bit % 32).to(tl.int32)
        tl.atomic_or(bits + row * words + bit // 32, one, mask=marked, sem="relaxed")
        number += tl.sum(marked.to(tl.int32), 0)
        at += BLOCK
    tl.store(counted + row, number)
    if (answer >= start) & (answer < stop):
        bit = answer - start
        one = tl.full([], 1, dtype=tl.int32) << (bit % 32).to(tl.int32)
        tl.atomic_or(bits + row * words + bit // 32, one, sem="relaxed")

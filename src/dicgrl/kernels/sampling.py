"""Draw negatives in one launch: two binary searches per draw, not some thirty array operations.

For each triple the known answers of its question are looked up, then each random number is mapped
to an entity that is not among them, as `dicgrl.training.sampling` explains. The same random numbers
give the same entities as its PyTorch path.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_TILE = 256  # triples x draws of a program


def draw(
    triples: Tensor,
    raw: Tensor,
    questions: Tensor,
    start: Tensor,
    answers: Tensor,
    longest: int,
    given: int,
    num_relations: int,
    entities: range,
) -> Tensor:
    """Entities that do not answer the questions of triples, one for each random number.

    Args:
        triples: [n, 3].
        raw: Random numbers, not negative, [n, count].
        questions: Sorted keys of the questions with an answer, [g].
        start: Where their answers begin, [g + 1].
        answers: Answers relative to the first entity, sorted within a question.
        longest: Largest number of answers of a question.
        given: Column of the entity that is part of the question.
        num_relations: Base of the keys.
        entities: The range of entities to draw from.
    """
    count, width = raw.shape
    drawn = torch.empty_like(raw)
    if not drawn.numel():
        return drawn
    columns = triton.next_power_of_2(width)
    rows = max(_TILE // columns, 1)
    _draw[(triton.cdiv(count, rows),)](
        triples.contiguous(), raw, questions, start, answers, drawn,
        count, width, len(questions), len(entities), entities.start, num_relations,
        len(questions).bit_length(), longest.bit_length(),
        GIVEN=given, ROWS=rows, COLUMNS=columns,
    )  # fmt: skip
    return drawn


@triton.jit(
    do_not_specialize=[
        "count", "width", "question_count", "entity_count", "entity_start", "num_relations",
        "question_steps", "answer_steps",
    ]
)  # fmt: skip
def _draw(  # type: ignore[no-untyped-def]
    triples, raw, questions, start, answers, drawn,
    count, width, question_count, entity_count, entity_start, num_relations,
    question_steps, answer_steps,
    GIVEN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < count
    key = tl.load(triples + row * 3 + GIVEN, mask=inside, other=0) * num_relations
    key += tl.load(triples + row * 3 + 1, mask=inside, other=0)
    low = tl.zeros([ROWS], dtype=tl.int64)
    high = low + question_count
    left = question_steps
    while left > 0:  # binary search for the first question that is not below the key
        left -= 1
        middle = (low + high) // 2
        searching = low < high
        below = tl.load(questions + middle, mask=searching, other=0) < key
        low = tl.where(searching & below, middle + 1, low)
        high = tl.where(searching & (below == 0), middle, high)
    found = low < question_count
    found = found & (tl.load(questions + low, mask=found, other=0) == key)
    first = tl.load(start + low, mask=found, other=0)
    last = tl.load(start + low + 1, mask=found, other=0)
    free = entity_count - (last - first)

    column = tl.arange(0, COLUMNS)
    place = row[:, None] * width + column[None, :]
    both = inside[:, None] & (column < width)[None, :]
    number = tl.load(raw + place, mask=both, other=0) % tl.maximum(free, 1)[:, None]
    low_answer = tl.zeros([ROWS, COLUMNS], dtype=tl.int64)  # answers that come before, counted
    high_answer = low_answer + (last - first)[:, None]
    left = answer_steps
    while left > 0:
        left -= 1
        middle = (low_answer + high_answer) // 2
        searching = low_answer < high_answer
        answer = tl.load(answers + first[:, None] + middle, mask=searching, other=0)
        before = answer - middle <= number
        low_answer = tl.where(searching & before, middle + 1, low_answer)
        high_answer = tl.where(searching & (before == 0), middle, high_answer)
    entity = tl.where((free > 0)[:, None], number + low_answer + entity_start, -1)
    tl.store(drawn + place, entity, mask=both)

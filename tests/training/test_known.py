from __future__ import annotations

from unittest.mock import patch

import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.training.known import HEAD, TAIL, KnownAnswers
from tests.slow import Triple, rows_of, slow_answers

ids = st.integers(0, 5)
triples = st.lists(st.tuples(ids, st.integers(0, 2), ids), max_size=40)
sides = st.sampled_from(["head", "tail"])


def known_of(rows: list[Triple], side: str) -> KnownAnswers:
    return KnownAnswers.of(rows_of(rows), TAIL if side == "tail" else HEAD, 3)


def answers_of(rows: list[Triple], side: str, triple: Triple) -> list[int]:
    h, r, t = triple
    key = (h, r) if side == "tail" else (r, t)
    return sorted(slow_answers(rows, side).get(key, set()))


@given(triples, triples, sides)
def test_find_gives_the_sorted_answers_of_every_question(
    rows: list[Triple], asked: list[Triple], side: str
) -> None:
    known = known_of(rows, side)
    first, last = known.find(rows_of(asked))
    assert len(first) == len(last) == len(asked)
    for triple, start, stop in zip(asked, first.tolist(), last.tolist(), strict=True):
        assert known.answers[start:stop].tolist() == answers_of(rows, side, triple)


@given(triples, triples, sides)
def test_expand_gives_one_pair_for_each_answer(
    rows: list[Triple], asked: list[Triple], side: str
) -> None:
    row, entity = known_of(rows, side).expand(rows_of(asked))
    expected = [
        (i, answer) for i, triple in enumerate(asked) for answer in answers_of(rows, side, triple)
    ]
    assert list(zip(row.tolist(), entity.tolist(), strict=True)) == expected


@given(triples, sides)
def test_a_repeated_triple_counts_once(rows: list[Triple], side: str) -> None:
    once, twice = known_of(rows, side), known_of(rows + rows[::-1], side)
    for name in ("questions", "start", "answers"):
        assert torch.equal(getattr(once, name), getattr(twice, name))
    assert len(once.answers) == len(set(rows))


@given(triples, triples, sides)
def test_questions_and_answers_that_make_no_number_are_sorted_apart(
    rows: list[Triple], asked: list[Triple], side: str
) -> None:
    together = known_of(rows, side)
    with patch("dicgrl.training.known._LARGEST", 0):
        apart = known_of(rows, side)
    for name in ("questions", "start", "answers"):
        assert torch.equal(getattr(apart, name), getattr(together, name))


def test_large_ids_do_not_collide() -> None:
    big = 5_000_000
    rows = rows_of([(big - 1, 999, 7), (big - 2, 999, 8), (big - 1, 998, 9)])
    known = KnownAnswers.of(rows, TAIL, 1000)
    first, last = known.find(rows)
    found = [
        known.answers[a:b].tolist() for a, b in zip(first.tolist(), last.tolist(), strict=True)
    ]
    assert found == [[7], [8], [9]]

"""The best of many candidates, against a sort of all of them."""

from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.ask.best import Best, highest

# Few values: many ties, at the border of the best as well; and what is no answer.
score = st.sampled_from([0.0, 1.0, 2.0, -1.5, -math.inf, math.nan])


@st.composite
def rows(draw: st.DrawFn) -> list[list[float]]:
    count = draw(st.integers(1, 12))
    return draw(st.lists(st.lists(score, min_size=count, max_size=count), min_size=1, max_size=4))


def slow(row: list[float], ids: list[int], k: int) -> list[tuple[int, float]]:
    """Falling by score, rising by id; what has no score is left out."""
    found = [(-s, i) for s, i in zip(row, ids, strict=True) if s > -math.inf]
    return [(i, -s) for s, i in sorted(found)[:k]]


@given(rows(), st.integers(1, 14), st.integers(1, 5), st.data())
def test_the_best_of_blocks_are_those_of_a_sort(
    scores: list[list[float]], k: int, width: int, data: st.DataObject
) -> None:
    count = len(scores[0])
    ids = sorted(data.draw(st.sets(st.integers(0, 99), min_size=count, max_size=count)))
    best = Best(len(scores), k, "cpu")
    chosen = torch.tensor(data.draw(st.permutations(range(len(scores)))))
    for some in chosen.split(2):  # questions come in any order
        for first in range(0, count, width):
            block = torch.tensor(scores)[some, first : first + width]
            best.add(some, block, torch.tensor(ids[first : first + width]))
    for number, row in enumerate(scores):
        there = best.scores[number] > -math.inf
        found = zip(
            best.ids[number, there].tolist(), best.scores[number, there].tolist(), strict=True
        )
        assert list(found) == slow(row, ids, k)


def test_a_constant_scorer_has_the_first_candidates() -> None:
    found, at = highest(torch.zeros(3, 1000), 5)
    assert at.tolist() == [[0, 1, 2, 3, 4]] * 3
    assert found.tolist() == [[0.0] * 5] * 3


@given(rows(), st.integers(1, 14))
def test_the_highest_are_those_of_a_stable_sort(scores: list[list[float]], k: int) -> None:
    given_scores = torch.tensor(scores).nan_to_num(nan=-math.inf, neginf=-math.inf)
    found, at = highest(given_scores.clone(), k)
    expected = given_scores.sort(dim=1, descending=True, stable=True)
    assert torch.equal(found, expected.values[:, :k])
    assert torch.equal(at, expected.indices[:, :k])

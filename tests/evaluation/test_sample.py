"""Samples of test sets: which examples they take, and what may be compared with what."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.evaluation.continual import Tested, evaluation
from dicgrl.evaluation.sample import bounded_sizes, sample_of, sample_sizes
from dicgrl.trainers.measured import Measured

SIZES = st.lists(st.integers(0, 5000), min_size=1, max_size=8)


@given(SIZES, st.integers(1, 3000))
def test_a_sample_has_an_even_share_of_every_set_and_is_no_larger_than_allowed(
    sizes: list[int], at_most: int
) -> None:
    taken = sample_sizes(sizes, at_most)
    assert all(min(size, 1) <= count <= size for count, size in zip(taken, sizes, strict=True))
    assert sum(taken) <= max(at_most, sum(size > 0 for size in sizes))
    if sum(sizes) <= at_most:
        assert taken == sizes
    elif max(taken) > 1:  # no more than halved once too often
        assert 2 * sum(taken) + 2 * len(sizes) >= at_most
    shares = [count / size for count, size in zip(taken, sizes, strict=True) if count > 50]
    assert not shares or max(shares) <= 1.03 * min(shares)
    assert sample_sizes(sizes, 0) == sizes


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.integers(1, 30))
def test_a_bounded_sample_does_not_grow_with_the_number_of_sets(
    sizes: list[int], at_most: int
) -> None:
    taken, every = bounded_sizes(sizes, at_most), sample_sizes(sizes, at_most)
    assert all(count in (0, most) for count, most in zip(taken, every, strict=True))
    assert sum(taken) <= at_most + 1
    assert taken[-1] == every[-1]
    if sum(every) <= at_most:
        assert taken == every
    more = bounded_sizes([*sizes, 1], at_most)[:-1]  # one more set leaves sets out, and adds none
    assert all(now <= before for now, before in zip(more, taken, strict=True))


@given(st.integers(0, 9), st.integers(1, 300), st.data())
def test_samples_are_the_same_each_time_and_nested(
    part: int, size: int, data: st.DataObject
) -> None:
    few = data.draw(st.integers(0, size))
    many = data.draw(st.integers(few, size))
    small, large = sample_of(part, size, few), sample_of(part, size, many)
    assert small.tolist() == sample_of(part, size, few).tolist() == sorted(set(small.tolist()))
    assert len(small) == few and set(small.tolist()) <= set(large.tolist()) <= set(range(size))
    assert sample_of(part, size, size).tolist() == list(range(size))


def test_samples_of_parts_differ() -> None:
    assert sample_of(0, 100, 10).tolist() != sample_of(1, 100, 10).tolist()


@pytest.mark.parametrize("asked_first", [3, 7, 20])
@pytest.mark.parametrize("asked_now", [5, 7, 20])
def test_retention_compares_the_same_questions(asked_first: int, asked_now: int) -> None:
    random = np.random.default_rng(asked_first)
    then, now = random.random((20, 2)) < 0.6, random.random((20, 2)) < 0.5  # of the whole set
    first, later = (sample_of(0, 20, count) for count in (asked_first, asked_now))
    both = sorted(set(first.tolist()) & set(later.tolist()))
    still = [
        bool(now[row, side]) for row in both for side in range(2) if then[row, side]
    ]  # by hand
    answered = torch.from_numpy(now[later].T).flatten()
    measured = Measured(0, 20, asked_now, {}, answered)
    assert measured.retained(torch.from_numpy(then[first].T).flatten()) == pytest.approx(
        sum(still) / len(still)
    )


def test_nothing_answered_at_first_leaves_nothing_to_retain() -> None:
    measured = Measured(0, 4, 4, {}, torch.ones(4, dtype=torch.bool))
    assert measured.retained(None) is None
    assert measured.retained(torch.zeros(4, dtype=torch.bool)) is None


def entry(part: int, value: float, sampled: int | None = None) -> Tested:
    of = {} if sampled is None else {"sampled": sampled}
    return {"part": part, "count": 10 * (part + 1), **of, "x": value}


def test_forgetting_compares_the_same_samples() -> None:
    everything = [entry(0, 0.9)], [entry(0, 0.8), entry(1, 0.6)]
    other = [entry(0, 0.5, 5), entry(1, 0.5, 10)]
    found = evaluation("x", [*everything, other])
    assert found.forgetting is None and found.backward_transfer is None
    assert found.sampled == 15 and found.count == 30
    assert "measured on 15 of 30 test examples" in str(found)
    again = evaluation("x", [*everything, other, [entry(0, 0.4, 5), entry(1, 0.45, 10)]])
    assert again.forgetting == pytest.approx((0.1 + 0.05) / 2)
    in_full = evaluation("x", [*everything, other, [entry(0, 0.85), entry(1, 0.6)]])
    assert in_full.forgetting == pytest.approx(0.05 / 2) and in_full.sampled is None
    assert in_full.backward_transfer == pytest.approx((-0.05 + 0) / 2)
    assert "measured on" not in str(in_full)


def test_a_sample_stands_for_its_test_set_in_the_whole() -> None:
    found = evaluation("x", [[], [entry(0, 0.5, 5), entry(1, 0.2, 1)]])
    assert found.whole == {"x": pytest.approx((0.5 * 10 + 0.2 * 20) / 30)}
    assert found.average == {"x": pytest.approx(0.35)}

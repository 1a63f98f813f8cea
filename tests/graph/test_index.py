from __future__ import annotations

import math
from collections import defaultdict
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.graph.index import SegmentIndex

_EDGES = [2**31 - 2, 2**31 - 1, 2**31, -(2**31), 1 - 2**31]  # of 32 bits
keys = st.integers(-3, 12) | st.sampled_from([2**62, -(2**62), *_EDGES])
batches = st.lists(st.lists(keys, max_size=12), max_size=12)


@pytest.mark.parametrize("far", [0, 1 << 18], ids=["searched in order", "as asked"])
@given(batches, st.lists(keys, max_size=12))
def test_is_a_dict_of_lists(far: int, batches: list[list[int]], queries: list[int]) -> None:
    block = 3 if far else 1 << 20
    with patch("dicgrl.graph.index._FAR", far), patch("dicgrl.graph.sorting.BLOCK", block):
        check_against_a_dict(batches, queries)


def check_against_a_dict(batches: list[list[int]], queries: list[int]) -> None:
    index = SegmentIndex()
    reference: defaultdict[int, list[int]] = defaultdict(list)
    value = 0
    for batch in batches:
        values = list(range(value, value + len(batch)))
        index.add(np.array(batch, dtype=np.int64), np.array(values, dtype=np.int64))
        for key in batch:
            reference[key].append(value)
            value += 1
    assert len(index) == value

    asked = np.array(queries, dtype=np.int64)
    positions, found = index.lookup(asked)
    expected = [(i, v) for i, key in enumerate(queries) for v in reference.get(key, [])]
    assert list(zip(positions.tolist(), found.tolist(), strict=True)) == expected
    assert index.count(asked).tolist() == [len(reference.get(key, [])) for key in queries]
    assert index.contains(asked).tolist() == [key in reference for key in queries]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_segments_stay_few(sizes: list[int]) -> None:
    index = SegmentIndex()
    for size in sizes:
        index.add(np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64))
        assert len(index.segments) <= math.log2(len(index)) + 1
    assert sum(index.segments) == len(index) == sum(sizes)


def test_many_small_parts_after_a_large_one_leave_it_alone() -> None:
    index = SegmentIndex()
    index.add(np.arange(10_000), np.arange(10_000))
    for i in range(100):
        index.add(np.array([i]), np.array([i]))
    assert index.segments[0] == 10_000  # an update costs what the part costs
    assert len(index.segments) <= 8


def test_values_of_a_key_come_in_order_of_arrival() -> None:
    index = SegmentIndex()
    for value in (5, 3, 9, 1, 7):
        index.add(np.array([0, 1]), np.array([value, -value]))
    assert index.lookup(np.array([1, 0]))[1].tolist() == [-5, -3, -9, -1, -7, 5, 3, 9, 1, 7]


def test_empty() -> None:
    index = SegmentIndex()
    none = np.empty(0, dtype=np.int64)
    index.add(none, none)
    assert len(index) == 0 and index.segments == []
    for queries in (none, np.array([4])):
        assert [len(found) for found in index.lookup(queries)] == [0, 0]
        assert index.count(queries).tolist() == [0] * len(queries)


def filled(batches: list[list[int]]) -> tuple[SegmentIndex, defaultdict[int, list[int]]]:
    """Every entry has its number of arrival as value."""
    index = SegmentIndex()
    reference: defaultdict[int, list[int]] = defaultdict(list)
    for batch in batches:
        first = sum(map(len, reference.values()))
        index.add(np.array(batch, dtype=np.int64), np.arange(first, first + len(batch)))
        for i, key in enumerate(batch):
            reference[key].append(first + i)
    return index, reference


class Offset:
    """A generator that always draws the same number."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self, size: int) -> np.ndarray:
        return np.full(size, self.value)


offsets = st.floats(0, 1, exclude_max=True) | st.just(math.nextafter(1, 0)) | st.just(0.0)


@given(batches, st.lists(keys, max_size=12), st.integers(0, 6), offsets, st.booleans())
def test_a_sample_is_some_of_the_entries_each_at_most_once(
    batches: list[list[int]], queries: list[int], most: int, offset: float, first_half: bool
) -> None:
    index, reference = filled(batches)
    asked = np.array(queries, dtype=np.int64)
    exist = [reference.get(key, []) for key in queries]
    if first_half:
        exist = [values[: len(values) // 2] for values in exist]
    among = np.array([len(values) for values in exist], np.int64) if first_half else None
    generator: Any = Offset(offset)
    positions, found = index.sample(asked, most, generator, among)
    assert positions.tolist() == sorted(positions.tolist())
    for i, values in enumerate(exist):
        drawn = found[positions == i].tolist()
        assert len(drawn) == min(most, len(values))
        assert len(set(drawn)) == len(drawn) and set(drawn) <= set(values)


@given(st.integers(1, 40), st.integers(1, 40))
def test_many_entries_are_sampled_to_the_last_without_reading_past_it(size: int, most: int) -> None:
    index, _ = filled([[0] * size])
    generator: Any = Offset(math.nextafter(1, 0))
    _, found = index.sample(np.array([0]), most, generator)
    assert len(set(found.tolist())) == min(size, most)
    assert set(found.tolist()) <= set(range(size))


def test_every_entry_is_sampled_about_as_often_as_every_other() -> None:
    index, _ = filled([[0] * 7, [0, 1], [0, 0, 1], [0]])
    generator = np.random.default_rng(0)
    times = 4000
    queries = np.zeros(times, dtype=np.int64)
    _, found = index.sample(queries, 4, generator)
    count = np.bincount(found, minlength=13)
    assert not count[[8, 11]].any()  # those of the other key
    drawn = np.delete(count, [8, 11])
    expected = times * 4 / 11
    assert (abs(drawn - expected) < 5 * math.sqrt(expected)).all()

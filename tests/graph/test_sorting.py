from __future__ import annotations

import tracemalloc
from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.graph.sorting import blocks_in_order, is_first, stable_order

numbers = st.lists(
    st.integers(-3, 12) | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**62, -(2**62)]),
    max_size=60,
)


@given(numbers)
def test_the_order_is_that_of_a_stable_sort(values: list[int]) -> None:
    given_ = np.array(values, np.int64)
    assert stable_order(given_).tolist() == np.argsort(given_, kind="stable").tolist()


@given(numbers, st.integers(1, 9))
def test_blocks_are_pieces_of_it_and_divide_no_value(values: list[int], block: int) -> None:
    given_ = np.array(values, np.int64)
    found = [some.tolist() for some in blocks_in_order(given_, block)]
    assert list(chain.from_iterable(found)) == np.argsort(given_, kind="stable").tolist()
    values_of = [{values[at] for at in some} for some in found]
    assert all(values_of) and sum(map(len, values_of)) == len(set(values))


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 30))
def test_the_first_of_equal_numbers_is_found(values: list[int], block: int) -> None:
    found = is_first(np.array(values, np.int32))
    assert found.tolist() == [value not in values[:at] for at, value in enumerate(values)]


def test_what_a_sort_needs_follows_the_block() -> None:
    many = np.random.default_rng(0).integers(0, 1 << 60, 1 << 18)

    def most(block: int) -> int:
        tracemalloc.start()
        for _ in blocks_in_order(many, block):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert most(1 << 13) < most(1 << 18) / 4

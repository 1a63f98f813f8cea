from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import UserError
from dicgrl.graph.arrays import Groups, GrowingArray, as_edges, as_ids, as_triples, distinct, ids_in


@given(st.lists(st.lists(st.tuples(*[st.integers(-9, 9)] * 2), max_size=9), max_size=9))
def test_growing_array_is_a_list(batches: list[list[tuple[int, int]]]) -> None:
    rows = GrowingArray((2,), np.dtype(np.int64))
    reference: list[list[int]] = []
    for batch in batches:
        earlier = rows.view()
        copy = earlier.copy()
        rows.append(np.array(batch, dtype=np.int64).reshape(-1, 2))
        reference += [list(row) for row in batch]
        assert rows.view().tolist() == reference
        assert len(rows) == len(reference)
        np.testing.assert_array_equal(earlier, copy)  # what was handed out does not change


def test_view_cannot_be_written_and_the_array_still_grows() -> None:
    rows = GrowingArray((), np.dtype(np.float32))
    rows.append(np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        rows.view()[0] = 2
    rows.append(np.zeros(1))
    assert rows.view().tolist() == [1, 1, 1, 0]


def test_rows_of_ids() -> None:
    assert as_triples([]).shape == (0, 3)
    assert as_edges(()).shape == (0, 2)
    assert as_triples([(1, 2, 3)]).tolist() == [[1, 2, 3]]
    assert as_edges(np.array([[1, 2]], dtype=np.int32)).dtype == np.int64
    assert as_ids([]).shape == (0,) and as_ids(np.array([7], dtype=np.uint8)).tolist() == [7]
    with pytest.raises(UserError, match=r"triples must have shape \[n, 3\], not \[1, 2\]"):
        as_triples([(1, 2)])
    with pytest.raises(UserError, match=r"edges must have shape"):
        as_edges([1, 2])
    with pytest.raises(UserError, match=r"nodes must have shape \[n\], not \[1, 1\]"):
        as_ids([[1]], "nodes")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1], [0.9, 2]], r"edges must be whole numbers, not float64: row 1 is \[0.9, 2.0\]"),
        ([[0, 1.0]], r"not float64: row 0 is \[0.0, 1.0\]"),
        ([[0, np.nan]], r"not float64: row 0 is \[0.0, nan\]"),
        ([[False, True]], r"not bool: row 0 is \[False, True\]"),
        ([["0", "1"]], r"not <U1: row 0 is \['0', '1'\]"),
    ],
)
def test_ids_are_whole_numbers(rows: list[list[object]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        as_edges(rows)


@given(st.integers(0, 9), st.integers(0, 9))
def test_ids_in(start: int, size: int) -> None:
    ids = ids_in(range(start, start + size))
    assert ids.tolist() == list(range(start, start + size)) and ids.dtype == np.int64


@given(
    st.lists(st.tuples(st.integers(-3, 4), st.integers(0, 31)), max_size=20),
    st.sampled_from([1, 7, 1 << 60]),
)
def test_groups_are_joined_and_added(pairs: list[tuple[int, int]], apart: int) -> None:
    """Whether values lie close together or not."""
    pairs = [(apart * name, value) for name, value in pairs]
    names = sorted({name for name, _ in pairs})
    values = np.array([value for _, value in pairs], dtype=np.int64)
    union, total = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for name, value in pairs:
        union[name] |= value
        total[name] += value
    groups = Groups(np.array([name for name, _ in pairs], dtype=np.int64))
    assert groups.values.tolist() == names
    assert [names[at] for at in groups.group] == [name for name, _ in pairs]
    assert groups.union(values).tolist() == list(union.values())
    assert groups.sum(values.astype(np.float64)).tolist() == list(total.values())


@given(st.lists(st.lists(st.integers(-9, 9)), min_size=1, max_size=3))
def test_distinct_values_of_several_arrays(lists: list[list[int]]) -> None:
    arrays = [np.array(one, dtype=np.int64) for one in lists]
    assert distinct(*arrays).tolist() == sorted(set().union(*lists))

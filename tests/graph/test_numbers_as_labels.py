"""An array of whole numbers is read at once, to the same end as row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import KnowledgeStream

numbers = st.integers(-3, 5) | st.sampled_from([2**40, -(2**40)])
rows = st.lists(st.tuples(numbers, numbers, numbers), max_size=12)


@given(st.lists(rows, min_size=1, max_size=3))
def test_numbers_of_an_array_are_labels_in_the_order_of_their_arrival(
    parts: list[list[tuple[int, int, int]]],
) -> None:
    arrays = [np.array(part, dtype=np.int64).reshape(-1, 3) for part in parts]
    at_once, one_by_one = (KnowledgeStream.from_labels("x", given) for given in (arrays, parts))
    assert at_once.entities == one_by_one.entities
    assert at_once.relations == one_by_one.relations
    for mine, theirs in zip(at_once, one_by_one, strict=True):
        assert np.array_equal(mine.train, theirs.train)
        assert mine.new_entities == theirs.new_entities


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.uint64])
def test_every_kind_of_whole_number_is_one(kind: type) -> None:
    stream = KnowledgeStream.from_labels("x", [np.array([[1, 0, 2]], dtype=kind)])
    assert list(stream.entities) == ["1", "2"]

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import UserError, Vocabulary

labels = st.lists(st.text(max_size=3), max_size=12)


@given(st.lists(labels, max_size=6))
def test_is_a_list_without_repeats(batches: list[list[str]]) -> None:
    vocabulary = Vocabulary()
    reference: list[str] = []
    for batch in batches:
        before = list(vocabulary)
        ids = vocabulary.add(batch)
        for label in batch:
            if label not in reference:
                reference.append(label)
        assert ids.dtype == np.int64
        assert ids.tolist() == [reference.index(label) for label in batch]
        assert list(vocabulary)[: len(before)] == before  # ids never change
    assert list(vocabulary) == reference
    assert len(vocabulary) == len(reference)
    assert vocabulary.ids(reference).tolist() == list(range(len(reference)))
    assert vocabulary.labels(range(len(reference))) == reference
    assert vocabulary.labels(np.arange(len(reference))[::-1]) == reference[::-1]
    assert all(label in vocabulary for label in reference)
    assert "not there" not in vocabulary


@given(labels, labels, st.lists(st.integers(0, 20), max_size=10))
def test_adopt_maps_by_label(first: list[str], second: list[str], chosen: list[int]) -> None:
    ours, theirs = Vocabulary(first), Vocabulary(second)
    known = list(ours)
    ids = np.array([i % len(theirs) for i in chosen if len(theirs)], dtype=np.int64)
    translate = ours.adopt(theirs, ids)

    asked = [list(theirs)[i] for i in ids]
    new = [label for label in theirs if label in asked and label not in known]  # lower ids first
    assert list(ours) == known + new
    assert ours.labels(translate(ids)) == asked
    assert translate(ids.reshape(1, -1)).shape == (1, len(ids))
    assert list(theirs) == list(dict.fromkeys(second))  # the other one stays as it is


def test_ids_stay_right_after_an_iterable_that_failed() -> None:
    vocabulary = Vocabulary()

    def broken() -> Iterator[str]:
        yield "a"
        raise OSError

    with pytest.raises(OSError):
        vocabulary.add(broken())
    ids = vocabulary.add(["b", "a", "c"])
    assert vocabulary.labels(ids) == ["b", "a", "c"]


def test_unknown_label_is_named_with_similar_ones() -> None:
    films = Vocabulary(["Alien", "Brazil"], kind="film")
    with pytest.raises(UserError, match=r"unknown film 'alein'; did you mean 'Alien'\?"):
        films.ids(["Brazil", "alein"])
    with pytest.raises(UserError, match=r"unknown film 'zzzzzz'$"):
        films.ids(["zzzzzz"])
    assert list(films) == ["Alien", "Brazil"]  # asking adds nothing


def test_equality_is_by_labels_in_order() -> None:
    assert Vocabulary(["a", "b"]) == Vocabulary(["a", "b", "a"], kind="entity")
    assert Vocabulary(["a", "b"]) != Vocabulary(["b", "a"])
    assert Vocabulary(["a"]) != ["a"]

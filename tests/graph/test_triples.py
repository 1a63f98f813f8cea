"""A multimap by triples is a dict of lists, whatever the width of its keys."""

from __future__ import annotations

from collections import defaultdict
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.graph.arrays import IntArray
from dicgrl.graph.knowledge.keys import (
    MAX_ENTITIES,
    MAX_RELATIONS,
    NARROW_ENTITIES,
    are_among,
    question_keys,
    triple_keys,
)
from dicgrl.graph.knowledge.triples import TripleIndex
from dicgrl.graph.sorting import is_first

Triple = tuple[int, int, int]
Batches = list[list[Triple]]


def some(entities: list[int]) -> st.SearchStrategy[Triple]:
    ends = st.sampled_from(entities)
    return st.tuples(ends, st.sampled_from([0, 1, MAX_RELATIONS - 1]), ends)


few = some([0, 1, NARROW_ENTITIES - 1])
many = some([0, 1, NARROW_ENTITIES - 1, NARROW_ENTITIES, MAX_ENTITIES - 1])
# Graphs grow: triples that need pairs as keys come after those that do not.
batches = st.builds(
    lambda first, later: first + later,
    st.lists(st.lists(few, max_size=8), max_size=4),
    st.lists(st.lists(many, max_size=8), max_size=4),
)
queries = st.lists(many, max_size=12)


def rows(triples: list[Triple]) -> IntArray:
    return np.array(triples, dtype=np.int64).reshape(-1, 3)


def filled(batches: Batches) -> tuple[TripleIndex, dict[Triple, list[int]]]:
    index, reference = TripleIndex(), defaultdict(list)
    for batch in batches:
        first = sum(map(len, reference.values()))
        index.add(rows(batch), np.arange(first, first + len(batch)))
        for value, triple in enumerate(batch, first):
            reference[triple].append(value)
    return index, reference


@pytest.mark.parametrize("far", [0, 1 << 18], ids=["searched in order", "as asked"])
@given(batches, queries)
def test_triples_are_found(far: int, batches: Batches, asked: list[Triple]) -> None:
    block = 3 if far else 1 << 20
    with patch("dicgrl.graph.index._FAR", far), patch("dicgrl.graph.sorting.BLOCK", block):
        index, reference = filled(batches)
        expected = [reference.get(triple, []) for triple in asked]
        position, values = index.lookup(rows(asked))
        assert [values[position == i].tolist() for i in range(len(asked))] == expected
        assert index.count(rows(asked)).tolist() == list(map(len, expected))
        assert index.contains(rows(asked)).tolist() == list(map(bool, expected))
        assert len(index) == sum(map(len, reference.values()))


@given(batches, queries)
def test_questions_are_found(batches: Batches, asked: list[Triple]) -> None:
    index, reference = filled(batches)
    expected = [
        sorted(
            value for triple in reference if triple[:2] == one[:2] for value in reference[triple]
        )
        for one in asked
    ]
    questions = question_keys(rows(asked), "tail")
    position, values = index.questions.lookup(questions)
    assert [sorted(values[position == i].tolist()) for i in range(len(asked))] == expected
    assert index.questions.count(questions).tolist() == list(map(len, expected))
    assert index.questions.contains(questions).tolist() == list(map(bool, expected))


@given(batches, st.lists(many, min_size=1, max_size=4), queries)
def test_a_fork_grows_on_its_own(batches: Batches, more: list[Triple], asked: list[Triple]) -> None:
    index, reference = filled(batches)
    fork = index.fork()
    fork.add(rows(more), np.zeros(len(more), np.int64))
    assert index.count(rows(asked)).tolist() == [len(reference.get(one, [])) for one in asked]
    assert fork.count(rows(asked)).tolist() == [
        len(reference.get(one, [])) + more.count(one) for one in asked
    ]


@given(batches, st.data())
def test_entries_leave(batches: Batches, data: st.DataObject) -> None:
    index, reference = filled(batches)
    total = len(index)
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=total, max_size=total)), np.bool_)
    index.renumber(np.where(kept, np.cumsum(kept) - 1, -1))
    numbers = np.cumsum(kept) - 1
    for triple, values in reference.items():
        expected = [int(numbers[value]) for value in values if kept[value]]
        assert index.lookup(rows([triple]))[1].tolist() == expected


@given(st.lists(many), st.lists(many))
def test_keys_tell_triples_apart_in_their_order(own: list[Triple], others: list[Triple]) -> None:
    for triples in (own, own + others):
        keys = triple_keys(rows(triples))
        assert len(set(keys.tolist())) == len(set(triples))
        assert np.argsort(keys, kind="stable").tolist() == [
            at for at, _ in sorted(enumerate(triples), key=lambda pair: pair[1])
        ]
        assert is_first(keys).tolist() == [
            triple not in triples[:at] for at, triple in enumerate(triples)
        ]
    assert are_among(rows(own), rows(others)).tolist() == [triple in others for triple in own]

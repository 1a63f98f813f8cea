"""What every kind of part, graph and stream promises; each kind walks the same tests."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dicgrl
from dicgrl import KnowledgeGraph, KnowledgeStream, NetworkGraph, NetworkStream, Vocabulary
from dicgrl.graph import SPLITS, Graph, Part, Stream
from tests.streams import knowledge_lists, knowledge_stream, network_lists, network_stream


@dataclass(frozen=True)
class Kind:
    """One kind of data.

    Attributes:
        graph: Its graph.
        streams: Draws streams.
        vocabularies: What its parts call their labels.
        arrays: Its arrays, in the order of run folders that exist.
    """

    graph: type[Graph]
    streams: st.SearchStrategy[Any]
    vocabularies: tuple[str, ...]
    arrays: tuple[str, ...]


KINDS = {
    "link-prediction": Kind(
        KnowledgeGraph,
        knowledge_lists().map(knowledge_stream),
        ("entities", "relations"),
        ("train", "valid", "test"),
    ),
    "node-classification": Kind(
        NetworkGraph,
        network_lists().map(network_stream),
        ("nodes", "classes"),
        ("edges", "features", "labels", "train", "valid", "test"),
    ),
}
every_kind = pytest.mark.parametrize("task", KINDS)


def assert_same(one: Part, other: Part) -> None:
    assert one.index == other.index and one.new_labels() == other.new_labels()
    theirs = other.arrays()
    assert list(one.arrays()) == list(theirs)
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, theirs[name])
        assert array.dtype == theirs[name].dtype


@every_kind
@given(data=st.data())
def test_a_part_says_what_it_brings(task: str, data: st.DataObject) -> None:
    kind = KINDS[task]
    stream: Stream = data.draw(kind.streams)
    labels: dict[str, list[str]] = {name: [] for name in kind.vocabularies}
    for number, part in enumerate(stream):
        assert isinstance(part, Part) and part.index == number
        assert part.vocabularies == kind.vocabularies and tuple(part.arrays()) == kind.arrays
        assert list(part.new_labels()) == list(part.arrived()) == list(kind.vocabularies)
        for name, new in part.new_labels().items():
            assert part.arrived()[name] == len(new) == len(getattr(part, f"new_{name}"))
            labels[name] += new
        assert_same(part.checked(), part)
    assert {name: list(v) for name, v in stream.vocabularies().items()} == labels


@every_kind
@given(data=st.data())
def test_a_part_comes_back_from_its_arrays_and_labels(task: str, data: st.DataObject) -> None:
    stream: Stream = data.draw(KINDS[task].streams)
    vocabularies = {name: Vocabulary(kind=v.kind) for name, v in stream.vocabularies().items()}
    for part in stream:
        ranges = {}
        for name, new in part.new_labels().items():
            known = len(vocabularies[name])
            vocabularies[name].add(new)
            ranges[name] = range(known, len(vocabularies[name]))
        again = type(part).from_arrays(part.index, vocabularies, ranges, part.arrays())
        assert_same(again, part)
        assert_same(again.checked(), part)


@every_kind
@given(data=st.data())
def test_a_graph_grows_and_knows_what_it_took_in(task: str, data: st.DataObject) -> None:
    kind = KINDS[task]
    stream: Stream = data.draw(kind.streams)
    graph = kind.graph.for_part(stream[0])
    assert isinstance(stream[0], graph.part_type) and graph.num_parts == 0
    assert not stream[0].facts or not graph.knows_all_of(stream[0])
    for number, part in enumerate(stream):
        added = graph.add(part)
        assert graph.num_parts == number + 1 and added.index == number
        assert added.new_labels() == part.new_labels()  # ids of a stream are given in its order
    assert {name: list(v) for name, v in graph.vocabularies().items()} == {
        name: list(v) for name, v in stream.vocabularies().items()
    }


@every_kind
@given(data=st.data())
def test_what_is_left_out_is_counted(task: str, data: st.DataObject) -> None:
    kind = KINDS[task]
    stream: Stream = data.draw(kind.streams)
    graph = kind.graph.for_part(stream[0])
    for part in stream:
        left, known, held_out = graph.without_known(part)
        assert left.facts + known + held_out == part.facts
        graph.add(part)


@every_kind
@given(data=st.data())
def test_a_stream_is_described_merged_and_asked_without_tests(
    task: str, data: st.DataObject
) -> None:
    stream: Stream = data.draw(KINDS[task].streams)
    assert stream.task == task
    found = dicgrl.describe(stream)
    assert found == stream.describe() == json.loads(json.dumps(found))
    assert (found["name"], found["task"]) == (stream.name, task)
    assert [part["train"] for part in found["parts"]] == [len(part.train) for part in stream]
    hidden = stream.without_test()
    assert type(hidden) is type(stream) and not any(len(part.test) for part in hidden)
    for part, other in zip(hidden, stream, strict=True):
        assert part.test.shape[1:] == other.test.shape[1:]
        np.testing.assert_array_equal(part.train, other.train)
    (merged,) = stream.merged()
    assert {s: len(getattr(merged, s)) for s in SPLITS} == {
        s: sum(len(getattr(part, s)) for part in stream) for s in SPLITS
    }
    taught, tests = stream.taught_tests()
    assert 0 <= taught <= tests == len(merged.test)


@every_kind
def test_fields_of_a_part_keep_their_order(task: str) -> None:
    part_type = KINDS[task].graph.part_type
    names = [field.name for field in fields(part_type)]
    expected = ["index", *part_type.vocabularies]
    expected += [f"new_{name}" for name in part_type.vocabularies]
    expected += part_type.array_names
    assert names[: len(expected)] == expected  # what follows is not stored with the part


def test_the_two_tasks_have_their_names() -> None:
    assert (KnowledgeStream.task, NetworkStream.task) == tuple(KINDS)


def test_a_part_without_one_of_its_arrays_is_refused() -> None:
    part = KnowledgeStream.from_labels("s", [[("a", "r", "b")]])[0]
    labels = {"entities": part.entities, "relations": part.relations}
    ranges = {"entities": range(2), "relations": range(1)}
    arrays = part.arrays()
    del arrays["valid"]
    with pytest.raises(TypeError, match="valid"):
        type(part).from_arrays(0, labels, ranges, arrays)
    with pytest.raises(KeyError, match="relations"):
        type(part).from_arrays(0, labels, {"entities": range(2)}, part.arrays())


def test_facts_are_triples_of_all_sets_and_edges_of_a_network() -> None:
    stream = dicgrl.load_stream("films")
    assert stream[1].facts == sum(len(getattr(stream[1], split)) for split in SPLITS)
    network = dicgrl.load_stream("film-genres")
    assert network[0].facts == len(network[0].edges)  # type: ignore[attr-defined]


def test_triples_that_are_known_or_held_out_are_left_out() -> None:
    taught, held_out = ("a", "r", "b"), ("b", "r", "a")
    graph = KnowledgeGraph()
    graph.add(knowledge_stream([{"train": [taught], "valid": [], "test": [held_out]}])[0])
    more = [taught, held_out, ("a", "r", "c")]
    part = knowledge_stream([{"train": more, "valid": [("a", "r", "c")], "test": []}])[0]
    left, known, kept_back = graph.without_known(part)
    assert (known, kept_back) == (2, 1)  # what the part teaches is nothing to measure with
    assert [left.entities.labels(row[[0, 2]]) for row in left.train] == [["a", "c"]]
    assert not len(left.valid) and not graph.knows_all_of(part)
    assert graph.knows_all_of(knowledge_stream([{"train": more[:2], "valid": [], "test": []}])[0])

from __future__ import annotations

import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import KnowledgeStream, NetworkStream, UserError, load_stream, read_stream, write_stream
from dicgrl.graph import SPLITS, NetworkStreamBuilder
from tests.streams import (
    KnowledgeLists,
    NetworkLists,
    Node,
    knowledge_lists,
    knowledge_stream,
    labelled,
    line_text,
    network_in_words,
    network_lists,
    network_stream,
)


def same_knowledge(first: KnowledgeStream, second: KnowledgeStream) -> None:
    size = first[-1].num_entities, first[-1].num_relations
    assert list(second.entities) == list(first.entities)[: size[0]]
    assert list(second.relations) == list(first.relations)[: size[1]]
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert one.new_entities == other.new_entities
        assert one.new_relations == other.new_relations
        for split in SPLITS:
            np.testing.assert_array_equal(getattr(one, split), getattr(other, split))
    assert dict(first.names) == dict(second.names)


def same_network(first: NetworkStream, second: NetworkStream) -> None:
    assert network_in_words(first) == network_in_words(second)
    assert list(second.classes) == list(first.classes)[: first[-1].num_classes]
    for one, other in zip(first, second, strict=True):
        assert one.new_nodes == other.new_nodes
        assert one.new_classes == other.new_classes
        np.testing.assert_array_equal(one.labels, other.labels)
    assert dict(first.names) == dict(second.names)


def written(stream: KnowledgeStream | NetworkStream, name: str) -> KnowledgeStream | NetworkStream:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_stream(stream, path)
        assert [entry.name for entry in Path(folder).iterdir()] == [name]
        return read_stream(path)


@given(
    knowledge_lists(entities=line_text, min_train=1),
    st.dictionaries(line_text, line_text, max_size=3),
)
def test_knowledge_round_trip(parts: KnowledgeLists, names: dict[str, str]) -> None:
    stream = replace(knowledge_stream(parts), names=names)
    again = written(stream, "facts")
    assert isinstance(again, KnowledgeStream)
    same_knowledge(stream, again)
    assert labelled(again) == parts


def brings_something(lists: NetworkLists) -> bool:
    return all(map(any, zip(lists.nodes, lists.edges, strict=True)))


@given(
    network_lists().filter(brings_something),
    st.dictionaries(line_text, line_text, max_size=3),
)
def test_network_round_trip(lists: NetworkLists, names: dict[str, str]) -> None:
    stream = replace(network_stream(lists), names=names)
    again = written(stream, "net.npz")
    assert isinstance(again, NetworkStream)
    same_network(stream, again)
    assert network_in_words(again) == lists


@given(knowledge_lists(min_train=1), network_lists(min_nodes=1))
def test_a_prefix_is_written_without_what_comes_later(
    parts: KnowledgeLists, lists: NetworkLists
) -> None:
    knowledge = knowledge_stream(parts)[:1]
    again = written(knowledge, "facts")
    assert isinstance(again, KnowledgeStream)
    same_knowledge(knowledge, again)
    network = network_stream(lists)[:1]
    again = written(network, "net.npz")
    assert isinstance(again, NetworkStream)
    same_network(network, again)


def test_a_split_stream_round_trip(tmp_path: Path) -> None:
    films = load_stream("films")
    assert isinstance(films, KnowledgeStream)
    stream = films.split("arrival", [0.6, 0.2, 0.2], valid=0.1, test=0.1, seed=5)
    write_stream(stream, tmp_path / "deep" / "films")
    again = read_stream(tmp_path / "deep" / "films")
    assert isinstance(again, KnowledgeStream)
    same_knowledge(stream, again)


def test_facts_that_look_like_a_header(tmp_path: Path) -> None:
    stream = KnowledgeStream.from_labels("s", [[("h", "r", "t")], [("head", "relation", "tail")]])
    again = written(stream, "facts")
    assert isinstance(again, KnowledgeStream)
    same_knowledge(stream, again)


@pytest.mark.parametrize("label", ["a\tb", "a\nb", "a\r", "", "\ufeffa"])
def test_labels_that_text_cannot_hold(tmp_path: Path, label: str) -> None:
    for triple in ((label, "r", "x"), ("x", label, "y")):
        stream = knowledge_stream([{"train": [("a", "r", "b"), triple], "valid": [], "test": []}])
        with pytest.raises(UserError, match="cannot be written") as caught:
            write_stream(stream, tmp_path / "facts")
        assert repr(label) in str(caught.value)
    named = replace(KnowledgeStream.from_labels("s", [[("a", "r", "b")]]), names={"a": label})
    with pytest.raises(UserError, match=r"name .*cannot be written"):
        write_stream(named, tmp_path / "facts")
    assert list(tmp_path.iterdir()) == []


def test_a_part_without_training_triples_is_refused(tmp_path: Path) -> None:
    stream = KnowledgeStream.from_labels("s", [[("a", "r", "b")], []])
    with pytest.raises(UserError, match="part 1 has no training triples"):
        write_stream(stream, tmp_path / "facts")
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_edges_alone_round_trip() -> None:
    first = [Node("a", "x", 0, (0.0, 1.0)), Node("b", "", -1, (2.0, 3.0))]
    last = [Node("c", "y", 2, (4.0, 5.0))]
    lists = NetworkLists([first, [], last, []], [[], [("a", "b")], [], [("c", "a")]])
    again = written(network_stream(lists), "net.npz")
    assert isinstance(again, NetworkStream)
    assert network_in_words(again) == lists


def test_a_class_with_the_name_of_a_number_round_trip(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("node,class,w\na,-1,1\nb,,1\nc,0,1\n")
    (tmp_path / "edges.csv").write_text("a,b\n")
    (tmp_path / "labels.tsv").write_text("a\tAlien\n-1\tnone of them\n")
    stream = read_stream(tmp_path)
    assert isinstance(stream, NetworkStream)
    again = written(stream, "net.npz")
    assert isinstance(again, NetworkStream)
    same_network(stream, again)
    assert [node.cls for node in network_in_words(again).nodes[0]] == ["-1", "", "0"]
    assert again.names == {"a": "Alien", "-1": "none of them"}


def test_a_long_label_does_not_widen_the_others(tmp_path: Path) -> None:
    labels = [f"n{i}" for i in range(5_000)]
    labels[7] = "long " * 1_000
    nodes = [Node(label, label, 0, (0.0, 0.0)) for label in labels]
    stream = replace(
        network_stream(NetworkLists([nodes], [[]])), names={label: f"{label}!" for label in labels}
    )
    tracemalloc.start()
    try:
        write_stream(stream, tmp_path / "net.npz")
        again = read_stream(tmp_path / "net.npz")
        assert tracemalloc.get_traced_memory()[1] < 20 << 20  # padded it is 100 MB and more
    finally:
        tracemalloc.stop()
    assert isinstance(again, NetworkStream)
    same_network(stream, again)


def test_a_part_without_nodes_and_edges_is_refused(tmp_path: Path) -> None:
    node = Node("a", "x", 0, (0.0, 0.0))
    stream = network_stream(NetworkLists([[node], [], []], [[], [("a", "a")], []]))
    with pytest.raises(UserError, match="part 2 has no nodes and no edges"):
        write_stream(stream, tmp_path / "net.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("label", ["a\tb", "a\nb", "a\0", ""])
def test_labels_that_an_array_cannot_hold(tmp_path: Path, label: str) -> None:
    builder = NetworkStreamBuilder("s", num_features=1)
    builder.nodes.add([label])
    builder.classes.add(["x"])
    one = np.zeros(1, dtype=np.int64)
    builder.add((), np.zeros((1, 1), dtype=np.float32), one, one, one[:0], one[:0])
    with pytest.raises(UserError, match=r"node .*cannot be written") as caught:
        write_stream(builder.build(), tmp_path / "net.npz")
    assert repr(label) in str(caught.value)
    network = network_stream(NetworkLists([[Node("a", "x", 0, (0.0, 0.0))]], [[]]))
    with pytest.raises(UserError, match=r"name .*cannot be written"):
        write_stream(replace(network, names={"a": label}), tmp_path / "net.npz")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there.npz").write_text("mine")
    with pytest.raises(UserError, match="there exists already"):
        write_stream(KnowledgeStream.from_labels("s", [[("a", "r", "b")]]), tmp_path / "there")
    network = network_stream(NetworkLists([[Node("a", "x", 0, (0.0, 0.0))]], [[]]))
    with pytest.raises(UserError, match=r"there\.npz exists already"):
        write_stream(network, tmp_path / "there.npz")
    assert (tmp_path / "there.npz").read_text() == "mine"
    with pytest.raises(UserError, match=r"net: a network is written as one file .* \.npz"):
        write_stream(network, tmp_path / "net")


def test_nothing_is_left_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    monkeypatch.setattr("dicgrl.readers.writer._write_ids", fail)
    network = network_stream(NetworkLists([[Node("a", "x", 0, (0.0, 0.0))]], [[]]))
    with pytest.raises(OSError, match="disk full"):
        write_stream(network, tmp_path / "net.npz")
    with pytest.raises(OSError, match="disk full"):
        write_stream(KnowledgeStream.from_labels("s", [[("a", "r", "b")]]), tmp_path / "facts")
    assert list(tmp_path.iterdir()) == []

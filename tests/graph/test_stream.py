from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from dicgrl import KnowledgeStream, NetworkPart, UserError
from dicgrl.graph import SPLITS, NetworkStreamBuilder
from tests.streams import (
    KnowledgeLists,
    NetworkLists,
    knowledge_lists,
    knowledge_stream,
    labelled,
    network_in_words,
    network_lists,
    network_stream,
)

TRIPLES = [(a, "r", b) for a in "abcdef" for b in "abcdef"]


@given(knowledge_lists())
def test_merged_knowledge_has_everything_in_one_part(parts: KnowledgeLists) -> None:
    stream = knowledge_stream(parts)
    whole = stream.merged()
    assert len(whole) == 1
    assert labelled(whole) == [{s: [t for part in parts for t in part[s]] for s in SPLITS}]
    assert whole[0].new_entities == range(len(stream.entities))
    assert whole[0].new_relations == range(len(stream.relations))


@given(network_lists())
def test_merged_network_has_everything_in_one_part(lists: NetworkLists) -> None:
    found = network_in_words(network_stream(lists).merged())
    assert found.nodes == [[node for nodes in lists.nodes for node in nodes]]
    assert found.edges == [[edge for edges in lists.edges for edge in edges]]


def test_parts_by_position() -> None:
    stream = KnowledgeStream.from_labels("s", [[("a", "r", "b")], [("c", "r", "d")], []])
    assert list(stream) == [stream[0], stream[1], stream[2]]
    assert stream[-1].index == 2 and stream[np.int64(1)].index == 1
    assert [part.index for part in stream[:2]] == [0, 1]
    assert stream[:2].name == "s" and len(stream[:-1]) == 2
    with pytest.raises(IndexError):
        stream[3]
    for wrong in (slice(1, None), slice(None, None, 2), slice(None, None, -1)):
        with pytest.raises(ValueError, match="later parts need earlier ones"):
            stream[wrong]


def test_held_out_part_by_part() -> None:
    given = [[(f"{h}/{part}", r, f"{t}/{part}") for h, r, t in TRIPLES] for part in range(3)]

    def made(count: int, seed: int) -> KnowledgeLists:
        return labelled(
            KnowledgeStream.from_labels("s", given[:count], valid=0.2, test=0.1, seed=seed)
        )

    parts = made(2, seed=0)
    for part, triples in zip(parts, given, strict=False):
        assert [len(part[split]) for split in SPLITS] == [25, 7, 4]
        assert sorted(t for split in SPLITS for t in part[split]) == triples
    assert made(3, seed=0)[:2] == parts  # a longer stream divides its first parts as before
    chosen = [{given[i].index(t) for t in part["test"]} for i, part in enumerate(parts)]
    assert chosen[0] != chosen[1]
    assert made(2, seed=1) != parts


def test_builder_refuses_features_that_do_not_fit() -> None:
    builder = NetworkStreamBuilder("s", num_features=2)
    builder.nodes.add(["a", "b"])
    none = np.empty(0, dtype=np.int64)
    with pytest.raises(UserError, match="part 0 has 3 features per node; this network has 2"):
        builder.add([], np.zeros((2, 3), np.float32), np.zeros(2, np.int64), none, none, none)
    with pytest.raises(UserError, match=r"brings 2 nodes, but features of shape \[1, 2\]"):
        builder.add([], np.zeros((1, 2), np.float32), np.zeros(2, np.int64), none, none, none)
    with pytest.raises(UserError, match="part 0 brings 2 nodes, but 1 classes"):
        builder.add([], np.zeros((2, 2), np.float32), np.zeros(1, np.int64), none, none, none)


def test_a_network_may_go_on_after_old_nodes() -> None:
    builder = NetworkStreamBuilder("s", num_features=1, old=["a", "b"])
    none = np.empty(0, dtype=np.int64)
    for label, edges in (("c", [[2, 0]]), ("d", [[3, 2], [0, 1]])):
        builder.nodes.add([label])
        builder.add(edges, np.ones((1, 1), np.float32), np.array([-1]), none, none, none)
    stream = builder.build()
    assert [part.new_nodes for part in stream] == [range(2, 3), range(3, 4)]
    whole = stream.merged()[0]
    assert whole.nodes.labels(whole.new_nodes) == ["c", "d"] and whole.features.shape == (2, 1)
    assert whole.edges.tolist() == [[2, 0], [3, 2], [0, 1]]


@given(network_lists())
def test_repr_says_what_is_in_a_part(lists: NetworkLists) -> None:
    for part in network_stream(lists):
        assert isinstance(part, NetworkPart)
        assert f"{len(part.new_nodes)} new nodes, {len(part.edges)} edges" in repr(part)

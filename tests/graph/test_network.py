from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import NetworkGraph, UserError
from dicgrl.graph import SPLITS, NetworkStreamBuilder
from tests.streams import NetworkLists, Node, network_lists, network_stream

Pair = frozenset[str]


def fresh_pairs(lists: NetworkLists) -> list[list[Pair]]:
    """The undirected pairs that each part brings, by searching a list."""
    seen: list[Pair] = []
    found = []
    for edges in lists.edges:
        fresh = list(
            dict.fromkeys(
                pair for a, b in edges if a != b and (pair := frozenset((a, b))) not in seen
            )
        )
        found.append(fresh)
        seen += fresh
    return found


def pairs(graph: NetworkGraph, edges: np.ndarray) -> list[Pair]:
    names = list(graph.nodes)
    return [frozenset((names[a], names[b])) for a, b in edges.tolist()]


def check_edge_index(graph: NetworkGraph, index: np.ndarray, expected: list[Pair]) -> None:
    names = list(graph.nodes)
    wanted = Counter({(name, name): 1 for name in names})
    for pair in expected:
        a, b = sorted(pair)
        wanted.update([(a, b), (b, a)])
    assert Counter((names[a], names[b]) for a, b in index.T.tolist()) == wanted


@given(network_lists())
def test_grows_part_by_part_like_plain_lists(lists: NetworkLists) -> None:
    graph = NetworkGraph(num_features=2)
    nodes: list[Node] = []
    by_part = fresh_pairs(lists)
    for i, part in enumerate(network_stream(lists)):
        earlier = list(graph.nodes)
        added = graph.add(part)
        nodes += lists.nodes[i]
        seen = [pair for fresh in by_part[: i + 1] for pair in fresh]

        assert list(graph.nodes) == [node.label for node in nodes]
        assert list(graph.nodes)[: len(earlier)] == earlier
        assert graph.features.tolist() == [list(node.features) for node in nodes]
        classes = [*graph.classes, ""]
        assert [classes[c] for c in graph.labels] == [node.cls for node in nodes]
        assert pairs(graph, graph.edges) == seen
        assert (graph.edges[:, 0] < graph.edges[:, 1]).all()
        assert pairs(graph, added.edges) == by_part[i]
        assert added.new_nodes == part.new_nodes

        check_edge_index(graph, graph.edge_index(), seen)
        check_edge_index(graph, graph.edge_index("part"), by_part[i])
        check_edge_index(graph, graph.edge_index("part", part=0), by_part[0])

        ids = np.arange(len(nodes))
        positions, rows = graph.edges_of(ids)
        for at, node in enumerate(nodes):
            expected = [row for row, pair in enumerate(seen) if node.label in pair]
            assert sorted(rows[positions == at].tolist()) == expected
            assert graph.degree(ids)[at] == len(expected)
        for number, split in enumerate(SPLITS):
            chosen = graph.nodes.labels(graph.part_nodes(split, i))
            assert chosen == [node.label for node in lists.nodes[i] if node.role == number]


@given(network_lists(max_parts=2), network_lists(max_parts=2))
def test_other_streams_are_mapped_by_label(first: NetworkLists, second: NetworkLists) -> None:
    for nodes, edges in zip(second.nodes, second.edges, strict=True):
        for node in nodes:
            node.label += "'"
        edges[:] = [(a + "'", b + "'") for a, b in edges]
    both = NetworkLists(first.nodes + second.nodes, first.edges + second.edges)
    graph = NetworkGraph(num_features=2)
    for part in [*network_stream(first), *network_stream(second)]:
        graph.add(part)
    every = [node for nodes in both.nodes for node in nodes]
    assert list(graph.nodes) == [node.label for node in every]
    classes = [*graph.classes, ""]
    assert [classes[c] for c in graph.labels] == [node.cls for node in every]
    assert pairs(graph, graph.edges) == [p for fresh in fresh_pairs(both) for p in fresh]


@given(network_lists(max_parts=3, min_nodes=1), st.data())
def test_refusal_leaves_the_graph_as_it_was(lists: NetworkLists, data: st.DataObject) -> None:
    stream = network_stream(lists)
    graph = NetworkGraph(num_features=2)
    for part in stream:
        graph.add(part)
    with pytest.raises(UserError, match=r"node 'p0n0' of part 0 is already in this network"):
        graph.add(stream[0])
    assert len(graph.nodes) == len(graph.features) == sum(map(len, lists.nodes))
    assert graph.num_parts == len(stream)


def test_a_part_that_needs_an_absent_one_is_refused_whole() -> None:
    def node(label: str) -> Node:
        return Node(label, "x", 0, (0.0, 1.0))

    lists = NetworkLists([[node("a")], [node("b")], [node("c")]], [[], [], [("c", "a")]])
    stream = network_stream(lists)
    graph = NetworkGraph(num_features=2)
    graph.add(stream[1])
    with pytest.raises(UserError, match=r"part 2 mentions node 'a', which has not arrived"):
        graph.add(stream[2])
    assert list(graph.nodes) == ["b"]
    assert graph.edge_index().tolist() == [[0], [0]]
    graph.add(stream[0])
    graph.add(stream[2])
    assert pairs(graph, graph.edges) == [frozenset("ac")]


def test_features_of_another_length_are_refused() -> None:
    stream = network_stream(NetworkLists([[Node("a", "", -1, (0.0, 1.0))]], [[]]))
    with pytest.raises(UserError, match="part 0 has 2 features per node; this network has 3"):
        NetworkGraph(num_features=3).add(stream[0])


def test_what_is_kept_is_not_the_callers() -> None:
    lists = NetworkLists(
        [[Node("a", "x", 0, (1.0, 2.0))], [Node("b", "x", 0, (3.0, 4.0))]], [[], []]
    )
    graph = NetworkGraph(num_features=2)
    kept = []
    for part in network_stream(lists):
        kept.append(graph.add(part))
        assert np.shares_memory(kept[-1].features, graph.features)
        part.features[:] = 9
    assert [part.features.tolist() for part in kept] == [[[1, 2]], [[3, 4]]]
    assert not any(part.features.flags.writeable for part in kept)


@given(network_lists(), st.data())
def test_known_is_what_would_add_nothing(lists: NetworkLists, data: st.DataObject) -> None:
    graph = NetworkGraph(num_features=2)
    for part in network_stream(lists):
        graph.add(part)
    end = st.sampled_from([*graph.nodes])
    edges = data.draw(st.lists(st.tuples(end, end), max_size=4))
    if len(graph.edges):
        known = [tuple(graph.nodes.labels(edge)) for edge in graph.edges]
        edges += data.draw(st.lists(st.sampled_from(known), max_size=4))
    edges = [data.draw(st.permutations(edge)) for edge in edges]
    builder = NetworkStreamBuilder("more", num_features=2, old=graph.nodes)
    none = np.empty(0, np.int64)
    builder.add(
        [builder.nodes.ids(edge) for edge in edges], np.empty((0, 2), np.float32), *[none] * 4
    )
    part = builder.build()[0]
    is_known = graph.knows_all_of(part)
    assert is_known == (len(graph.add(part).edges) == 0)


def test_a_known_edge_the_other_way_round_and_a_self_loop_are_known() -> None:
    nodes = [Node(label, "x", 0, (0.0, 1.0)) for label in "abc"]
    stream = network_stream(NetworkLists([nodes, []], [[("a", "b")], [("b", "a"), ("c", "c")]]))
    graph = NetworkGraph(num_features=2)
    graph.add(stream[0])
    assert graph.knows_all_of(stream[1])
    assert not graph.knows_all_of(replace(stream[1], edges=np.array([[1, 0], [2, 0]])))
    assert not NetworkGraph(num_features=2).knows_all_of(stream[1])

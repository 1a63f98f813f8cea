from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import KnowledgeStream, NetworkStream, UserError, Vocabulary
from dicgrl.graph import SPLITS, KnowledgePart
from tests.streams import (
    KnowledgeLists,
    NetworkLists,
    Node,
    Triple,
    knowledge_stream,
    labelled,
    network_in_words,
    network_stream,
)

LABELS = "abcdefghijkl"
RATIOS = [[1.0], [0.5, 0.5], [0.7, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]]
ratio_lists = st.sampled_from(RATIOS)
seeds = st.integers(0, 50)


@st.composite
def static_lists(draw: st.DrawFn) -> dict[str, list[Triple]]:
    """Distinct triples in three sets that mention twelve entities."""
    end = st.sampled_from(LABELS)
    one = st.tuples(end, st.sampled_from(["likes", "made", "is"]), end)
    chain = [(a, "next", b) for a, b in pairwise(LABELS)]
    more = draw(st.lists(one, max_size=15, unique=True))
    roles = draw(st.lists(st.integers(0, 2), min_size=len(more), max_size=len(more)))
    found: dict[str, list[Triple]] = {split: [] for split in SPLITS}
    found["train"] += chain
    for triple, role in zip(more, roles, strict=True):
        found[SPLITS[role]].append(triple)
    return found


def in_order(static: dict[str, list[Triple]]) -> list[Triple]:
    return [triple for split in SPLITS for triple in static[split]]


def check_nothing_lost(static: dict[str, list[Triple]], parts: KnowledgeLists) -> None:
    for split in SPLITS:
        assert Counter(t for part in parts for t in part[split]) == Counter(static[split])


def check_ids(stream: KnowledgeStream, parts: KnowledgeLists) -> None:
    """Ids are given on arrival: ranges that follow each other and end with what is mentioned."""
    for kind, columns, vocabulary in (
        ("entities", (0, 2), stream.entities),
        ("relations", (1,), stream.relations),
    ):
        ranges = [getattr(part, f"new_{kind}") for part in stream]
        assert [r.start for r in ranges] == [0, *(r.stop for r in ranges[:-1])]
        assert ranges[-1].stop == len(vocabulary)
        for part, arrived in zip(parts, ranges, strict=True):
            for split in SPLITS:
                mentioned = {t[c] for t in part[split] for c in columns}
                assert mentioned <= set(vocabulary.labels(range(arrived.stop)))
    # A relation arrives with the first part that mentions it.
    for part, lists in zip(stream, parts, strict=True):
        used = {triple[1] for triple in in_order(lists)}
        assert set(stream.relations.labels(part.new_relations)) <= used


@given(static_lists(), ratio_lists, seeds)
def test_by_arrival(static: dict[str, list[Triple]], ratios: list[float], seed: int) -> None:
    stream = knowledge_stream([static]).split("arrival", ratios, seed=seed)
    parts = labelled(stream)
    check_nothing_lost(static, parts)
    check_ids(stream, parts)
    arrival = {
        label: i for i, p in enumerate(stream) for label in p.entities.labels(p.new_entities)
    }
    assert set(arrival) == set(LABELS)
    for i, (part, ratio) in enumerate(zip(parts, ratios, strict=True)):
        assert abs(len(stream[i].new_entities) - ratio * len(LABELS)) <= 1
        assert all(max(arrival[h], arrival[t]) == i for h, _, t in in_order(part))


@given(static_lists(), ratio_lists)
def test_by_order(static: dict[str, list[Triple]], ratios: list[float]) -> None:
    stream = knowledge_stream([static]).split("order", ratios)
    parts = labelled(stream)
    check_nothing_lost(static, parts)
    check_ids(stream, parts)
    every = in_order(static)
    assert [t for part in parts for t in in_order(part)] == every
    for part, ratio in zip(parts, ratios, strict=True):
        assert abs(len(in_order(part)) - ratio * len(every)) <= 1


@given(static_lists(), ratio_lists, st.data())
def test_by_time(static: dict[str, list[Triple]], ratios: list[float], data: st.DataObject) -> None:
    every = in_order(static)
    times = data.draw(st.lists(st.integers(0, 12), min_size=len(every), max_size=len(every)))
    time_of = dict(zip(every, times, strict=True))
    # Each part ends with the run of equal times that its share reaches.
    cuts = []
    for share in np.cumsum(ratios)[:-1]:
        last = sorted(times)[round(share * len(every)) - 1]
        cuts.append(sum(time <= last for time in times))
    sizes = np.diff([0, *cuts, len(every)])
    whole = knowledge_stream([static])
    if (sizes <= 0).any():
        with pytest.raises(UserError, match=r"would be empty.*times too alike"):
            whole.split("time", ratios, times=times)
        return
    stream = whole.split("time", ratios, times=times)
    parts = labelled(stream)
    check_nothing_lost(static, parts)
    check_ids(stream, parts)
    assert [len(in_order(part)) for part in parts] == sizes.tolist()
    found = [[time_of[t] for t in in_order(part)] for part in parts]
    assert all(max(a) < min(b) for a, b in pairwise(found))


def test_times_may_be_dates() -> None:
    static = knowledge_stream(
        [{"train": [("a", "r", "b"), ("c", "r", "d")], "valid": [], "test": []}]
    )
    times = np.array(["2020-01-02", "2019-05-05"], dtype="datetime64[D]")
    parts = labelled(static.split("time", [0.5, 0.5], times=times))
    assert [part["train"] for part in parts] == [[("c", "r", "d")], [("a", "r", "b")]]


@given(static_lists(), st.sampled_from(["arrival", "order"]), ratio_lists, seeds)
def test_held_out_triples_come_from_train(
    static: dict[str, list[Triple]], by: str, ratios: list[float], seed: int
) -> None:
    whole = knowledge_stream([static])
    plain = labelled(whole.split(by, ratios, seed=seed))
    held = labelled(whole.split(by, ratios, valid=0.2, test=0.3, seed=seed))
    for before, after in zip(plain, held, strict=True):
        assert set(in_order(before)) == set(in_order(after))
        assert set(before["valid"]) <= set(after["valid"])
        assert set(before["test"]) <= set(after["test"])
        assert set(after["train"]) <= set(before["train"])
        # What a part's training triples mention is still mentioned by those that stay.
        for columns in ((0, 2), (1,)):
            assert {t[c] for t in before["train"] for c in columns} == {
                t[c] for t in after["train"] for c in columns
            }


def test_the_seed_decides() -> None:
    every = [(a, "r", b) for a in LABELS for b in LABELS]
    whole = knowledge_stream([{"train": every, "valid": [], "test": []}])
    for by, shares in (("arrival", {}), ("order", {"valid": 0.2, "test": 0.2})):
        first, again, other = (
            labelled(whole.split(by, [0.5, 0.5], seed=seed, **shares)) for seed in (3, 3, 4)
        )
        assert first == again != other


def test_a_stream_is_merged_first_and_keeps_name_and_names() -> None:
    first = KnowledgeStream.from_labels("s", [[("a", "r", "b")], [("c", "r", "d")]])
    named = KnowledgeStream(first.name, first.parts, {"a": "Anna"})
    again = named.split("order", [1.0])
    assert len(again) == 1 and len(again[0].train) == 2
    assert again.name == "s" and again.names == {"a": "Anna"}


def test_a_prefix_can_be_split() -> None:
    stream = KnowledgeStream.from_labels(
        "s", [[("a", "r", "b"), ("b", "r", "c")], [("x", "q", "y")]]
    )
    parts = stream[:1].split("order", [0.5, 0.5])
    assert list(parts.entities) == ["a", "b", "c"] and list(parts.relations) == ["r"]


def test_shares_that_sum_to_one_only_nearly_lose_nothing() -> None:
    count = 600_000
    rows = np.zeros((count, 3), dtype=np.int64)
    none = rows[:0]
    one = Vocabulary(["a"])
    part = KnowledgePart(0, one, one, range(1), range(1), rows, none, none)
    parts = KnowledgeStream("s", (part,)).split("order", [0.5, 0.5 - 9e-7])
    assert sum(len(part.train) for part in parts) == count


@pytest.mark.parametrize(
    ("by", "ratios", "times", "message"),
    [
        ("order", [], None, "ratios"),
        ("order", [0.5, 0.4], None, r"\[0.5, 0.4\]: they must be above 0 and sum to 1"),
        ("order", [1.5, -0.5], None, "above 0"),
        ("decade", [1.0], None, "Known: .*day.*month.*week.*year"),
        ("arival", [1.0], None, "unknown way to split 'arival'; did you mean 'arrival'"),
        ("time", [1.0], None, "times are needed"),
        ("order", [1.0], [1, 2], "times are needed"),
        ("time", [1.0], [1, 2, 3], r"times has shape \(3,\); expected one for each of 2"),
        ("order", [0.4, 0.3, 0.3], None, "of 3 would be empty: 2 .* are too few"),
    ],
)
def test_a_split_that_cannot_be(
    by: str, ratios: list[float], times: list[int] | None, message: str
) -> None:
    knowledge = KnowledgeStream.from_labels("s", [[("a", "r", "b"), ("b", "r", "a")]])
    nodes = [Node("a", "x", 0, (0.0, 0.0)), Node("b", "x", 0, (0.0, 0.0))]
    for stream in (knowledge, network_stream(NetworkLists([nodes], [[]]))):
        with pytest.raises(UserError, match=message):
            stream.split(by, ratios, times=times)


@st.composite
def static_network(draw: st.DrawFn) -> NetworkLists:
    nodes = []
    for i in range(12):
        cls = draw(st.sampled_from(["", "x", "y", "z"]))
        nodes.append(Node(f"n{i}", cls, draw(st.integers(-1, 2)) if cls else -1, (float(i), 1.0)))
    end = st.sampled_from([node.label for node in nodes])
    return NetworkLists([nodes], [draw(st.lists(st.tuples(end, end), max_size=20))])


def check_network(static: NetworkLists, stream: NetworkStream) -> dict[str, int]:
    """Every node (with its class and features) and edge once; returns the part of each node."""
    found = network_in_words(stream)
    arrival = {node.label: i for i, nodes in enumerate(found.nodes) for node in nodes}
    original = {node.label: node for node in static.nodes[0]}
    assert Counter(n.label for nodes in found.nodes for n in nodes) == Counter(list(original))
    for nodes in found.nodes:
        for node in nodes:
            assert node.cls == original[node.label].cls
            assert node.features == original[node.label].features
    assert Counter(e for edges in found.edges for e in edges) == Counter(static.edges[0])
    for i, edges in enumerate(found.edges):
        assert all(max(arrival[a], arrival[b]) == i for a, b in edges)
    for part in stream:
        seen = {node.cls for nodes in found.nodes[: part.index + 1] for node in nodes} - {""}
        assert set(stream.classes.labels(range(part.num_classes))) == seen
    return arrival


@given(static_network(), st.sampled_from(["arrival", "order"]), ratio_lists, seeds)
def test_network(static: NetworkLists, by: str, ratios: list[float], seed: int) -> None:
    whole = network_stream(static)
    stream = whole.split(by, ratios, seed=seed)
    arrival = check_network(static, stream)
    roles = {n.label: n.role for nodes in network_in_words(stream).nodes for n in nodes}
    assert roles == {node.label: node.role for node in static.nodes[0]}
    for part, ratio in zip(stream, ratios, strict=True):
        assert abs(len(part.new_nodes) - ratio * 12) <= 1
    if by == "order":
        assert list(arrival) == [node.label for node in static.nodes[0]]
        assert list(arrival.values()) == sorted(arrival.values())
    held = whole.split(by, ratios, valid=0.3, test=0.3, seed=seed)
    check_network(static, held)
    for node in (n for nodes in network_in_words(held).nodes for n in nodes):
        assert node.role == roles[node.label] or roles[node.label] == 0


@given(static_network(), st.permutations(range(12)))
def test_network_by_time(static: NetworkLists, years: list[int]) -> None:
    stream = network_stream(static).split("time", [0.5, 0.25, 0.25], times=years)
    arrival = check_network(static, stream)
    assert [arrival[f"n{years.index(year)}"] for year in range(12)] == [0] * 6 + [1] * 3 + [2] * 3


@given(static_network(), st.integers(1, 4))
def test_network_by_class(static: NetworkLists, parts: int) -> None:
    whole = network_stream(static)
    classes = list(whole.classes)
    if len(classes) < parts:
        with pytest.raises(UserError, match="classes are too few"):
            whole.split("class", [1 / parts] * parts)
        return
    stream = whole.split("class", [1 / parts] * parts)
    arrival = check_network(static, stream)
    with_class = [
        {arrival[n.label] for n in static.nodes[0] if n.cls == cls} for cls in ["", *classes]
    ]
    assert with_class[0] <= {0}  # nodes of no class come first
    assert all(len(found) == 1 for found in with_class[1:])  # the nodes of a class come together
    order = [min(found) for found in with_class[1:]]
    assert order == sorted(order) and set(order) == set(range(parts))


def test_a_knowledge_graph_has_no_classes_to_be_split_by() -> None:
    stream = KnowledgeStream.from_labels("s", [[("a", "r", "b"), ("b", "r", "a")]])
    with pytest.raises(UserError, match="a knowledge graph can only be split by arrival, "):
        stream.split("class", [1.0])


def test_network_seed_decides() -> None:
    nodes = [Node(f"n{i}", "x", 0, (0.0, 0.0)) for i in range(20)]
    whole = network_stream(NetworkLists([nodes], [[]]))
    for by, shares in (("arrival", {}), ("order", {"valid": 0.2, "test": 0.2})):
        first, again, other = (
            network_in_words(whole.split(by, [0.5, 0.5], seed=seed, **shares)) for seed in (3, 3, 4)
        )
        assert first == again != other

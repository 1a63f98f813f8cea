from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dicgrl import KnowledgeGraph, KnowledgePart, NetworkGraph, NetworkPart, UserError
from dicgrl.graph import SPLITS, KnowledgeStreamBuilder, NetworkStreamBuilder
from tests.streams import NetworkLists, Node, knowledge_stream, network_stream

ROWS: list[tuple[Any, str]] = [
    ([[0, 0, 1], [0, 0, -1]], r"row 1 has entity id -1; expected 0 <= id < 2"),
    ([[2, 0, 1]], r"row 0 has entity id 2; expected 0 <= id < 2"),
    ([[0, 1, 1]], r"row 0 has relation id 1; expected 0 <= id < 1"),
    ([[0, -1, 1]], r"row 0 has relation id -1; expected 0 <= id < 1"),
]
BROKEN: list[tuple[Any, str]] = [
    ([[0, 0, 1], [0.9, 0, 1.5]], r"whole numbers, not float64: row 1 is \[0.9, 0.0, 1.5\]"),
    ([[0, 1]], r"must have shape \[n, 3\], not \[1, 2\]"),
]


def knowledge_builder() -> KnowledgeStreamBuilder:
    builder = KnowledgeStreamBuilder("s")
    builder.add(builder.rows(["a"], ["r"], ["b"]))
    return builder


@pytest.mark.parametrize(("rows", "message"), ROWS + BROKEN)
@pytest.mark.parametrize("split", SPLITS)
def test_a_builder_refuses_triples(split: str, rows: Any, message: str) -> None:
    builder = knowledge_builder()
    with pytest.raises(UserError, match=f"^{split} triples of part 1.*{message}"):
        builder.add(**{"train": [], split: rows})
    assert len(builder) == 1


@pytest.mark.parametrize(("rows", "message"), ROWS + BROKEN)
def test_a_builder_refuses_triples_before_it_divides_them(rows: Any, message: str) -> None:
    builder = knowledge_builder()
    with pytest.raises(UserError, match=f"^train triples of part 1.*{message}"):
        builder.add_held_out(np.array(rows), 0.5, 0.0, np.random.default_rng(0))
    assert len(builder) == 1


@pytest.mark.parametrize(("rows", "message"), ROWS + BROKEN)
@pytest.mark.parametrize("split", SPLITS)
def test_a_knowledge_graph_refuses_triples(split: str, rows: Any, message: str) -> None:
    part = knowledge_stream([{"train": [("a", "r", "b")], "valid": [], "test": []}])[0]
    graph = KnowledgeGraph()
    with pytest.raises(UserError, match=f"^{split} triples of part 0.*{message}"):
        graph.add(replace(part, **{split: np.array(rows)}))
    assert not len(graph.entities) and not len(graph.relations) and not graph.num_parts


def test_a_knowledge_graph_refuses_new_ids_without_labels() -> None:
    part = knowledge_stream([{"train": [("a", "r", "b")], "valid": [], "test": []}])[0]
    for change, message in (
        ({"new_entities": range(3)}, "new entities of part 0: row 2 has entity id 2"),
        ({"new_relations": range(-1, 1)}, "new relations of part 0: row 0 has relation id -1"),
    ):
        with pytest.raises(UserError, match=message):
            KnowledgeGraph().add(replace(part, **change))


def test_rows_are_taken_in_any_integer_type() -> None:
    builder = knowledge_builder()
    builder.add(np.array([[1, 0, 0]], dtype=np.uint8), np.array([]))
    part: KnowledgePart = builder.build()[1]
    assert part.train.dtype == part.valid.dtype == np.int32
    none = np.empty(0)
    assert KnowledgeGraph().add(replace(part, valid=none)).valid.shape == (0, 3)


def network_part() -> NetworkPart:
    """Nodes a and b of class x, and c without one."""
    nodes = [
        Node("a", "x", 0, (1.0, 2.0)),
        Node("b", "x", 1, (3.0, 4.0)),
        Node("c", "", -1, (5.0, 6.0)),
    ]
    return network_stream(NetworkLists([nodes], [[("a", "b")]]))[0]


def features(value: float) -> np.ndarray:
    found = np.ones((3, 2))
    found[2, 1] = value
    return found


NETWORK = [
    ("edges", [[0, 1], [-1, 0]], r"^edges of part 0: row 1 has node id -1; expected 0 <= id < 3"),
    ("edges", [[0, 3]], r"^edges of part 0: row 0 has node id 3"),
    ("edges", [[0, 1.5]], r"^edges of part 0 must be whole numbers, not float64"),
    ("features", features(np.nan), "^feature 1 of node 'c' of part 0 is nan; not finite"),
    ("features", features(-np.inf), "^feature 1 of node 'c' of part 0 is -inf; not finite"),
    ("features", features(1e300), "^feature 1 of node 'c' of part 0 is inf; not finite"),
    ("features", np.ones((2, 2)), r"brings 3 nodes, but features of shape \[2, 2\]"),
    ("features", np.ones(3), r"brings 3 nodes, but features of shape \[3\]"),
    ("labels", [0, 0, 1], r"^classes of part 0: row 2 has class id 1; expected -1 <= id < 1"),
    ("labels", [0, 0, -2], r"^classes of part 0: row 2 has class id -2"),
    ("labels", [0, 0, 0.5], r"^classes of part 0 must be whole numbers.*row 2 is 0.5"),
    ("labels", [0, 0], r"brings 3 nodes, but 2 classes"),
    *(
        (split, *wrong)
        for split in SPLITS
        for wrong in (
            ([0, 2], f"^{split} nodes of part 0: row 1 is node 'c', which has no class"),
            ([0, -1], f"^{split} nodes of part 0: row 1 has node id -1; expected 0 <= id < 3"),
            ([3], f"^{split} nodes of part 0: row 0 has node id 3"),
            ([True, False, False], f"^{split} nodes of part 0 must be whole numbers, not bool"),
            ([0.0, 1.5], f"^{split} nodes of part 0 must be whole.*row 1 is 1.5"),
        )
    ),
]


@pytest.mark.parametrize(("field", "value", "message"), NETWORK)
def test_a_network_that_does_not_hold_together_is_refused(
    field: str, value: Any, message: str
) -> None:
    part = replace(network_part(), **{field: np.array(value)})
    graph = NetworkGraph(num_features=2)
    with pytest.raises(UserError, match=message):
        graph.add(part)
    assert not len(graph.nodes) and not len(graph.classes) and not graph.num_parts

    builder = NetworkStreamBuilder("s", num_features=2)
    builder.nodes.add(part.nodes)
    builder.classes.add(part.classes)
    names = ("edges", "features", "labels", *SPLITS)
    with pytest.raises(UserError, match=message):
        builder.add(*(getattr(part, name) for name in names))
    assert not len(builder)


def test_a_network_refuses_new_ids_without_labels() -> None:
    part = network_part()
    for change, message in (
        ({"new_nodes": range(1, 4)}, "new nodes of part 0: row 2 has node id 3"),
        ({"new_classes": range(2)}, "new classes of part 0: row 1 has class id 1"),
    ):
        with pytest.raises(UserError, match=message):
            NetworkGraph(num_features=2).add(replace(part, **change))


def test_an_earlier_node_of_a_split_needs_a_class() -> None:
    graph = NetworkGraph(num_features=2)
    graph.add(network_part())
    builder = NetworkStreamBuilder("s", num_features=2, old=["c", "a"])
    none = np.empty(0, dtype=np.int64)
    builder.add([[0, 1]], np.empty((0, 2), np.float32), none, none, np.array([1, 0]), none)
    part = builder.build()[0]
    with pytest.raises(UserError, match="valid nodes of part 0: row 1 is node 'c', which has no"):
        graph.add(part)
    assert graph.num_parts == 1 and len(graph.edges) == 1
    assert graph.add(replace(part, valid=np.array([1]))).valid.tolist() == [0]

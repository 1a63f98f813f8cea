"""What arrives in a network that is known already, from files and from lists."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given

from dicgrl import DataError, NetworkFacts, NetworkGraph, NetworkPart
from dicgrl.graph import SPLITS
from dicgrl.readers import read_part
from tests.streams import NetworkLists, Node, network_lists, network_stream

ROLES = (*SPLITS, "")  # by the number of a role, -1 included


def as_facts(nodes: Sequence[Node], edges: Sequence[tuple[str, str]], folder: Path) -> NetworkFacts:
    return NetworkFacts(
        [node.label for node in nodes],
        [node.features for node in nodes],
        [node.cls for node in nodes],
        edges,
        [ROLES[node.role] for node in nodes],
    )


def as_tables(nodes: Sequence[Node], edges: Sequence[tuple[str, str]], folder: Path) -> Path:
    rows = [",".join([n.label, n.cls, ROLES[n.role], *map(repr, n.features)]) for n in nodes]
    (folder / "nodes.csv").write_text("\n".join(["node,class,split,w,h", *rows]))
    (folder / "edges.csv").write_text("\n".join(["source,target", *map(",".join, edges)]))
    return folder


def as_npz(nodes: Sequence[Node], edges: Sequence[tuple[str, str]], folder: Path) -> Path:
    np.savez(
        folder / "x.npz",
        nodes=np.array([n.label for n in nodes], dtype=np.str_),
        features=np.array([n.features for n in nodes]).reshape(-1, 2),
        classes=np.array([n.cls for n in nodes], dtype=np.str_),
        split=np.array([n.role for n in nodes], dtype=np.int64),
        edges=np.array(edges, dtype=np.str_),
    )
    return folder / "x.npz"


def part_of(source: NetworkFacts | Path, graph: NetworkGraph | None) -> NetworkPart:
    part = source.part(graph) if isinstance(source, NetworkFacts) else read_part(source, graph)[0]
    assert isinstance(part, NetworkPart)
    return part


@pytest.mark.parametrize("layout", [as_facts, as_tables, as_npz])
@given(lists=network_lists())
def test_parts_one_by_one_give_the_network_of_the_stream(lists: NetworkLists, layout: Any) -> None:
    expected, graph = NetworkGraph(num_features=2), NetworkGraph(num_features=2)
    stream = network_stream(lists)
    for i, (nodes, edges) in enumerate(zip(lists.nodes, lists.edges, strict=True)):
        expected.add(stream[i])
        with tempfile.TemporaryDirectory() as folder:
            graph.add(part_of(layout(nodes, edges, Path(folder)), graph if i else None))
        assert graph.nodes == expected.nodes
        np.testing.assert_array_equal(graph.edges, expected.edges)
        np.testing.assert_array_equal(graph.features, expected.features)
        mine, theirs = [*graph.classes, ""], [*expected.classes, ""]  # in their natural order here
        assert [mine[c] for c in graph.labels] == [theirs[c] for c in expected.labels]
        for split in SPLITS:
            np.testing.assert_array_equal(graph.part_nodes(split, i), expected.part_nodes(split, i))
    assert graph.num_parts == len(stream)


def known() -> NetworkGraph:
    """A network of nodes a and b, one class, two features."""
    graph = NetworkGraph(num_features=2)
    graph.add(NetworkFacts(["a", "b"], np.eye(2), ["x", None], [("a", "b")]).part())
    return graph


def test_facts_may_be_arrays_and_tensors_and_numbers() -> None:
    listed = NetworkFacts(["7", "8"], [[1, 2], [3, 4]], ["5", ""], [("7", "a"), ("8", "7")])
    given = [
        NetworkFacts(np.array([7, 8]), np.array([[1.0, 2], [3, 4]]), [5, -1], [(7, "a"), (8, 7)]),
        NetworkFacts(
            torch.tensor([7, 8]).numpy(),
            torch.tensor([[1.0, 2], [3, 4]]),
            np.array([5, -1]),
            np.array([("7", "a"), ("8", "7")]),
        ),
        NetworkFacts((7, 8), ((1, 2), (3, 4)), ("5", None), np.array([[7, "a"], [8, 7]], object)),
    ]
    expected = listed.part(known())
    assert expected.labels.tolist() == [0, -1] and len(expected.train) == 1
    for facts in given:
        part = facts.part(known())
        assert part.nodes == expected.nodes and part.classes == expected.classes
        for name in ("edges", "features", "labels", *SPLITS):
            np.testing.assert_array_equal(getattr(part, name), getattr(expected, name))


def test_edges_alone_are_a_part(tmp_path: Path) -> None:
    as_tables([], [("a", "b"), ("b", "b")], tmp_path)
    with pytest.raises(DataError, match=r"edges\.csv:2: unknown node 'a': nodes.csv does not list"):
        read_part(tmp_path)  # there is no network that could know it
    (tmp_path / "nodes.csv").unlink()
    graph = known()
    for source in (tmp_path, NetworkFacts(edges=[("b", "a")])):
        part = part_of(source, graph)
        assert len(part.new_nodes) == 0 and part.features.shape == (0, 2)
        assert len(graph.add(part).edges) == 0  # known by now
    (tmp_path / "nodes.csv").write_text("node\n")  # nobody says how many features nothing has
    assert part_of(tmp_path, graph).features.shape == (0, 2)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"nodes": ["a"]}, r"NetworkFacts\.nodes:1: node 'a' is already in this run; list new"),
        ({"nodes": ["c", "c"]}, r"NetworkFacts\.nodes:2: duplicate node 'c', first in line 1"),
        ({"nodes": [None]}, r"NetworkFacts\.nodes:1: the node has no label"),
        (
            {"nodes": [float("nan")]},
            r"NetworkFacts\.nodes: 'nan' is not a label: the value is missing",
        ),
        ({"nodes": ["c\td"]}, r"NetworkFacts\.nodes: .*cannot contain a TAB"),
        ({"classes": [True]}, r"NetworkFacts\.classes: 'True' is not a label"),
        ({"nodes": "c"}, r"NetworkFacts\.nodes: shape \[\]; expected a list"),
        ({"features": [[1, 2, 3]]}, r"NetworkFacts: 3 features per node; this run has 2$"),
        ({"features": [1, 2]}, r"NetworkFacts\.features: shape \[2\]; expected features"),
        ({"features": [[1, 2], [3]]}, r"NetworkFacts\.features: expected numbers \[n, F\]"),
        ({"features": [["1", "red"]]}, r"NetworkFacts\.features: features must be numbers"),
        ({"features": [[1, np.nan]]}, r"feature 1 of node 'c' is nan; not finite"),
        ({"features": ()}, r"features has 0 rows; expected one for each of 1 nodes"),
        ({"classes": ["x", "y"]}, r"classes has 2 rows; expected one for each of 1 nodes"),
        ({"classes": [["x"]]}, r"NetworkFacts\.classes: shape \[1, 1\]; expected a list"),
        ({"edges": [("c", "a"), ("c", "q")]}, r"\.edges: edge 1 mentions unknown node 'q': .*run$"),
        ({"edges": ["ca"]}, r"NetworkFacts\.edges: shape \[1\]; expected pairs of labels"),
        ({"edges": [("c", "a", "b")]}, r"NetworkFacts\.edges: shape \[1, 3\]; expected pairs"),
        ({"edges": {("c", "a")}}, r"NetworkFacts\.edges: shape \[\]; expected pairs"),
        ({"split": ["tain"]}, r"NetworkFacts\.split: 'tain'; expected train, valid, test"),
        ({"split": ["train"], "classes": [""]}, r"node 'c' has split 0 and class ''"),
    ],
)
def test_bad_facts(facts: dict[str, Any], message: str) -> None:
    graph = known()
    with pytest.raises(DataError, match=message):
        NetworkFacts(**({"nodes": ["c"], "features": [[1, 2]], "classes": ["x"]} | facts)).part(
            graph
        )
    assert (len(graph.nodes), graph.num_parts) == (2, 1)


def test_the_first_part_needs_nodes_and_knows_no_old_ones() -> None:
    with pytest.raises(DataError, match=r"NetworkFacts: there are no nodes"):
        NetworkFacts(edges=[]).part()
    with pytest.raises(DataError, match=r"unknown node 'b': it is not among the nodes$"):
        NetworkFacts(["a"], [[1]], edges=[("a", "b")]).part()


def test_nobody_is_told_to_load_a_pickle(tmp_path: Path) -> None:
    path = tmp_path / "noise.npz"
    path.write_bytes(bytes(range(7, 207)))
    with pytest.raises(DataError, match=r"not a NumPy file of plain arrays") as error:
        read_part(path)
    assert "pickle" not in str(error.value)

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given

from dicgrl import KnowledgeStream, describe
from dicgrl.graph import SPLITS
from tests.streams import (
    KnowledgeLists,
    NetworkLists,
    Node,
    knowledge_lists,
    knowledge_stream,
    network_lists,
    network_stream,
)


@given(knowledge_lists())
def test_knowledge_counts(parts: KnowledgeLists) -> None:
    counts = describe(knowledge_stream(parts))
    assert json.loads(json.dumps(counts)) == counts  # plain numbers
    assert (counts["name"], counts["task"]) == ("random", "link-prediction")
    assert len(counts["parts"]) == len(parts)
    entities: set[str] = set()
    relations: set[str] = set()
    trained: set[tuple[str, str, str]] = set()
    for part, row in zip(parts, counts["parts"], strict=True):
        every = [triple for split in SPLITS for triple in part[split]]
        mentioned = {end for head, _, tail in every for end in (head, tail)}
        new = mentioned - entities
        kinds = {relation for _, relation, _ in every} - relations
        train = Counter(part["train"])
        repeated = len(set(train) & trained)
        entities |= mentioned
        relations |= kinds
        trained |= set(train)
        taught = {end for head, _, tail in trained for end in (head, tail)}
        assert row == {
            **{split: len(part[split]) for split in SPLITS},
            "entities": len(new),
            "relations": len(relations),
            "new_relations": len(kinds),
            "accumulated_entities": len(entities),
            "accumulated_relations": len(relations),
            "irregular": {
                "duplicates": sum(n - 1 for n in train.values()),
                "repeated": repeated,
                "self_loops": sum(head == tail for head, _, tail in every),
                "leaked": sum(t in trained for t in part["valid"] + part["test"]),
                "untrained": len(new - taught),
            },
        }


@given(network_lists())
def test_network_counts(lists: NetworkLists) -> None:
    counts = describe(network_stream(lists))
    assert json.loads(json.dumps(counts)) == counts
    assert counts["task"] == "node-classification"
    assert counts["features"] == 2
    assert counts["classes"] == len({n.cls for nodes in lists.nodes for n in nodes} - {""})
    seen: set[frozenset[str]] = set()
    classes: set[str] = set()
    for i, row in enumerate(counts["parts"]):
        nodes, edges = lists.nodes[i], lists.edges[i]
        found = Counter(frozenset(edge) for edge in edges if edge[0] != edge[1])
        repeated = len(set(found) & seen)
        seen |= set(found)
        new_classes = {node.cls for node in nodes} - {""} - classes
        classes |= new_classes
        assert row == {
            **{split: sum(n.role == k for n in nodes) for k, split in enumerate(SPLITS)},
            "nodes": len(nodes),
            "edges": len(edges),
            "new_classes": len(new_classes),
            "accumulated_nodes": sum(map(len, lists.nodes[: i + 1])),
            "accumulated_edges": sum(map(len, lists.edges[: i + 1])),
            "irregular": {
                "duplicates": sum(n - 1 for n in found.values()),
                "repeated": repeated,
                "self_loops": sum(a == b for a, b in edges),
                "isolated": sum(not any(n.label in pair for pair in seen) for n in nodes),
                "featureless": sum(not any(n.features) for n in nodes),
                "unlabelled": sum(not n.cls for n in nodes),
            },
        }


def test_a_prefix_counts_only_itself() -> None:
    knowledge = KnowledgeStream.from_labels("s", [[("a", "r", "b")], [("c", "q", "d")]])
    assert describe(knowledge[:1])["parts"] == describe(knowledge)["parts"][:1]
    nodes = [[Node("a", "x", 0, (1.0, 0.0))], [Node("b", "y", 0, (1.0, 0.0))]]
    network = network_stream(NetworkLists(nodes, [[], [("a", "b")]]))
    assert describe(network)["classes"] == 2
    assert describe(network[:1])["classes"] == 1
    assert describe(network[:1])["parts"] == describe(network)["parts"][:1]

"""Counts of a stream, part by part: the paper's appendix C, and what is irregular in the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from dicgrl.graph.arrays import ids_in
from dicgrl.graph.knowledge import KnowledgeGraph, triple_keys
from dicgrl.graph.network import NetworkGraph
from dicgrl.graph.part import SPLITS
from dicgrl.graph.stream import KnowledgeStream, NetworkStream, Stream

Counts = dict[str, Any]


def describe(stream: Stream) -> Counts:
    """Statistics of a stream as plain numbers, ready for JSON.

    `relations` counts the relations that a part may use, as the paper's table does: all that are
    known once it has arrived. Under `irregular`, for knowledge graphs:

    - `duplicates`: training triples that stand twice in their part (kept once by the graph);
    - `repeated`: training triples of an earlier part (dropped by the graph);
    - `self_loops`: triples whose head is their tail (kept);
    - `leaked`: valid and test triples that some training set so far contains (kept, reported);
    - `untrained`: entities of this part with no training triple so far.

    For networks: `duplicates` and `repeated` edges, in either direction (dropped), `self_loops`
    (dropped; every node gets one of its own), `isolated` new nodes without an edge, `featureless`
    new nodes whose features are all zero, `unlabelled` new nodes without a class.

    Example:
        >>> stream = KnowledgeStream.from_labels("tiny", [[("a", "r", "b"), ("a", "r", "b")]])
        >>> describe(stream)["parts"][0]["irregular"]["duplicates"]
        1
    """
    if isinstance(stream, KnowledgeStream):
        return _describe_knowledge(stream)
    return _describe_network(stream)


def taught_tests(stream: Stream) -> tuple[int, int]:
    """How many test triples of a stream are training triples of some part, and how many there are.

    Nodes of a network are in one set each.

    Example:
        >>> stream = KnowledgeStream.from_labels("tiny", [[("a", "r", "b")]])
        >>> taught_tests(stream)
        (0, 0)
    """
    if not isinstance(stream, KnowledgeStream):
        return 0, sum(len(part.test) for part in stream)
    train, test = (
        triple_keys(np.concatenate([getattr(part, split) for part in stream]))
        for split in ("train", "test")
    )
    return int(np.isin(test, train).sum()), len(test)


def _describe_knowledge(stream: KnowledgeStream) -> Counts:
    graph = KnowledgeGraph()
    rows = []
    for part in stream:
        before = len(graph.train)
        distinct = len(np.unique(triple_keys(part.train)))
        added = graph.add(part)
        held = np.concatenate([added.valid, added.test])
        every = np.concatenate([part.train, part.valid, part.test])
        rows.append(
            {
                **{split: len(getattr(part, split)) for split in SPLITS},
                "entities": len(part.new_entities),
                "relations": part.num_relations,
                "new_relations": len(part.new_relations),
                "accumulated_entities": part.num_entities,
                "accumulated_relations": part.num_relations,
                "irregular": {
                    "duplicates": len(part.train) - distinct,
                    "repeated": distinct - (len(graph.train) - before),
                    "self_loops": int((every[:, 0] == every[:, 2]).sum()),
                    "leaked": int(graph.contains(held).sum()),
                    "untrained": int((graph.degree(ids_in(added.new_entities)) == 0).sum()),
                },
            }
        )
    return {"name": stream.name, "task": str(stream.task), "parts": rows}


def _describe_network(stream: NetworkStream) -> Counts:
    graph = NetworkGraph(stream.num_features)
    rows = []
    accumulated_edges = 0
    for part in stream:
        accumulated_edges += len(part.edges)
        loops = part.edges[:, 0] == part.edges[:, 1]
        pairs = np.sort(part.edges[~loops], axis=1)
        distinct = len(np.unique(pairs, axis=0))
        added = graph.add(part)
        rows.append(
            {
                **{split: len(getattr(part, split)) for split in SPLITS},
                "nodes": len(part.new_nodes),
                "edges": len(part.edges),
                "new_classes": len(part.new_classes),
                "accumulated_nodes": part.num_nodes,
                "accumulated_edges": accumulated_edges,
                "irregular": {
                    "duplicates": len(pairs) - distinct,
                    "repeated": distinct - len(added.edges),
                    "self_loops": int(loops.sum()),
                    "isolated": int((graph.degree(ids_in(added.new_nodes)) == 0).sum()),
                    "featureless": int((~part.features.any(axis=1)).sum()),
                    "unlabelled": int((part.labels < 0).sum()),
                },
            }
        )
    return {
        "name": stream.name,
        "task": str(stream.task),
        "classes": stream[-1].num_classes if len(stream) else 0,
        "features": stream.num_features,
        "parts": rows,
    }

"""Counts of a network, part by part: the paper's appendix C, and irregular data."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dicgrl.graph.arrays import ids_in
from dicgrl.graph.network.graph import NetworkGraph
from dicgrl.graph.network.part import NetworkPart
from dicgrl.graph.part import SPLITS
from dicgrl.graph.stream import Counts


def describe_parts(parts: Iterable[NetworkPart], num_features: int) -> list[Counts]:
    """Counts of each part; `describe` says what they mean."""
    graph = NetworkGraph(num_features)
    rows = []
    accumulated_edges = 0
    for part in parts:
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
    return rows

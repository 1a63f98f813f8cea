"""The network that is left after a history of changes, computed in one pass over all rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dicgrl.graph.arrays import FloatArray, GrowingArray, IntArray
from dicgrl.graph.network.keys import edge_keys
from dicgrl.graph.network.part import NetworkPart
from dicgrl.graph.part import SPLITS
from dicgrl.graph.survivors import Survivors

NO_IDS: IntArray = np.empty(0, np.int64)
NO_EDGES: IntArray = np.empty((0, 2), np.int64)


class Replay:
    """Collects changes in order, in ids of the graph, and computes what is left.

    Args:
        num_features: Length of a node's feature vector.

    Attributes:
        num_parts: Parts so far.
        edges: Edges, each once, lower id first.
        sets: Nodes of each split.
    """

    def __init__(self, num_features: int) -> None:
        self.num_parts = 0
        self.edges = Survivors(lambda *edges: [*map(edge_keys, edges)], NO_EDGES)
        self.sets = {split: Survivors(lambda *nodes: nodes, NO_IDS) for split in SPLITS}
        self._features = GrowingArray((num_features,), np.dtype(np.float32))
        self._labels = GrowingArray((), np.dtype(np.int64))

    @property
    def features(self) -> FloatArray:
        """Features of all nodes, [n, F]."""
        return self._features.view()

    @property
    def labels(self) -> IntArray:
        """Class ids of all nodes, [n]; -1 if unknown."""
        return self._labels.view()

    def restore(self, features: FloatArray, labels: IntArray, num_parts: int) -> None:
        """Start from what was learned already; its edges and splits are added separately."""
        self._features.append(features)
        self._labels.append(labels)
        self.num_parts = num_parts

    def learn(self, part: NetworkPart) -> None:
        """Take in a part, whose edges are not known at that time."""
        self._features.append(part.features)
        self._labels.append(part.labels)
        self.edges.add(part.edges, self.num_parts)
        for split, nodes in self.sets.items():
            nodes.add(getattr(part, split), self.num_parts)
        self.num_parts += 1

    def forget(self, facts: Mapping[str, IntArray]) -> None:
        """Remove edges, and classes of nodes."""
        self.edges.forget(facts["edges"], self.num_parts)
        self._leave_sets(facts["nodes"])
        self._labels.put(facts["nodes"], np.array(-1), shared=False)

    def revise(self, facts: Mapping[str, IntArray]) -> None:
        """Change classes of nodes, which then leave their splits, and features."""
        self._leave_sets(facts["nodes"])
        self._labels.put(facts["nodes"], facts["labels"], shared=False)
        self._features.put(facts["described"], facts["features"], shared=False)

    def merge(self, vocabulary: str, kept: int, gone: int) -> None:
        """Replace an id by another; a node keeps its features, and its class if it has one."""
        labels = self.labels
        if vocabulary == "classes":
            self._labels.put(np.flatnonzero(labels == gone), np.array(kept), shared=False)
            return
        ends = np.sort([[kept, gone]], axis=1)
        self.edges.forget(ends, self.num_parts)  # it would become a self loop
        self.edges.rewrite(lambda edges: np.sort(np.where(edges == gone, kept, edges)), once=True)
        if labels[kept] >= 0:
            self._leave_sets(np.array([gone]))
        else:
            for nodes in self.sets.values():
                nodes.rewrite(lambda nodes: np.where(nodes == gone, kept, nodes), once=False)
        told = labels[kept] if labels[kept] >= 0 else labels[gone]
        self._labels.put(np.array([kept, gone]), np.array([told, -1]), shared=False)

    def _leave_sets(self, nodes: IntArray) -> None:
        for chosen in self.sets.values():
            chosen.forget(nodes, self.num_parts)

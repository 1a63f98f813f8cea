"""Collects parts of a network and gives ids in order of arrival."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from dicgrl.graph.arrays import FloatArray, IntArray
from dicgrl.graph.network.part import NetworkPart
from dicgrl.graph.vocabulary import Vocabulary


class NetworkParts:
    """Collects parts of a network and gives ids in order of arrival.

    Args:
        num_features: Length of a node's feature vector.
        old: Nodes that arrived before the first part; edges may mention them.
    """

    def __init__(self, num_features: int, old: Iterable[str] = ()) -> None:
        self.num_features = num_features
        self.nodes = Vocabulary(old, kind="node")
        self._old = len(self.nodes)
        self.classes = Vocabulary(kind="class")
        self._parts: list[NetworkPart] = []

    def add(
        self,
        edges: npt.ArrayLike,
        features: FloatArray,
        labels: IntArray,
        train: IntArray,
        valid: IntArray,
        test: IntArray,
    ) -> None:
        """Close a part; every node and class added since the last call arrives with it.

        Raises:
            UserError: An id has no label, a feature is not finite, a node of a split has no class,
                or there are not as many features and labels as new nodes.
        """
        known_nodes = self._parts[-1].num_nodes if self._parts else self._old
        known_classes = self._parts[-1].num_classes if self._parts else 0
        part = NetworkPart(
            len(self._parts),
            self.nodes,
            self.classes,
            range(known_nodes, len(self.nodes)),
            range(known_classes, len(self.classes)),
            np.asarray(edges),
            features,
            labels,
            train,
            valid,
            test,
        )
        self._parts.append(part.checked(self.num_features))

    @property
    def parts(self) -> tuple[NetworkPart, ...]:
        """All parts so far."""
        return tuple(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

"""A part of a network: nodes that arrive together, and edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from dicgrl.errors import UserError, shown
from dicgrl.graph.arrays import FloatArray, IntArray, as_edges, as_ids
from dicgrl.graph.checks import check_ids, check_range
from dicgrl.graph.part import SPLITS, Part
from dicgrl.graph.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class NetworkPart(Part):
    """Nodes that arrive together, with their features, classes and the edges they bring.

    Attributes:
        index: The part's position in its stream.
        nodes: Labels of all nodes of the stream.
        classes: Labels of all classes of the stream.
        new_nodes: Ids of the nodes that arrive with this part.
        new_classes: Ids of the classes first seen in this part.
        edges: Edges as given (source, target), int64 [m, 2]; repeated rows and self loops are
            dropped by the `NetworkGraph` that the part is added to.
        features: Features of the new nodes, float32 [new nodes, F].
        labels: Class ids of the new nodes, int64 [new nodes]; -1 where the class is not known.
        train: Ids of the nodes to learn from.
        valid: Ids of the nodes to select a model with.
        test: Ids of the nodes to measure with.
    """

    vocabularies: ClassVar[tuple[str, ...]] = ("nodes", "classes")
    array_names: ClassVar[tuple[str, ...]] = ("edges", "features", "labels", *SPLITS)

    index: int
    nodes: Vocabulary
    classes: Vocabulary
    new_nodes: range
    new_classes: range
    edges: IntArray
    features: FloatArray
    labels: IntArray
    train: IntArray
    valid: IntArray
    test: IntArray

    @property
    def num_nodes(self) -> int:
        """Nodes known once this part has arrived."""
        return self.new_nodes.stop

    @property
    def num_classes(self) -> int:
        """Classes known once this part has arrived."""
        return self.new_classes.stop

    @property
    @override
    def facts(self) -> int:
        """Number of edges of the part."""
        return len(self.edges)

    @property
    @override
    def self_loops(self) -> int:
        return int((self.edges[:, 0] == self.edges[:, 1]).sum())

    @override
    def checked(self, num_features: int | None = None) -> Self:
        """The part, after checking that ids have labels, features are finite and classes are known.

        Nodes of a split that arrived earlier have their classes elsewhere: see `check_classes`.

        Args:
            num_features: Length of a node's feature vector; whatever it is unless given.

        Raises:
            UserError: Something does not fit; the message names the split and the row.
        """
        of = f"of part {self.index}"
        check_range(f"new nodes {of}", self.new_nodes, self.nodes)
        check_range(f"new classes {of}", self.new_classes, self.classes)
        edges = as_edges(self.edges, f"edges {of}")
        for ends in edges.T:
            check_ids(f"edges {of}", ends, self.nodes)
        features = self._checked_features(num_features)
        classes = as_ids(self.labels, f"classes {of}")
        if len(classes) != len(self.new_nodes):
            raise UserError(
                f"part {self.index} brings {len(self.new_nodes)} nodes, but {len(classes)} classes"
            )
        check_ids(f"classes {of}", classes, self.classes, lowest=-1)
        sets = {split: as_ids(getattr(self, split), f"{split} nodes {of}") for split in SPLITS}
        for split, nodes in sets.items():
            check_ids(f"{split} nodes {of}", nodes, self.nodes)
            rows = np.flatnonzero((nodes >= self.new_nodes.start) & (nodes < self.new_nodes.stop))
            self.check_classes(split, rows, classes[nodes[rows] - self.new_nodes.start])
        train, valid, test = sets.values()
        return replace(
            self,
            edges=edges,
            features=features,
            labels=classes,
            train=train,
            valid=valid,
            test=test,
        )

    def check_classes(self, split: str, rows: IntArray, classes: IntArray) -> None:
        """Refuse a node of a split whose class is not known.

        Args:
            split: The split.
            rows: Some of its rows.
            classes: Class ids of the nodes there, -1 where not known.
        """
        without = rows[classes < 0]
        if len(without):
            row = int(without[0])
            label = self.nodes.labels(getattr(self, split)[[row]])[0]
            raise UserError(
                f"{split} nodes of part {self.index}: row {row} is node {shown(label)}, which has "
                "no class"
            )

    def _checked_features(self, num_features: int | None) -> FloatArray:
        with np.errstate(over="ignore"):  # what is too large is found to be infinite
            features = np.ascontiguousarray(self.features, dtype=np.float32)
        if features.ndim != 2 or len(features) != len(self.new_nodes):
            raise UserError(
                f"part {self.index} brings {len(self.new_nodes)} nodes, but features of shape "
                f"{list(features.shape)}"
            )
        if num_features is not None and features.shape[1] != num_features:
            raise UserError(
                f"part {self.index} has {features.shape[1]} features per node; this network has "
                f"{num_features}"
            )
        if not np.isfinite([features.min(initial=0), features.max(initial=0)]).all():
            row, column = np.argwhere(~np.isfinite(features))[0]
            label = self.nodes.labels([self.new_nodes[row]])[0]
            raise UserError(
                f"feature {column} of node {shown(label)} of part {self.index} is "
                f"{features[row, column]}; not finite"
            )
        return features

    def __repr__(self) -> str:
        return (
            f"NetworkPart({self.index}: {len(self.new_nodes):,} new nodes, {len(self.edges):,} "
            f"edges, {len(self.train):,} train, {len(self.valid):,} valid, {len(self.test):,} test)"
        )

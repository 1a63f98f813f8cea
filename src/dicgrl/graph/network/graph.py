"""The information network so far: nodes, features, classes, edges and an index that grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np
from typing_extensions import override

from dicgrl.errors import UserError, shown, unknown_name
from dicgrl.graph.arrays import (
    BoolArray,
    FloatArray,
    GrowingArray,
    IntArray,
    distinct,
    ids_in,
    in_order_of_parts,
)
from dicgrl.graph.change import FORGET, MERGE, RENAME, REPLACE, REVISE, Change
from dicgrl.graph.growing import Graph
from dicgrl.graph.index import SegmentIndex
from dicgrl.graph.network.keys import edge_keys
from dicgrl.graph.network.part import NetworkPart
from dicgrl.graph.network.replay import NO_IDS, Replay
from dicgrl.graph.part import SPLITS, Part
from dicgrl.graph.sorting import is_first
from dicgrl.graph.vocabulary import Vocabulary

Scope = Literal["accumulated", "part"]


class NetworkGraph(Graph[NetworkPart]):
    """Everything known about a network. The cost of adding a part depends on the part only.

    The rule for edges: undirected, each pair once, when it first arrives; the same pair again, in
    either direction, in its part or a later one, is dropped. Self loops are dropped as well:
    `edge_index` gives every node exactly one.

    Args:
        num_features: Length of a node's feature vector.
    """

    part_type: ClassVar[type[NetworkPart]] = NetworkPart

    def __init__(self, num_features: int) -> None:
        self.nodes = Vocabulary(kind="node")
        self.classes = Vocabulary(kind="class")
        self.num_features = num_features
        self._features = GrowingArray((num_features,), np.dtype(np.float32))
        self._labels = GrowingArray((), np.dtype(np.int64))
        self._edges = GrowingArray((2,), np.dtype(np.int64))
        self._edge_starts = [0]
        self._sets: dict[str, list[IntArray]] = {split: [] for split in SPLITS}
        self._by_node = SegmentIndex()
        self._by_edge = SegmentIndex()

    @override
    @classmethod
    def for_part(cls, part: NetworkPart) -> Self:
        return cls(num_features=part.features.shape[1])

    @override
    def add(self, part: NetworkPart) -> NetworkPart:
        """Take in a part.

        Returns:
            The part as this graph sees it: in the graph's own ids, each new edge once and without
            self loops.

        Raises:
            UserError: The part is not consistent, or does not fit; nothing has changed then.
        """
        part = self.check(part)
        known_nodes, known_classes = len(self.nodes), len(self.classes)
        used = np.concatenate([part.edges.ravel(), part.train, part.valid, part.test])
        node = self.nodes.adopt(part.nodes, np.concatenate([ids_in(part.new_nodes), used]))
        labelled = part.labels >= 0
        class_id = self.classes.adopt(
            part.classes, np.concatenate([ids_in(part.new_classes), part.labels[labelled]])
        )
        labels = np.full(len(part.labels), -1, dtype=np.int64)
        labels[labelled] = class_id(part.labels[labelled])

        edges = self._unseen(node(part.edges))
        self._index(edges, len(self._edges))
        self._edges.append(edges)
        self._edge_starts.append(len(self._edges))
        self._features.append(part.features)
        self._labels.append(labels)
        sets = {split: node(getattr(part, split)) for split in SPLITS}
        for split, chosen in sets.items():
            self._sets[split].append(chosen)
        return NetworkPart(
            index=self.num_parts - 1,
            nodes=self.nodes,
            classes=self.classes,
            new_nodes=range(known_nodes, len(self.nodes)),
            new_classes=range(known_classes, len(self.classes)),
            edges=edges,
            features=self.features[known_nodes:],  # our rows: the caller's may change
            labels=labels,
            **sets,
        )

    @override
    def check(self, part: NetworkPart) -> NetworkPart:
        part = part.checked(self.num_features)
        new_labels = part.nodes.labels(part.new_nodes)
        known = next((label for label in new_labels if label in self.nodes), None)
        if known is not None:
            raise UserError(f"node {shown(known)} of part {part.index} is already in this network")
        used = np.concatenate([part.edges.ravel(), part.train, part.valid, part.test])
        earlier = np.unique(used[(used < part.new_nodes.start) | (used >= part.new_nodes.stop)])
        absent = next((n for n in part.nodes.labels(earlier) if n not in self.nodes), None)
        if absent is not None:
            raise UserError(
                f"part {part.index} mentions node {shown(absent)}, which has not arrived"
            )
        for split in SPLITS:
            chosen = getattr(part, split)
            rows = np.flatnonzero((chosen < part.new_nodes.start) | (chosen >= part.new_nodes.stop))
            ours = self.nodes.found(part.nodes, chosen[rows])
            part.check_classes(split, rows, self.labels[ours])
        return part

    @override
    def known_in(self, part: NetworkPart) -> tuple[dict[str, IntArray], int]:
        """See `Graph.known_in`; for a node of the part, its class is the fact."""
        told = part.labels >= 0
        nodes = self.nodes.found(part.nodes, ids_in(part.new_nodes)[told])
        classes = self.classes.found(part.classes, part.labels[told])
        edges = np.sort(part.edges[part.edges[:, 0] != part.edges[:, 1]], axis=1)
        edges = np.unique(edges, axis=0)
        given = len(edges) + len(nodes)
        return self.known_facts(self.nodes.found(part.nodes, edges), nodes, classes), given

    def known_facts(
        self, edges: IntArray, nodes: IntArray, classes: IntArray
    ) -> dict[str, IntArray]:
        """The known ones among some facts, for `forget`.

        Args:
            edges: Pairs of our ids, [m, 2]; -1 where one is not known, likewise below.
            nodes: Nodes, [n].
            classes: Their classes, [n].
        """
        edges = np.unique(np.sort(edges[(edges >= 0).all(axis=1)], axis=1), axis=0)
        there = (nodes >= 0) & (classes >= 0)
        nodes, classes = nodes[there], classes[there]
        return {
            "edges": edges[self._by_edge.contains(edge_keys(edges))],
            "nodes": distinct(nodes[self.labels[nodes] == classes]),
        }

    @override
    def left_without(self, facts: Mapping[str, IntArray]) -> int:
        return int((~np.isin(self.split_nodes("train"), facts["nodes"])).sum())

    @override
    def forget(self, facts: Mapping[str, IntArray]) -> dict[str, BoolArray]:
        """See `Graph.forget`; a node without edges and class can still be asked about.

        Args:
            facts: `edges` [m, 2], lower id first, and `nodes` whose class is not known any more.
        """
        kept = np.ones(len(self.edges), np.bool_)
        kept[self._by_edge.lookup(edge_keys(facts["edges"]))[1]] = False
        if not kept.all():
            numbers = np.where(kept, np.cumsum(kept) - 1, -1)
            self._by_edge.renumber(numbers)
            self._by_node.renumber(numbers)
            self._edge_starts = np.append(0, np.cumsum(kept))[self._edge_starts].tolist()
            self._edges.keep(kept)
        if len(facts["nodes"]):
            self._labels.put(facts["nodes"], np.full(len(facts["nodes"]), -1))
        return self._leave_sets(facts["nodes"])

    def _leave_sets(self, nodes: IntArray) -> dict[str, BoolArray]:
        """Remove nodes from all splits; returns for each split which of its nodes stayed."""
        stayed = {split: ~np.isin(self.split_nodes(split), nodes) for split in SPLITS}
        for split, kept in stayed.items():
            ends = np.cumsum([len(chosen) for chosen in self._sets[split]])
            of_parts = np.split(kept, ends[:-1]) if len(ends) else []
            pairs = zip(self._sets[split], of_parts, strict=True)
            self._sets[split] = [chosen[left] for chosen, left in pairs]
        return stayed

    @override
    def merge(self, vocabulary: str, pairs: IntArray) -> None:
        """See `Graph.merge`; a node keeps its features, and its class where it has one."""
        left = self._left()
        self._merge(left, vocabulary, pairs)
        self._become(left)

    def _merge(self, left: Replay, vocabulary: str, pairs: IntArray) -> None:
        for kept, gone in pairs.tolist():
            left.merge(vocabulary, kept, gone)
            self.vocabularies()[vocabulary].merge(kept, gone)
        self._retire(vocabulary, pairs[:, 1])

    def revise(self, facts: Mapping[str, IntArray]) -> None:
        """Change classes or features of nodes; the cost is one pass over both.

        Args:
            facts: `nodes` and `labels`, their classes, which may be about to arrive; `described`
                and `features`, likewise. Nodes with another class leave the splits that they are
                in: the part that arrives with them says what to learn.
        """
        self._leave_sets(facts["nodes"])
        if len(facts["nodes"]):
            self._labels.put(facts["nodes"], facts["labels"])
        if len(facts["described"]):
            self._features.put(facts["described"], facts["features"])

    @override
    def apply(self, change: Change) -> Change:
        if change.kind != REVISE:
            return super().apply(change)
        assert isinstance(change.part, NetworkPart)
        self.revise(change.arrays)
        return replace(change, part=self.add(change.part))

    @override
    def replay(self, changes: Iterable[Change]) -> list[Change]:
        taken, left = [], Replay(self.num_features)
        for change in changes:
            part = change.part
            if change.kind in (FORGET, REPLACE):
                left.forget(change.arrays)
            elif change.kind == REVISE:
                left.revise(change.arrays)
            elif change.kind == RENAME:
                self.apply(change)
            elif change.kind == MERGE:
                self._merge(left, change.labels["vocabulary"], change.arrays["ids"])
            if part is not None:
                part = self._arrived(part, left.num_parts)
                left.learn(part)
            taken.append(replace(change, part=part))
        self._become(left)
        return taken

    def _arrived(self, part: Part, index: int) -> NetworkPart:
        """A stored part, whose ids are those of the graph, with its labels in our vocabularies."""
        new = part.new_labels()
        vocabularies = self.vocabularies()
        ranges = {name: vocabularies[name].append(new[name]) for name in vocabularies}
        ours = NetworkPart.from_arrays(index, vocabularies, ranges, part.arrays())
        return ours.checked(self.num_features)

    def _left(self) -> Replay:
        """The content of the graph, in a form that can be changed."""
        left, parts = Replay(self.num_features), np.arange(self.num_parts)
        left.restore(self.features, self.labels, self.num_parts)
        left.edges.add(self.edges, np.repeat(parts, np.diff(self._edge_starts)))
        for split, chosen in self._sets.items():
            for part, nodes in enumerate(chosen):
                left.sets[split].add(nodes, part)
        return left

    def _become(self, left: Replay) -> None:
        """Replace the content by what is left, indexed at once."""
        self._features.replace(left.features)
        self._labels.replace(left.labels)
        edges, self._edge_starts = left.edges.settled(left.num_parts)
        self._by_node, self._by_edge = SegmentIndex(), SegmentIndex()
        self._edges.replace(edges)
        self._index(edges, 0, np.diff(self._edge_starts))
        for split, nodes in left.sets.items():
            chosen, starts = nodes.settled(left.num_parts)
            self._sets[split] = np.split(chosen, starts[1:-1]) if left.num_parts else []

    @override
    def knows_all_of(self, part: NetworkPart) -> bool:
        """Whether all nodes and edges of a part are known already."""
        edges = self.nodes.found(part.nodes, part.edges)
        there = bool((edges >= 0).all()) and not len(self._unseen(edges))
        return not len(part.new_nodes) and there

    def edges_of(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """Edges at the nodes: positions in `nodes` and rows of `edges`, one pair per edge end."""
        return self._by_node.lookup(nodes)

    def sample_of(
        self,
        nodes: IntArray,
        most: int,
        generator: np.random.Generator,
        among: IntArray | None = None,
    ) -> tuple[IntArray, IntArray]:
        """Like `edges_of`, but at most `most` per node, drawn among its first ones."""
        return self._by_node.sample(nodes, most, generator, among)

    def degree(self, nodes: IntArray) -> IntArray:
        """Number of neighbours of each node."""
        return self._by_node.count(nodes)

    def edge_index(self, scope: Scope = "accumulated", part: int | None = None) -> IntArray:
        """Message-passing edges [2, 2m + n]: both directions and one self loop per known node.

        Args:
            scope: `accumulated`: all edges known so far. `part`: only those that arrived with one
                part, as the authors' released code does; every node keeps its self loop.
            part: The part for `scope="part"`; the newest one unless given.

        Example:
            >>> graph = NetworkGraph(num_features=1)
            >>> graph.edge_index().shape
            (2, 0)
        """
        if scope not in ("accumulated", "part"):
            raise unknown_name("scope", scope, ("accumulated", "part"))
        edges = self.edges
        if scope == "part" and self.num_parts:
            last = self.num_parts - 1 if part is None else part
            edges = edges[self._edge_starts[last] : self._edge_starts[last + 1]]
        loops = np.arange(len(self.nodes))
        source = np.concatenate([edges[:, 0], edges[:, 1], loops])
        return np.stack([source, np.concatenate([edges[:, 1], edges[:, 0], loops])])

    def part_nodes(self, split: str, part: int) -> IntArray:
        """The nodes of one split that arrived with one part."""
        return self._sets[split][part]

    def split_nodes(self, split: str) -> IntArray:
        """The nodes of one split, oldest part first."""
        return np.concatenate([NO_IDS, *self._sets[split]])

    @property
    def features(self) -> FloatArray:
        """Features of all nodes so far, [n, F]."""
        return self._features.view()

    @property
    def labels(self) -> IntArray:
        """Class ids of all nodes so far, [n]; -1 if unknown."""
        return self._labels.view()

    @property
    def edges(self) -> IntArray:
        """Edges so far, [m, 2], lower id first, each once."""
        return self._edges.view()

    @property
    @override
    def num_parts(self) -> int:
        return len(self._edge_starts) - 1

    def _index(self, edges: IntArray, first: int, sizes: IntArray | None = None) -> None:
        """Index edges of one part, or of several parts with these sizes."""
        rows = np.arange(first, first + len(edges))
        self._by_edge.add(edge_keys(edges), rows)
        ends, rows = edges.T.ravel(), np.concatenate([rows, rows])
        order = slice(None) if sizes is None else in_order_of_parts(rows - first, sizes)
        self._by_node.add(ends[order], rows[order])

    def _unseen(self, edges: IntArray) -> IntArray:
        edges = np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1)
        keys = edge_keys(edges)
        return edges[is_first(keys) & ~self._by_edge.contains(keys)]

"""A part: what arrives at one time, with its train, valid and test sets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dicgrl.graph.arrays import FloatArray, IntArray
from dicgrl.graph.vocabulary import Vocabulary

SPLITS = ("train", "valid", "test")


class Task(StrEnum):
    """What a stream is for."""

    LINK_PREDICTION = "link-prediction"
    NODE_CLASSIFICATION = "node-classification"


@dataclass(frozen=True, slots=True, eq=False)
class KnowledgePart:
    """Triples that arrive together.

    The rows are kept as they were given: repeated triples and self loops are counted by
    `describe` and dropped or kept by the `KnowledgeGraph` that the part is added to.

    Attributes:
        index: The part's position in its stream.
        entities: Labels of all entities of the stream; those of later parts may be among them.
        relations: Likewise for relations.
        new_entities: Ids that arrive with this part: a range, since ids are given on arrival.
        new_relations: Likewise for relations.
        train: Triples to learn from (head, relation, tail), int64 [n, 3].
        valid: Triples to select a model with.
        test: Triples to measure with, the paper's query set.
    """

    index: int
    entities: Vocabulary
    relations: Vocabulary
    new_entities: range
    new_relations: range
    train: IntArray
    valid: IntArray
    test: IntArray

    @property
    def num_entities(self) -> int:
        """Entities known once this part has arrived."""
        return self.new_entities.stop

    @property
    def num_relations(self) -> int:
        """Relations known once this part has arrived."""
        return self.new_relations.stop

    def __repr__(self) -> str:
        return (
            f"KnowledgePart({self.index}: {len(self.new_entities):,} new entities, "
            f"{len(self.train):,} train, {len(self.valid):,} valid, {len(self.test):,} test)"
        )


@dataclass(frozen=True, slots=True, eq=False)
class NetworkPart:
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

    def __repr__(self) -> str:
        return (
            f"NetworkPart({self.index}: {len(self.new_nodes):,} new nodes, {len(self.edges):,} "
            f"edges, {len(self.train):,} train, {len(self.valid):,} valid, {len(self.test):,} test)"
        )


Part = KnowledgePart | NetworkPart

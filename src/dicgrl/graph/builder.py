"""Builds streams part by part and gives ids in order of arrival; readers stand on this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from dicgrl.graph.arrays import FloatArray, IntArray
from dicgrl.graph.checks import checked_knowledge, checked_network
from dicgrl.graph.holdout import hold_out
from dicgrl.graph.index import SegmentIndex
from dicgrl.graph.knowledge import triple_keys
from dicgrl.graph.part import KnowledgePart, NetworkPart
from dicgrl.graph.stream import KnowledgeStream, NetworkStream
from dicgrl.graph.vocabulary import Vocabulary


class KnowledgeStreamBuilder:
    """Collects parts of a knowledge graph and gives ids in order of arrival.

    Args:
        name: What the stream is called in results.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.entities = Vocabulary(kind="entity")
        self.relations = Vocabulary(kind="relation")
        self._parts: list[KnowledgePart] = []
        self._indexed = 0  # parts whose triples are in these
        self._taught, self._asked = SegmentIndex(), SegmentIndex()

    def rows(
        self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]
    ) -> IntArray:
        """Ids of labelled triples, [n, 3]; unseen labels arrive line by line, head before tail."""
        ends = self.entities.add(chain.from_iterable(zip(heads, tails, strict=True)))
        return np.stack([ends[0::2], self.relations.add(relations), ends[1::2]], axis=1)

    def add(
        self,
        train: npt.ArrayLike,
        valid: npt.ArrayLike = (),
        test: npt.ArrayLike = (),
    ) -> None:
        """Close a part; every label added since the last call arrives with it.

        Raises:
            UserError: A row is not three ids that have labels.
        """
        self._parts.append(self._part(train, valid, test))

    def add_held_out(
        self,
        rows: IntArray,
        valid: float,
        test: float,
        generator: np.random.Generator,
        held: Sequence[IntArray] = (),
    ) -> None:
        """Close a part of which shares are set aside for validation and testing.

        What an earlier part has taught is not set aside, and what an earlier part has set aside is
        not taught: it is left out.

        Args:
            rows: The triples to divide.
            valid: Share of them for validation.
            test: Share of them for testing.
            generator: Makes the choice.
            held: Valid and test triples that the part has already.
        """
        if not valid and not test:
            self.add(rows, *held)
            return
        rows = self._part(rows, *held).train  # whatever is wrong is found before it is divided
        taught, asked = self._earlier()
        rows = rows[~asked.contains(triple_keys(rows))]
        known = taught.contains(triple_keys(rows))
        train, *chosen = (rows[at] for at in hold_out(rows, valid, test, generator, known))
        if held:
            chosen = [np.concatenate(pair) for pair in zip(held, chosen, strict=True)]
        self.add(train, *chosen)

    def _part(
        self, train: npt.ArrayLike, valid: npt.ArrayLike = (), test: npt.ArrayLike = ()
    ) -> KnowledgePart:
        """The next part, if it holds together."""
        known_entities = self._parts[-1].num_entities if self._parts else 0
        known_relations = self._parts[-1].num_relations if self._parts else 0
        part = KnowledgePart(
            len(self._parts),
            self.entities,
            self.relations,
            range(known_entities, len(self.entities)),
            range(known_relations, len(self.relations)),
            np.asarray(train),
            np.asarray(valid),
            np.asarray(test),
        )
        return checked_knowledge(part)

    def _earlier(self) -> tuple[SegmentIndex, SegmentIndex]:
        """Triples that earlier parts teach, and those that they ask about."""
        for part in self._parts[self._indexed :]:
            asked = np.concatenate([part.valid, part.test])
            for index, triples in ((self._taught, part.train), (self._asked, asked)):
                index.add(triple_keys(triples), np.zeros(len(triples), np.int64))
        self._indexed = len(self._parts)
        return self._taught, self._asked

    def build(self, names: Mapping[str, str] | None = None) -> KnowledgeStream:
        """The stream of all parts so far."""
        return KnowledgeStream(self.name, tuple(self._parts), names or {})

    def __len__(self) -> int:
        return len(self._parts)


class NetworkStreamBuilder:
    """Collects parts of a network and gives ids in order of arrival.

    Args:
        name: What the stream is called in results.
        num_features: Length of a node's feature vector.
        old: Nodes that arrived before the first part; edges may mention them.
    """

    def __init__(self, name: str, num_features: int, old: Iterable[str] = ()) -> None:
        self.name = name
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
        self._parts.append(checked_network(part, self.num_features))

    def build(self, names: Mapping[str, str] | None = None) -> NetworkStream:
        """The stream of all parts so far."""
        return NetworkStream(self.name, tuple(self._parts), names or {})

    def __len__(self) -> int:
        return len(self._parts)

"""A stream: an ordered sequence of parts of one graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt

from dicgrl.graph.labels import Triples, as_labels
from dicgrl.graph.part import SPLITS, KnowledgePart, NetworkPart, Task
from dicgrl.graph.vocabulary import Vocabulary

PartT = TypeVar("PartT", KnowledgePart, NetworkPart)


@dataclass(frozen=True, eq=False)
class _Stream(Generic[PartT]):
    name: str
    parts: tuple[PartT, ...]
    names: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[PartT]:
        return iter(self.parts)

    @overload
    def __getitem__(self, index: int) -> PartT: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> PartT | Self:
        if not isinstance(index, slice):
            return self.parts[index]
        start, _, step = index.indices(len(self.parts))
        if start != 0 or step != 1:
            raise ValueError(
                "a stream can be cut at its end (stream[:n]) only: later parts need earlier ones"
            )
        return replace(self, parts=self.parts[index])


class KnowledgeStream(_Stream[KnowledgePart]):
    """A knowledge graph that arrives in parts.

    Attributes:
        name: What the stream is called in results.
        parts: The parts, in order of arrival.
        names: Readable names of labels (such as Freebase ids), where there are any.

    Example:
        >>> stream = KnowledgeStream.from_labels(
        ...     "tiny", [[("Alien", "genre", "horror")], [("Aliens", "genre", "horror")]]
        ... )
        >>> [part.num_entities for part in stream]
        [2, 3]
    """

    task = Task.LINK_PREDICTION

    @classmethod
    def from_labels(
        cls,
        name: str,
        parts: Iterable[Triples],
        *,
        valid: float = 0.0,
        test: float = 0.0,
        seed: int = 0,
    ) -> KnowledgeStream:
        """A stream from labelled triples, one list for each part.

        Args:
            name: What the stream is called in results.
            parts: (head, relation, tail) labels, part by part; whole numbers are labels, too.
            valid: Share of each part's triples to set aside for validation.
            test: Share of each part's triples to set aside for testing.
            seed: Seed of the random choice.

        Raises:
            UserError: A label is neither text nor a whole number, or has a control character.
        """
        from dicgrl.graph.builder import KnowledgeStreamBuilder  # it imports this file

        builder = KnowledgeStreamBuilder(name)
        for part in parts:
            triples = as_labels(part)
            heads, relations, tails = zip(*triples, strict=True) if triples else ((), (), ())
            rows = builder.rows(heads, relations, tails)
            builder.add_held_out(rows, valid, test, np.random.default_rng((seed, len(builder))))
        return builder.build()

    @property
    def entities(self) -> Vocabulary:
        """Labels of all entities."""
        return self.parts[0].entities

    @property
    def relations(self) -> Vocabulary:
        """Labels of all relations."""
        return self.parts[0].relations

    def merged(self) -> KnowledgeStream:
        """The same data in one part: the setting that is not continual."""
        last = self.parts[-1]
        part = KnowledgePart(
            0,
            last.entities,
            last.relations,
            range(last.num_entities),
            range(last.num_relations),
            *(np.concatenate([getattr(part, split) for part in self]) for split in SPLITS),
        )
        return KnowledgeStream(self.name, (part,), self.names)

    def split(
        self,
        by: str,
        ratios: Sequence[float],
        *,
        times: npt.ArrayLike | None = None,
        valid: float = 0.0,
        test: float = 0.0,
        seed: int = 0,
    ) -> KnowledgeStream:
        """Make a stream of several parts out of a static graph (all parts of this one merged).

        A triple of the static graph's train, valid or test set stays in a set of that kind; with
        `valid` or `test` given, the training triples of each part give up that share.

        Args:
            by: `arrival`: entities are divided at random and a triple arrives with the later of
                its two entities (the paper's rule). `time`: triples are ordered by `times`; equal
                times stay together. `order`: triples arrive in the order in which they stand.
            ratios: Share of the entities (`arrival`) or triples of each part; they sum to 1.
            times: For `time`, one value per triple, in the order train, valid, test.
            valid: Share of each part's training triples to set aside for validation.
            test: Share of each part's training triples to set aside for testing.
            seed: Seed of every random choice.

        Example:
            >>> static = KnowledgeStream.from_labels("tiny", [[("a", "r", "b"), ("b", "r", "c")]])
            >>> [len(part.train) for part in static.split("order", [0.5, 0.5])]
            [1, 1]
        """
        from dicgrl.graph.split import split_knowledge  # it imports this file

        return split_knowledge(self, by, ratios, times, valid, test, seed)


class NetworkStream(_Stream[NetworkPart]):
    """An information network that arrives in parts.

    Attributes:
        name: What the stream is called in results.
        parts: The parts, in order of arrival.
        names: Readable names of labels, where there are any.
    """

    task = Task.NODE_CLASSIFICATION

    @property
    def nodes(self) -> Vocabulary:
        """Labels of all nodes."""
        return self.parts[0].nodes

    @property
    def classes(self) -> Vocabulary:
        """Labels of all classes."""
        return self.parts[0].classes

    @property
    def num_features(self) -> int:
        """Length of a node's feature vector."""
        return int(self.parts[0].features.shape[1])

    def merged(self) -> NetworkStream:
        """The same data in one part: the setting that is not continual."""
        last = self.parts[-1]
        part = NetworkPart(
            0,
            last.nodes,
            last.classes,
            range(self.parts[0].new_nodes.start, last.num_nodes),
            range(last.num_classes),
            *(
                np.concatenate([getattr(part, name) for part in self])
                for name in ("edges", "features", "labels", *SPLITS)
            ),
        )
        return NetworkStream(self.name, (part,), self.names)

    def split(
        self,
        by: str,
        ratios: Sequence[float],
        *,
        times: npt.ArrayLike | None = None,
        valid: float = 0.0,
        test: float = 0.0,
        seed: int = 0,
    ) -> NetworkStream:
        """Make a stream of several parts out of a static network (all parts of this one merged).

        An edge arrives with the later of its two nodes.

        Args:
            by: `arrival`: nodes are divided at random. `time`: nodes are ordered by `times`; equal
                times stay together. `order`: nodes arrive in the order of their ids. `class`: every
                part brings the nodes of some classes, in their order; those of no class come first.
            ratios: Share of the nodes (or classes) of each part; they sum to 1.
            times: For `time`, one value per node.
            valid: Share of each part's training nodes to set aside for validation.
            test: Share of each part's training nodes to set aside for testing.
            seed: Seed of every random choice.
        """
        from dicgrl.graph.split import split_network  # it imports this file

        return split_network(self, by, ratios, times, valid, test, seed)


Stream = KnowledgeStream | NetworkStream

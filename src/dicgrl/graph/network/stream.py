"""An information network that arrives in parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from dicgrl.graph.network.builder import NetworkParts
from dicgrl.graph.network.part import NetworkPart
from dicgrl.graph.network.split import split_network
from dicgrl.graph.network.statistics import describe_parts
from dicgrl.graph.periods import chosen_shares
from dicgrl.graph.stream import Counts, Stream
from dicgrl.graph.vocabulary import Vocabulary


class NetworkStream(Stream[NetworkPart]):
    """An information network that arrives in parts.

    Attributes:
        name: What the stream is called in results.
        parts: The parts, in order of arrival.
        names: Readable names of labels, where there are any.
    """

    task: ClassVar[str] = "node-classification"

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

    @override
    def describe(self) -> Counts:
        return {
            "name": self.name,
            "task": self.task,
            "classes": self.parts[-1].num_classes if self.parts else 0,
            "features": self.num_features,
            "parts": describe_parts(self.parts, self.num_features),
        }

    @override
    def merged(self) -> Self:
        last = self.parts[-1]
        part = NetworkPart(
            0,
            last.nodes,
            last.classes,
            range(self.parts[0].new_nodes.start, last.num_nodes),
            range(last.num_classes),
            *(
                np.concatenate([getattr(part, name) for part in self])
                for name in NetworkPart.array_names
            ),
        )
        return type(self)(self.name, (part,), self.names)

    @override
    def split(
        self,
        by: str,
        ratios: Sequence[float] | None = None,
        *,
        parts: int | None = None,
        first: float | None = None,
        times: npt.ArrayLike | None = None,
        cuts: Sequence[object] | None = None,
        valid: float = 0.0,
        test: float = 0.0,
        seed: int = 0,
    ) -> Self:
        """Make a stream of several parts out of a static network (all parts of this one merged).

        An edge arrives with the later of its two nodes.

        Args:
            by: `arrival`: nodes are divided at random. `nightly`: likewise, a large first part and
                many small ones. `time`: nodes are ordered by `times`; equal times stay together.
                `day`, `week`, `month`, `year`: a part for each of them that has nodes.
                `order`: nodes arrive in the order of their ids. `class`: every part brings the
                nodes of some classes, in their order; those of no class come first.
            ratios: Share of the nodes (or classes) of each part; they sum to 1.
            parts: Instead: how many parts, the first included. They are equal unless there is a
                `first`; five by default, `nightly` 41.
            first: Share of the first part, the others being equal. By default 0.8 without `parts`,
                and `nightly` 0.75.
            times: For `time` and periods, one value per node.
            cuts: For `time`: every part but the first begins at one of these, instead of ratios.
            valid: Share of each part's training nodes to hold out for validation.
            test: Share of each part's training nodes to hold out for testing.
            seed: Seed of every random choice.
        """
        static = self.merged().parts[0]
        by, shares = chosen_shares(by, ratios, parts, first, times, cuts)
        made = split_network(static, by, shares, times, valid, test, seed)
        return type(self)(self.name, made, self.names)


class NetworkStreamBuilder(NetworkParts):
    """Builds a stream part by part; readers stand on this.

    Args:
        name: What the stream is called in results.
        num_features: Length of a node's feature vector.
        old: Nodes that arrived before the first part; edges may mention them.
    """

    def __init__(self, name: str, num_features: int, old: Iterable[str] = ()) -> None:
        super().__init__(num_features, old)
        self.name = name

    def build(self, names: Mapping[str, str] | None = None) -> NetworkStream:
        """The stream of all parts so far."""
        return NetworkStream(self.name, self.parts, names or {})

"""The neighbourhood of a batch of nodes: the whole network, or a sample of it.

The sampler draws at most f neighbours of each node, without replacement, layer by layer, with array
operations only. Memory depends on the batch and f, not on the network. (PyTorch Geometric's loader
needs a compiled extension that is not part of the library.) It draws from a list of all edges, or
from the index of a graph, which grows with the graph and need not be rebuilt for each part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.graph import NetworkGraph
from dicgrl.models.edges import PreparedEdges
from dicgrl.models.features import SparseRows


class BatchView(NamedTuple):
    """What a batch of nodes sees.

    Attributes:
        x: Features, [m, F].
        edges: Edges between rows of `x`, with self loops.
        positions: The rows of the batch's own nodes.
        nodes: The nodes of the rows; a slice if they are all nodes.
    """

    x: Tensor | SparseRows
    edges: Tensor | PreparedEdges
    positions: Tensor
    nodes: Tensor | slice


class Neighbourhood(Protocol):
    """Returns the part of the network that a batch of nodes needs."""

    def __call__(self, nodes: Tensor) -> BatchView:
        """The part of the network that the nodes see."""


class WholeNetwork:
    """All nodes and edges, for full-batch training.

    Args:
        x: Features of all nodes, [N, F].
        edges: All edges with self loops.
    """

    def __init__(self, x: Tensor | SparseRows, edges: Tensor | PreparedEdges) -> None:
        self.x, self.edges = x, edges

    def __call__(self, nodes: Tensor) -> BatchView:
        """Everything."""
        return BatchView(self.x, self.edges, nodes, slice(None))


_DRAWN_FROM = 16  # edges to consider for each one that is drawn
_BELOW_ONE = 1 - 2**-20  # so that rounding never reaches the next edge


class DrawnNeighbourhood(ABC):
    """Base class that draws neighbours of each node in each of `layers` steps around a batch.

    Args:
        x: Features of all nodes, [N, F].
        layers: Steps away from the batch.
        count: Neighbours drawn per node and step, at most.
    """

    def __init__(self, x: Tensor, layers: int, count: int) -> None:
        self.x = x
        self.layers, self.count = layers, count
        self._position = torch.full((len(x),), -1, dtype=torch.long, device=x.device)

    def __call__(self, nodes: Tensor) -> BatchView:
        """The part of the network that the nodes see; a node may be in the batch more than once."""
        batch, positions = torch.unique(nodes, return_inverse=True)
        seen, frontier = batch, batch
        sources, targets = [], []
        self._position[batch] = torch.arange(len(batch), device=nodes.device)
        for _ in range(self.layers):
            source, target = self._draw(frontier)
            sources.append(source)
            targets.append(target)
            frontier = torch.unique(source[self._position[source] < 0])
            self._position[frontier] = torch.arange(
                len(seen), len(seen) + len(frontier), device=nodes.device
            )
            seen = torch.cat([seen, frontier])
        loops = torch.arange(len(seen), device=nodes.device)
        edges = torch.stack([torch.cat(sources), torch.cat(targets)])
        edges = torch.cat([self._position[edges], loops.expand(2, -1)], 1)
        self._position[seen] = -1  # reset for the next batch, at a cost that depends on this one
        return BatchView(self.x[seen], edges, positions, seen)

    @abstractmethod
    def _draw(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Draw incoming edges of distinct nodes [m]: sources and targets."""


class SampledNeighbourhood(DrawnNeighbourhood):
    """At most `count` neighbours of each node, drawn from a list of all edges.

    Args:
        x: Features of all nodes, [N, F].
        edge_index: All edges with self loops, [2, E] (source, target).
        layers: Steps away from the batch.
        count: Neighbours drawn per node and step.
        generator: Source of randomness, on the device of the edges.

    Example:
        >>> edges = torch.tensor([[0, 1, 2, 0, 1, 2], [1, 0, 0, 0, 1, 2]])
        >>> draw = SampledNeighbourhood(torch.eye(3), edges, 1, 1, torch.Generator())
        >>> draw(torch.tensor([1])).x.tolist()  # node 1 and its neighbour 0
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """

    def __init__(
        self, x: Tensor, edge_index: Tensor, layers: int, count: int, generator: torch.Generator
    ) -> None:
        super().__init__(x, layers, count)
        self.generator = generator
        source, target = edge_index[:, edge_index[0] != edge_index[1]]
        order = target.argsort(stable=True)
        self._source = source[order]
        self._start = torch.zeros(len(x) + 1, dtype=torch.long, device=x.device)
        torch.cumsum(torch.bincount(target, minlength=len(x)), 0, out=self._start[1:])

    @override
    def _draw(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        first = self._start[nodes]
        degree = self._start[nodes + 1] - first
        drawn_from = degree.clamp(max=_DRAWN_FROM * self.count)
        owner = torch.repeat_interleave(drawn_from)
        offset = drawn_from.cumsum(0) - drawn_from
        rank = torch.arange(len(owner), device=nodes.device) - offset[owner]
        # From a node with more edges, take every k-th one after a random first one.
        random = torch.rand(len(nodes) + len(owner), generator=self.generator, device=nodes.device)
        begin, key = torch.split(random.double(), [len(nodes), len(owner)])
        stride = degree.double() / drawn_from.clamp(min=1)
        edge = ((rank + begin[owner] * _BELOW_ONE) * stride[owner]).long()
        # Shuffle the edges of each node by random keys and take the first ones.
        order = torch.argsort(owner + key)
        kept = order[rank < self.count]
        return self._source[(first[owner] + edge)[kept]], nodes[owner[kept]]


class IndexedNeighbourhood(DrawnNeighbourhood):
    """At most `count` neighbours of each node, drawn from the index of a graph.

    Nothing is sorted, so that the cost of a small part of a large network depends on what is drawn.
    The index is in the memory of the host.

    Args:
        x: Features of all nodes, [N, F].
        graph: The network.
        layers: Steps away from the batch.
        count: Neighbours drawn per node and step.
        choices: Source of randomness.
    """

    def __init__(
        self, x: Tensor, graph: NetworkGraph, layers: int, count: int, choices: np.random.Generator
    ) -> None:
        super().__init__(x, layers, count)
        self._graph, self._choices = graph, choices

    @override
    def _draw(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        asked = nodes.cpu().numpy()
        position, rows = self._graph.sample_of(asked, self.count, self._choices)
        target = asked[position]
        source = self._graph.edges[rows].sum(1) - target  # the other end
        drawn = torch.from_numpy(np.stack([source, target])).to(nodes.device)
        return drawn[0], drawn[1]

"""Edges prepared for message passing, once per graph.

Edges are sorted by target, so that the edges of consecutive nodes are one slice. A layer can then
process a block of nodes at a time, with local reads and writes, and need not filter in a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Block:
    """A range of nodes with all their incoming edges.

    Attributes:
        first: The first node.
        stop: One after the last node.
        source: Source of each edge, [e].
        target: Target of each edge, relative to `first`, sorted, [e].
    """

    first: int
    stop: int
    source: Tensor
    target: Tensor


class PreparedEdges:
    """Edges of a network sorted by target, with self loops kept separately.

    Args:
        edge_index: Source and target of each edge, [2, E]; may contain self loops.
        num_nodes: Number of nodes, N.

    Attributes:
        index: The edges as they were given.

    Example:
        >>> edges = PreparedEdges(torch.tensor([[2, 1, 0, 1], [1, 1, 1, 0]]), num_nodes=3)
        >>> edges.source.tolist(), edges.target.tolist(), edges.order.tolist()
        ([1, 2, 0], [0, 1, 1], [2, 0, 1])
        >>> [(block.first, block.stop) for block in edges.blocks(most=2)]
        [(0, 1), (1, 3)]
    """

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        self.index = edge_index
        self.num_nodes = num_nodes
        self._blocks: dict[int, list[Block]] = {}

    @cached_property
    def _sorted(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sources, targets and positions; computed lazily, as a plain model does not need them."""
        source, target = self.index[:, self.index[0] != self.index[1]]
        target, order = target.sort(stable=True)
        return source[order], target, order

    @property
    def source(self) -> Tensor:
        """Sources of the edges that are not self loops, sorted by target."""
        return self._sorted[0]

    @property
    def target(self) -> Tensor:
        """Their targets."""
        return self._sorted[1]

    @property
    def order(self) -> Tensor:
        """Their positions among the given edges without self loops."""
        return self._sorted[2]

    def __len__(self) -> int:
        """Number of edges that are not self loops."""
        return len(self.source)

    def blocks(self, most: int) -> list[Block]:
        """All nodes in blocks of at most `most` edges, or of one node that has more.

        The edges of a node stay together, since its neighbours share one softmax.
        """
        if most not in self._blocks:
            self._blocks[most] = self._cut(most)
        return self._blocks[most]

    def _cut(self, most: int) -> list[Block]:
        if len(self) <= most:  # the usual case, without reading from the device
            return [Block(0, self.num_nodes, self.source, self.target)]
        end = torch.bincount(self.target, minlength=self.num_nodes).cumsum(0).cpu()
        blocks, first, begin = [], 0, 0
        while first < self.num_nodes:
            # The last node whose edges still fit; nodes without edges are free.
            stop = max(int(torch.searchsorted(end, begin + most, right=True)), first + 1)
            own = slice(begin, int(end[stop - 1]))
            blocks.append(Block(first, stop, self.source[own], self.target[own] - first))
            first, begin = stop, own.stop
        return blocks


def prepared(edges: Tensor | PreparedEdges, num_nodes: int) -> PreparedEdges:
    """Prepare edges [2, E], unless they are prepared already."""
    if isinstance(edges, PreparedEdges):
        return edges
    return PreparedEdges(edges, num_nodes)

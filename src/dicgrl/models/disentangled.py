"""Message passing in K components: the paper's disentangled layer (equations 4 and 5).

An edge (v -> u) attends to the components with alpha^k = softmax_k ReLU(W2 [u^k; v^k]) and takes
part only in its top n: component k of u receives component k of the neighbours whose edge chose k.
Time is proportional to E K for E edges; there is no dense adjacency and no loop over components.

A node is its own neighbour in every component, whatever the routing; otherwise a component that no
edge chooses would be empty.

A large network is processed in blocks of nodes (`models/blockwise.py`), as large as
`ComponentLayer.block_bytes` allows. Memory is then proportional to N K, plus E K bytes of choices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dicgrl.models.blockwise import MessagePass, Messages, edge_logits
from dicgrl.models.components import Components
from dicgrl.models.edges import PreparedEdges


class EdgeRouter(nn.Module):
    """Attention of edges over components (equation 4, W2).

    Args:
        components: How vectors are divided and routed.
        size: Length of a component.
    """

    def __init__(self, components: Components, size: int) -> None:
        super().__init__()
        self.components = components
        self.weight = nn.Parameter(torch.empty(2, size))

    def initialise(self, generator: torch.Generator) -> None:
        """Set start values."""
        with torch.no_grad():
            self.weight.normal_(generator=generator)

    def forward(self, parts: Tensor) -> tuple[Tensor, Tensor]:
        """W2 [u^k; v^k] as a sum: the terms of a node as target and as source, [N, K] each."""
        # Attention reads the vectors without sending them a gradient (see `Components`).
        own, other = (parts.detach() @ self.weight.T).unbind(-1)
        return own.contiguous(), other.contiguous()

    @torch.no_grad()
    def choose(self, parts: Tensor, edges: PreparedEdges, most: int = 1 << 18) -> Tensor:
        """Numbers of the components that each edge chooses, sorted, [E, n], in order of `edges`.

        Args:
            parts: Components of all nodes, [N, K, size].
            edges: The edges.
            most: Number of edges to process at a time.
        """
        own, other = self(parts)
        masks = [
            self.components.mask(
                edge_logits(block, own[block.first : block.stop], other[block.source])
            )
            for block in edges.blocks(most)
        ]
        return torch.cat(masks).nonzero()[:, 1].view(-1, self.components.top)


class ComponentLayer(nn.Module, ABC):
    """A layer of message passing in components: what is sent, and what becomes of it.

    Attributes:
        block_bytes: Bytes that the messages of one block may take, by kind of device; about ten
            tensors of that size exist at a time. A CPU is fastest with blocks of about the size of
            its cache, a GPU with few large ones. A node that receives more is a block of its own.
    """

    block_bytes: ClassVar = {"cpu": 24 << 20, "cuda": 1 << 30}

    @abstractmethod
    def initialise(self, generator: torch.Generator) -> None:
        """Set start values."""

    @abstractmethod
    def send(self, parts: Tensor) -> tuple[Tensor, ...]:
        """Tables that components [N, K, inside] send, [N, K, ...] each, messages first."""

    @abstractmethod
    def hear(self, heard: Messages) -> Tensor:
        """Aggregate messages for the nodes of a block, [b, K, size]; must not use parameters."""

    @abstractmethod
    def finish(self, parts: Tensor, heard: Tensor) -> Tensor:
        """New components [N, K, outside] from old ones and the aggregated messages [N, K, size]."""

    def forward(
        self, parts: Tensor, edges: PreparedEdges, router: EdgeRouter
    ) -> tuple[Tensor, Tensor]:
        """Route the edges and pass messages along them.

        Args:
            parts: Components of all nodes, [N, K, inside].
            edges: The edges.
            router: The attention of edges over components.

        Returns:
            New components [N, K, outside], and L_norm (equation 8) as a mean over edges.
        """
        sent = self.send(parts)
        width = sent[0][:1].numel() * parts.element_size()  # bytes of the messages of one edge
        limit = self.block_bytes.get(parts.device.type, self.block_bytes["cpu"])
        blocks = edges.blocks(max(limit // max(width, 1), 1))
        messages = MessagePass(self.hear, router.components, blocks, self.training)
        heard, missing = messages(*router(parts), *sent)
        return self.finish(parts, heard), missing / max(len(edges), 1)


class ComponentGAT(ComponentLayer):
    """u^k = sum over neighbours v of softmax_v(W3 v^k) W4^k v^k (equation 5).

    Args:
        count: Number of components, K.
        inside: Length of an incoming component.
        outside: Length of an outgoing component.
        dropout: Share of the neighbour weights that is dropped in training.
    """

    def __init__(self, count: int, inside: int, outside: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.attention = nn.Parameter(torch.empty(inside))  # W3
        self.weight = nn.Parameter(torch.empty(count, inside, outside))  # W4

    def initialise(self, generator: torch.Generator) -> None:
        """Set start values."""
        with torch.no_grad():
            self.attention.normal_(0, len(self.attention) ** -0.5, generator=generator)
            _glorot(self.weight, generator)

    def send(self, parts: Tensor) -> tuple[Tensor, ...]:
        """Messages [N, K, outside] and logits of the neighbour weights [N, K]."""
        messages = torch.einsum("nki,kio->nko", parts, self.weight)
        return messages.contiguous(), parts @ self.attention

    def hear(self, heard: Messages) -> Tensor:
        """Sums of messages, weighted by a softmax over the neighbours and the node itself."""
        (own, own_logit), (sent, logit), target = heard.own, heard.sent, heard.target
        logit = logit.masked_fill(~heard.chosen, -torch.inf)
        # Subtract the highest logit of each softmax, so that no exponential overflows.
        index = target[:, None].expand_as(logit)
        peak = own_logit.detach().scatter_reduce(0, index, logit.detach(), "amax")
        own_share = (own_logit - peak).exp()
        share = (logit - peak.index_select(0, target)).exp()
        total = own_share.index_add(0, target, share)
        own_share = self._drop(own_share / total, heard.generator)
        share = self._drop(share / total.index_select(0, target), heard.generator)
        return heard.sum(own * own_share[..., None], sent, share)

    def finish(self, parts: Tensor, heard: Tensor) -> Tensor:  # noqa: ARG002
        """The aggregated messages, through an ELU."""
        return F.elu(heard)

    def _drop(self, share: Tensor, generator: torch.Generator | None) -> Tensor:
        if not self.training or not self.dropout:
            return share
        drawn = torch.empty_like(share).uniform_(generator=generator)
        return share * drawn.ge_(self.dropout).div_(1 - self.dropout)


class ComponentSAGE(ComponentLayer):
    """u^k = LayerNorm(A^k u^k + B^k mean over neighbours v^k): GraphSAGE in each component.

    Args:
        count: Number of components, K.
        inside: Length of an incoming component.
        outside: Length of an outgoing component.
        dropout: Not used in this layer; features are dropped between layers.
    """

    def __init__(self, count: int, inside: int, outside: int, dropout: float) -> None:  # noqa: ARG002
        super().__init__()
        self.own = nn.Parameter(torch.empty(count, inside, outside))
        self.neighbours = nn.Parameter(torch.empty(count, inside, outside))
        self.norm = nn.LayerNorm(outside)

    def initialise(self, generator: torch.Generator) -> None:
        """Set start values."""
        with torch.no_grad():
            _glorot(self.own, generator)
            _glorot(self.neighbours, generator)

    def send(self, parts: Tensor) -> tuple[Tensor, ...]:
        """The components themselves, [N, K, inside]."""
        return (parts.contiguous(),)

    def hear(self, heard: Messages) -> Tensor:
        """Means over the neighbours and the node itself."""
        (own,), (sent,) = heard.own, heard.sent
        part = heard.chosen.to(own.dtype)
        degree = own.new_ones(own.shape[:2]).index_add(0, heard.target, part)
        return heard.sum(own, sent, part) / degree[..., None]

    def finish(self, parts: Tensor, heard: Tensor) -> Tensor:
        """The node and its neighbours' mean, each through its own weights."""
        new = torch.einsum("nki,kio->nko", parts, self.own)
        new = new + torch.einsum("nki,kio->nko", heard, self.neighbours)
        return F.relu(self.norm(new))


def _glorot(weight: Tensor, generator: torch.Generator) -> None:
    inside, outside = weight.shape[-2:]
    bound = (6 / (inside + outside)) ** 0.5
    weight.uniform_(-bound, bound, generator=generator)

"""Message passing in K components: the paper's disentangled layer (equations 4 and 5).

An edge (v -> u) attends to the components with alpha^k = softmax_k ReLU(W2 [u^k; v^k]) and takes
part only in its top n. So a network of N nodes and E edges becomes N K nodes, one per component,
and E n edges between them; each layer below is an ordinary sparse operation on that graph. Cost and
memory follow E n, never N^2 or a dense adjacency.

A node is its own neighbour in every component, whatever the routing: otherwise a component that no
edge chooses would be empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.utils import softmax

from dicgrl.models.components import Components, Route


@dataclass(frozen=True, slots=True)
class RoutedEdges:
    """Edges between components of nodes; component k of node i is row i * K + k.

    Attributes:
        source: Row that a message comes from, [m].
        target: Row that it goes to, [m].
        gate: Ones that carry the task's gradient to the attention, [m]; None if it is not to learn.
        rows: Number of rows, N K.
    """

    source: Tensor
    target: Tensor
    gate: Tensor | None
    rows: int

    def sum(self, messages: Tensor, weight: Tensor) -> Tensor:
        """Sum of weighted messages at every row: [rows, size] from rows [rows, size] and [m]."""
        if self.gate is not None:
            weight = weight * self.gate
        sent = messages[self.source] * weight[:, None]
        return torch.zeros_like(messages).index_add_(0, self.target, sent)


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

    def forward(self, parts: Tensor, edge_index: Tensor) -> tuple[RoutedEdges, Tensor]:
        """Route edges [2, E] (source, target; self loops are left out here and added to all).

        Returns:
            The routed edges, and L_norm (equation 8) as a mean over edges.
        """
        nodes, count, _ = parts.shape
        source, target = edge_index[:, edge_index[0] != edge_index[1]]
        # Attention reads the vectors and does not move them (see `Components`).
        own, other = (parts.detach() @ self.weight.T).unbind(-1)  # [N, K] each
        route: Route = self.components.route((own[target] + other[source]).relu())  # [E, n]
        loops = torch.arange(nodes * count, device=parts.device)
        gate = None
        if route.gate is not None:
            gate = torch.cat([route.gate.flatten(), route.gate.new_ones(len(loops))])
        edges = RoutedEdges(
            torch.cat([(source[:, None] * count + route.chosen).flatten(), loops]),
            torch.cat([(target[:, None] * count + route.chosen).flatten(), loops]),
            gate,
            nodes * count,
        )
        missing = route.concentration_loss()
        return edges, missing.mean() if len(missing) else missing.sum()


class ComponentGAT(nn.Module):
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

    def forward(self, parts: Tensor, edges: RoutedEdges) -> Tensor:
        """New components [N, K, outside] from old ones [N, K, inside]."""
        logits = (parts @ self.attention).flatten()[edges.source]  # [m]
        share = softmax(logits, edges.target, num_nodes=edges.rows)
        share = F.dropout(share, self.dropout, self.training)
        messages = torch.einsum("nki,kio->nko", parts, self.weight)
        summed = edges.sum(messages.flatten(0, 1), share)
        return F.elu(summed.view(messages.shape))


class ComponentSAGE(nn.Module):
    """u^k = LayerNorm(A^k u^k + B^k mean over neighbours v^k): GraphSAGE in each component.

    Args:
        count: Number of components, K.
        inside: Length of an incoming component.
        outside: Length of an outgoing component.
        dropout: Not used by this layer's sums; features are dropped between layers.
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

    def forward(self, parts: Tensor, edges: RoutedEdges) -> Tensor:
        """New components [N, K, outside] from old ones [N, K, inside]."""
        degree = torch.bincount(edges.target, minlength=edges.rows).clamp(min=1)
        flat = parts.flatten(0, 1)
        mean = edges.sum(flat, degree.to(flat.dtype).reciprocal()[edges.target]).view(parts.shape)
        new = torch.einsum("nki,kio->nko", parts, self.own)
        new = new + torch.einsum("nki,kio->nko", mean, self.neighbours)
        return F.relu(self.norm(new))


def _glorot(weight: Tensor, generator: torch.Generator) -> None:
    inside, outside = weight.shape[-2:]
    bound = (6 / (inside + outside)) ** 0.5
    weight.uniform_(-bound, bound, generator=generator)

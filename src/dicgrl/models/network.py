"""A network embedding for node classification: a message-passing backbone and a class layer.

Plain backbones are PyTorch Geometric's layers; the disentangled forms route each edge to its top n
components (`models/disentangled.py`). To add a backbone, add a plain layer and a component layer
under a name in `BACKBONES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dicgrl.common.seeding import seeded
from dicgrl.errors import unknown_name
from dicgrl.models.components import Components
from dicgrl.models.disentangled import (
    ComponentGAT,
    ComponentLayer,
    ComponentSAGE,
    EdgeRouter,
)
from dicgrl.models.edges import PreparedEdges, prepared
from dicgrl.models.features import SparseRows
from dicgrl.models.table import Table


class _PlainGAT(nn.Module):
    """Attention of `heads` heads over neighbours (Velickovic et al. 2018)."""

    def __init__(self, inside: int, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        from torch_geometric.nn import GATConv  # takes seconds to import; links do not need it

        # The edges bring exactly one self loop per node.
        self.convolution = GATConv(
            inside, hidden, heads=heads, dropout=dropout, add_self_loops=False
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return F.elu(self.convolution(x, edge_index))


class _PlainSAGE(nn.Module):
    """The node and the mean of its neighbours (Hamilton et al. 2017), with LayerNorm."""

    def __init__(self, inside: int, hidden: int, heads: int, dropout: float) -> None:  # noqa: ARG002
        super().__init__()
        from torch_geometric.nn import SAGEConv  # as above

        self.convolution = SAGEConv(inside, hidden * heads)
        self.norm = nn.LayerNorm(hidden * heads)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return F.relu(self.norm(self.convolution(x, edge_index)))


@dataclass(frozen=True, slots=True)
class Backbone:
    """A kind of message passing, in its plain and its disentangled form.

    Attributes:
        plain: Creates a layer from (inside, hidden, heads, dropout); it maps x and edges to
            [N, hidden heads].
        divided: Creates a component layer from (K, inside, outside, dropout).
    """

    plain: Callable[[int, int, int, float], nn.Module]
    divided: Callable[[int, int, int, float], ComponentLayer]


BACKBONES = {
    "gat": Backbone(_PlainGAT, ComponentGAT),
    "sage": Backbone(_PlainSAGE, ComponentSAGE),
}


class NetworkModel(nn.Module):
    """Scores the classes of nodes. Nodes and edges are given in each call; classes may grow.

    Args:
        name: The backbone: gat or sage.
        num_features: Length of a node's feature vector.
        hidden: Length of a head's or component's hidden vector.
        heads: Number of heads of a plain model; a divided one has its components instead.
        layers: Number of layers of message passing.
        dropout: Share of features (and of GAT's neighbour weights) that is dropped in training.
        components: How vectors are divided; None for a plain model.
        seed: Seed of all initial values.
        device: Device of the model.

    Example:
        >>> model = NetworkModel("gat", num_features=5, components=Components(4, 2))
        >>> model.grow(classes=3)
        >>> edges = torch.tensor([[0, 1, 0, 1], [1, 0, 0, 1]])
        >>> model(torch.ones(2, 5), edges).shape
        torch.Size([2, 3])
        >>> model.edge_components(torch.ones(2, 5), edges).shape  # of the edges 0 -> 1 and 1 -> 0
        torch.Size([2, 2])
    """

    def __init__(
        self,
        name: str,
        num_features: int,
        hidden: int = 8,
        heads: int = 8,
        layers: int = 2,
        dropout: float = 0.6,
        components: Components | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        if name not in BACKBONES:
            raise unknown_name("model", name, BACKBONES)
        self.name = name
        self.num_features = num_features
        self.hidden, self.heads, self.dropout = hidden, heads, dropout
        self.components = components
        self.seed = seed
        self.device = torch.device(device)
        self.generator = torch.Generator().manual_seed(seed)
        backbone = BACKBONES[name]
        self.projection: nn.Linear | None = None
        self.routers = nn.ModuleList()
        with seeded(seed):  # PyTorch Geometric initialises layers from the global generator
            if components is None:
                self.width = hidden * heads
                sizes = [num_features] + [self.width] * (layers - 1)
                stack = [backbone.plain(size, hidden, heads, dropout) for size in sizes]
            else:
                self.width = hidden * components.count
                self.projection = nn.Linear(num_features, self.width)
                stack = [
                    backbone.divided(components.count, hidden, hidden, dropout)
                    for _ in range(layers)
                ]
                for layer in stack:
                    layer.initialise(self.generator)  # type: ignore[operator]
                    router = EdgeRouter(components, hidden)
                    router.initialise(self.generator)
                    self.routers.append(router)
        self.stack = nn.ModuleList(stack)
        self.class_weight = nn.Parameter(torch.empty(0, self.width))  # W5
        self.class_bias = nn.Parameter(torch.empty(0))
        self._concentration: Tensor | None = None
        self.to(self.device)

    def grow(self, classes: int) -> None:
        """Add rows for new classes; those of old classes stay the same bit for bit."""
        bound = (6 / (self.width + 1)) ** 0.5
        start = torch.empty(classes, self.width).uniform_(-bound, bound, generator=self.generator)
        weight, bias = self.class_weight.detach(), self.class_bias.detach()
        self.class_weight = nn.Parameter(torch.cat([weight, start.to(self.device)]))
        self.class_bias = nn.Parameter(torch.cat([bias, bias.new_zeros(classes)]))

    @property
    def num_classes(self) -> int:
        """Classes so far."""
        return len(self.class_bias)

    def tables(self) -> dict[str, Table]:
        """No tables, as nodes are described by their features."""
        return {}

    def forward(
        self,
        x: Tensor | SparseRows,
        edges: Tensor | PreparedEdges,
        open: Tensor | None = None,  # noqa: A002
    ) -> Tensor:
        """Class scores [N, C]; for the arguments see `embed`."""
        x = F.dropout(self.embed(x, edges, open), self.dropout, self.training)
        return F.linear(x, self.class_weight, self.class_bias)

    def embed(
        self,
        x: Tensor | SparseRows,
        edges: Tensor | PreparedEdges,
        open: Tensor | None = None,  # noqa: A002
    ) -> Tensor:
        """The input of the class layer for each node, [N, width].

        Args:
            x: Features of the nodes, [N, F]; for disentangled models also as `SparseRows`.
            edges: Edges [2, E] with one self loop per node. To call it several times with the same
                edges, prepare them once: `PreparedEdges(edge_index, len(x))`.
            open: Mask, [N, K]. Where it is False, no gradient flows from the class layer through
                that component of that node; None for all open. Only for disentangled models.

        Raises:
            ValueError: `open` has another shape; or `open` or sparse features for a plain model.
        """
        if self.projection is None:
            if open is not None:
                raise ValueError("open: a plain model has no components to open or close")
            if isinstance(x, SparseRows):
                raise ValueError("x: a plain model takes dense features")
            seen = F.dropout(x, self.dropout, self.training)
            edge_index = edges.index if isinstance(edges, PreparedEdges) else edges
            for number, layer in enumerate(self.stack):
                seen = F.dropout(seen, self.dropout, self.training) if number else seen
                seen = layer(seen, edge_index)
        else:
            ready = prepared(edges, len(x))
            parts = self._parts(x, self.dropout if self.training else 0.0)  # [N, K, hidden]
            if open is not None and open.shape != parts.shape[:2]:
                raise ValueError(
                    f"open: shape {list(open.shape)}, expected {list(parts.shape[:2])} "
                    "(nodes, components)"
                )
            missing = []
            for number, (layer, router) in enumerate(zip(self.stack, self.routers, strict=True)):
                parts = F.dropout(parts, self.dropout, self.training) if number else parts
                parts, loss = layer(parts, ready, router)
                missing.append(loss)
            self._concentration = torch.stack(missing).mean()
            if open is not None:
                parts = torch.where(open[..., None], parts, parts.detach())
            seen = parts.flatten(1)
        return seen

    def _parts(self, x: Tensor | SparseRows, dropout: float) -> Tensor:
        """Project features of nodes to components."""
        assert self.projection is not None
        if isinstance(x, SparseRows):
            projected = x.linear(self.projection.weight, self.projection.bias, dropout)
        else:
            projected = self.projection(F.dropout(x, dropout))
        return projected.view(len(x), self.width // self.hidden, self.hidden)

    @torch.no_grad()
    def edge_components(self, x: Tensor | SparseRows, edges: Tensor | PreparedEdges) -> Tensor:
        """The components that the first layer's router chooses for each edge, [E, n].

        Computed without dropout and gradients, whatever mode the model is in. There is a row for
        each given edge that is not a self loop, with the numbers of its components.

        Args:
            x: Features of the nodes, [N, F].
            edges: Edges [2, E], prepared or not.

        Raises:
            ValueError: The model has no components.
        """
        if self.projection is None:
            raise ValueError("edge_components: a plain model has no components")
        ready = prepared(edges, len(x))
        router = self.routers[0]
        assert isinstance(router, EdgeRouter)
        chosen = router.choose(self._parts(x, 0.0), ready)
        return torch.empty_like(chosen).index_copy_(0, ready.order, chosen)

    def attention_now(self) -> dict[str, Tensor]:
        """Copies of the parameters of the attention over components, by name."""
        routers = self.routers.named_parameters(prefix="routers")
        return {name: parameter.detach().clone() for name, parameter in routers}

    def take_concentration(self) -> Tensor:
        """L_norm of the last call, a mean over edges and layers; 0 for a plain model.

        It is returned only once, so that the model does not keep the graph of a finished step.
        """
        taken, self._concentration = self._concentration, None
        return self.class_bias.new_zeros(()) if taken is None else taken

    def configuration(self) -> dict[str, Any]:
        """The arguments that make an empty model like this one, ready for JSON."""
        return {
            "name": self.name,
            "num_features": self.num_features,
            "hidden": self.hidden,
            "heads": self.heads,
            "layers": len(self.stack),
            "dropout": self.dropout,
            "components": asdict(self.components) if self.components else None,
            "seed": self.seed,
        }

"""Node classification on one part: train with early stopping, measure accuracy."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from dicgrl.errors import UserError
from dicgrl.evaluation import accuracy_metrics
from dicgrl.graph import NetworkGraph, NetworkPart
from dicgrl.graph.network import Scope
from dicgrl.models import NetworkModel, PreparedEdges, SparseRows
from dicgrl.recipes import Recipe
from dicgrl.settings import NodeSettings
from dicgrl.training import FitReport, NodeObjective, fit
from dicgrl.training.loop import Monitor
from dicgrl.training.neighbours import Neighbourhood, SampledNeighbourhood, WholeNetwork

PROTOCOL = {
    "metric": "accuracy",
    "selection": "smallest validation loss",
    "edges": "undirected, each once, one self loop per node",
}
_SPARSE = 0.2  # share of numbers that are not zero up to which sparse features are faster


def scaled(features: Tensor, how: str) -> Tensor:
    """Features of nodes scaled row by row; a row of zeros stays as it is.

    Args:
        features: [N, F].
        how: `l2`: to length 1. `row`: to a sum of absolute values of 1. `none`: as they are.

    Example:
        >>> scaled(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), "l2").tolist()
        [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    if how == "none":
        return features
    order = 2 if how == "l2" else 1
    return torch.nn.functional.normalize(features, p=float(order), dim=1)


class NodeRun:
    """Trains and measures one model on one part.

    Args:
        part: The data.
        recipe: The settings.
        seed: Seed of every random choice.
        device: Where to compute.
    """

    def __init__(self, part: NetworkPart, recipe: Recipe, seed: int, device: torch.device) -> None:
        if not isinstance(recipe.settings, NodeSettings):
            raise UserError(
                f"{recipe.settings.model} predicts links; this is a network: use gat or sage"
            )
        self.settings = settings = recipe.settings
        if not part.features.shape[1]:
            raise UserError(f"this network's nodes have no features; {settings.model} needs them")
        graph = NetworkGraph(part.features.shape[1])
        added = graph.add(part)
        self.x = scaled(torch.from_numpy(graph.features.copy()), settings.features).to(device)
        scope: Scope = "part" if settings.graph == "part" else "accumulated"
        self.edge_index = torch.from_numpy(graph.edge_index(scope)).to(device)
        self.edges = PreparedEdges(self.edge_index, len(self.x))  # once, not in every step
        self.labels = torch.from_numpy(graph.labels.copy()).to(device)
        self.train, self.valid, self.test = (
            torch.from_numpy(nodes.copy()).to(device)
            for nodes in (added.train, added.valid, added.test)
        )
        self.generator = torch.Generator(device).manual_seed(seed)
        self.model = NetworkModel(
            settings.model,
            graph.num_features,
            settings.hidden,
            settings.heads,
            settings.layers,
            settings.dropout,
            settings.division(),
            seed,
            device,
        )
        self.model.grow(added.num_classes)
        self.inputs: Tensor | SparseRows = self.x
        if settings.components:  # a plain model takes dense features
            sparse = SparseRows(self.x)
            self.inputs = sparse if sparse.density < _SPARSE else self.x

    def learn(self, monitor: Monitor | None = None) -> FitReport:
        """Train, with early stopping on the loss of the validation nodes."""
        settings, model = self.settings, self.model
        neighbourhood: Neighbourhood = WholeNetwork(self.inputs, self.edges)
        if settings.batch:
            neighbourhood = SampledNeighbourhood(
                self.x, self.edge_index, settings.layers, settings.neighbours, self.generator
            )
        objective = NodeObjective(self.labels, neighbourhood, settings.beta)
        schedule = settings.schedule()
        if not settings.batch:
            schedule = replace(schedule, batch=max(len(self.train), 1))
        return fit(
            model,
            lambda nodes, weight: objective(model, nodes, weight),
            self.train,
            schedule,
            self.generator,
            validate=(lambda: -self.measure(self.valid)["loss"]) if len(self.valid) else None,
            monitor=monitor,
        )

    def measure(self, nodes: Tensor) -> dict[str, float]:
        """Accuracy and loss of nodes, with all edges."""
        was_training = self.model.training
        self.model.eval()
        with torch.no_grad():
            scores = self.model(self.inputs, self.edges)[nodes]
        self.model.train(was_training)
        return accuracy_metrics(scores, self.labels[nodes])

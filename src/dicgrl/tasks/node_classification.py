"""Node classification on a network that grows: labelled nodes are examples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from dicgrl.errors import UserError
from dicgrl.evaluation import accuracy_metrics
from dicgrl.graph import NetworkGraph, NetworkPart, Part
from dicgrl.graph.arrays import Groups, IntArray
from dicgrl.graph.network import Scope
from dicgrl.models import NetworkModel, PreparedEdges, SparseRows
from dicgrl.models.mode import evaluating
from dicgrl.settings import LinkSettings, NodeSettings, examples_within
from dicgrl.tasks.activation import (
    Activation,
    Links,
    activate,
    component_bits,
)
from dicgrl.tasks.base import TRAINED_BYTES, ExampleGroup, Replay, Run
from dicgrl.training import KeptClasses, NodeObjective
from dicgrl.training.neighbours import (
    Neighbourhood,
    SampledNeighbourhood,
    Seen,
    WholeNetwork,
)
from dicgrl.training.stepper import Objective

PROTOCOL = {
    "metric": "accuracy",
    "selection": "smallest validation loss",
    "edges": "undirected, each once, one self loop per node",
}
_SHIELDED = 10  # old nodes in an epoch of batches for each new one that is learned from
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


class NodeTrainer(Run):
    """A network embedding that learns part by part.

    Args:
        settings: The settings.
        seed: Seed of every random choice.
        device: Where to compute.
    """

    metric = "accuracy"
    settings: NodeSettings
    model: NetworkModel

    def __init__(
        self, settings: LinkSettings | NodeSettings, seed: int, device: torch.device
    ) -> None:
        if not isinstance(settings, NodeSettings):
            raise UserError(f"{settings.model} predicts links; this is a network: use gat or sage")
        super().__init__(settings, seed, device)
        import torch_geometric.nn  # noqa: F401  # takes seconds: not while a part is learned

        self.graph: NetworkGraph | None = None
        self.part: NetworkPart | None = None
        self._before: NetworkModel | None = None
        self._open: Tensor | None = None

    def _begin(self, num_features: int) -> NetworkModel:
        settings = self.settings
        return NetworkModel(
            settings.model,
            num_features,
            settings.hidden,
            settings.heads,
            settings.layers,
            settings.dropout,
            settings.division(),
            self.seed + self.num_parts,
            self.device,
        )

    def _needs(self, part: Part) -> list[tuple[int, str]]:
        settings, features = self.settings, 0
        if isinstance(part, NetworkPart) and not self.num_parts:
            features = part.features.shape[1]
        width = settings.hidden * (settings.components or settings.heads)
        needed = features * width * TRAINED_BYTES
        return [(needed, f"hidden={settings.hidden} for {features:,} features")]

    def _add(self, part: Part) -> NetworkPart:
        if not isinstance(part, NetworkPart):
            raise UserError(
                f"{self.settings.model} classifies nodes; this part is of a knowledge graph"
            )
        num_features = part.features.shape[1]
        if not num_features:
            raise UserError(
                f"this network's nodes have no features; {self.settings.model} needs them"
            )
        graph = self.graph or NetworkGraph(num_features)
        self.part = graph.add(part)
        self.graph = graph
        return self.part

    def _prepare(self) -> None:
        graph = self.graph
        assert graph is not None
        features = torch.from_numpy(graph.features.copy())
        self.x = scaled(features, self.settings.features).to(self.device)
        self.inputs: Tensor | SparseRows = self.x
        if self.settings.components:  # a plain model takes dense features
            sparse = SparseRows(self.x)
            self.inputs = sparse if sparse.density < _SPARSE else self.x
        scope: Scope = "part" if self.settings.graph == "part" else "accumulated"
        edge_index = torch.from_numpy(graph.edge_index(scope)).to(self.device)
        self.edges = PreparedEdges(edge_index, len(self.x))
        self.labels = torch.from_numpy(graph.labels.copy()).to(self.device)
        self._open = None

    def _grow(self) -> None:
        assert self.part is not None
        if self.num_parts == 0:
            self.model = self._begin(self.part.features.shape[1])
        else:
            self.model.take_concentration()  # whoever looked at the model may have left one
            self._before = copy.deepcopy(self.model)
        self.model.grow(len(self.part.new_classes))
        if self.num_parts and self.part.new_classes and self.settings.starts_from_neighbours:
            self._start_classes()

    @torch.no_grad()
    def _start_classes(self) -> None:
        """Let a new class score at its nodes like the best old one, at old nodes like any other.

        Of the weights that do so on average these are the shortest; a class without training nodes
        keeps its random start.
        """
        assert self.part is not None
        model, known = self.model, self.part.new_classes.start
        old = self.examples("train", 0, self.num_parts)
        if not len(old) or not known:
            return
        vectors = self.vectors()
        scores = F.linear(vectors, model.class_weight[:known], model.class_bias[:known])
        elsewhere, usual = vectors[old].mean(0), scores[old].mean()
        new = torch.from_numpy(self.part.train).to(self.device)
        for number in self.part.new_classes:
            nodes = new[self.labels[new] == number]
            if len(nodes):
                place, best = vectors[nodes].mean(0), scores[nodes].amax(1).mean()
                away = place - elsewhere
                weight = (best - usual) * away / away.square().sum().clamp(min=1e-12)
                model.class_weight[number] = weight
                model.class_bias[number] = best - weight @ place

    def rebuild(self) -> None:
        """See `Run`."""
        assert self.graph is not None
        self.model = self._begin(self.graph.num_features)
        self.model.grow(len(self.graph.classes))

    def count(self, split: str, first: int = 0, last: int | None = None) -> int:
        """See `Run`."""
        return len(self._nodes(split, first, last))

    def examples(self, split: str, first: int = 0, last: int | None = None) -> Tensor:
        """See `Run`."""
        return torch.from_numpy(self._nodes(split, first, last)).to(self.device)

    def old_examples(self, chosen: IntArray) -> Tensor:
        """See `Run`."""
        return torch.from_numpy(self._nodes("train", 0, None)[chosen]).to(self.device)

    def _nodes(self, split: str, first: int, last: int | None) -> IntArray:
        assert self.graph is not None
        parts = range(first, self.graph.num_parts if last is None else last)
        nodes = [self.graph.part_nodes(split, part) for part in parts]
        return np.concatenate(nodes) if nodes else np.empty(0, np.int64)

    def objective(self, examples: Tensor, *, old: bool = False) -> Objective:
        """See `Run`."""
        del examples
        model = self.model
        objective = NodeObjective(
            self.labels,
            self._neighbourhood(),
            self.settings.beta,
            kept=self._before.attention_now() if old and self._before is not None else None,
            open=self._open if old else None,
        )
        return lambda nodes, weight: objective(model, nodes, weight)

    def shield(self, examples: Tensor) -> ExampleGroup | None:
        """See `Run`: old nodes keep the class probabilities that the model of before gives them.

        Each counts as much as a node that is learned from, and together no more than all those
        that the model of before has learned from. In batches their number says how much they
        count: an epoch takes some for each new node that is learned from, others each time.
        """
        if self._before is None or self.part is None or not len(examples):
            return None
        model = self.model
        objective = KeptClasses(self._of_before(), self._neighbourhood(), self.settings.beta)
        each = min(1.0, self.count("train", 0, self.newest) / len(examples))
        return ExampleGroup(
            lambda nodes, weight: objective(model, nodes, weight),
            examples,
            torch.full((len(examples),), each, device=self.device),
            _SHIELDED * max(len(self.part.train), 1),
        )

    def _of_before(self) -> Callable[[Tensor, Seen], Tensor]:
        """Class scores of nodes by the model of before, from what they see now."""
        before = self._before
        assert before is not None
        if self.at_once:
            scores = self._scores(before)  # what they see stays the same
            return lambda nodes, _: scores[nodes]

        @torch.no_grad()
        def of_batch(_: Tensor, seen: Seen) -> Tensor:
            with evaluating(before):
                scores: Tensor = before(seen.x, seen.edges)
            return scores[seen.positions]

        return of_batch

    def draw_shield(self) -> tuple[Tensor, IntArray]:
        """See `Run`; any old node may be drawn, as no label is learned from.

        Where classes arrive, an old node whose class is not known may be of one of them: then the
        nodes that were learned from are drawn alone.
        """
        assert self.part is not None
        old = np.arange(self.part.new_nodes.start)
        if len(self.part.new_classes):
            old = self._nodes("train", 0, self.newest)
        count = examples_within(self.settings.shield, len(old), len(self.part.new_nodes), "shield")
        nodes = np.sort(self.choices.choice(old, count, replace=False))
        return torch.from_numpy(nodes).to(self.device), np.empty(0, np.int64)

    def _neighbourhood(self) -> Neighbourhood:
        """What a batch of nodes sees in training."""
        settings = self.settings
        if self.at_once:
            return WholeNetwork(self.inputs, self.edges)
        return SampledNeighbourhood(
            self.x, self.edges.index, settings.layers, settings.neighbours, self.generator
        )

    def activate(self, budget: int, used: IntArray | None = None) -> Replay:
        """See `Run`; an activated edge speaks of the training nodes at its ends."""
        assert self.graph is not None and self.part is not None
        settings, graph = self.settings, self.graph
        links = _Links(self)
        new = np.arange(links.old, len(graph.edges))
        found = activate(links, links.ends(new), links.components(new), settings.orders)
        nodes = _at_ends(found, links.ends(found.rows))
        trained = np.isin(nodes.rows, self._nodes("train", 0, self.newest))
        chosen = nodes.at(trained).within(budget, settings.selection, self.choices, used)
        weight = np.where(chosen.order == 1, settings.weight1, settings.weight2)
        return Replay(
            torch.from_numpy(chosen.rows).to(self.device),
            torch.from_numpy(weight).float().to(self.device),
            chosen.rows,
            found,
            found.candidates,
            len(found),
        )

    def open_concerned(self, replay: Replay) -> None:
        """See `Run`; it decides which components of which nodes gradients reach."""
        assert self.graph is not None and self.part is not None
        links, found = _Links(self), replay.concerned
        new = np.arange(links.old, len(self.graph.edges))
        ends = np.concatenate([links.ends(new), links.ends(found.rows)])
        bits = np.concatenate([links.components(new), found.common])
        nodes = Groups(ends.T.ravel())
        concerned = nodes.union(np.concatenate([bits, bits]))
        mask = np.zeros((len(self.x), self.settings.components), dtype=np.bool_)
        mask[nodes.values] = (concerned[:, None] >> np.arange(mask.shape[1])) & 1
        mask[self.part.new_nodes.start :] = True
        self._open = torch.from_numpy(mask).to(self.device)

    def old_rows(self) -> dict[str, int]:
        """See `Run`."""
        return {}

    @torch.no_grad()
    def drift(self) -> dict[str, float]:
        """See `Run`: how far class probabilities of old nodes moved, and how many changed class.

        In batches it is not known: the whole network would have to be passed.
        """
        if self._before is None or self.part is None or not self.at_once:
            return {}
        old = self.part.new_nodes.start
        before, now = (self._scores(m)[:old].softmax(1) for m in (self._before, self.model))
        new_classes = now.shape[1] - before.shape[1]
        moved = (now - F.pad(before, (0, new_classes))).abs().sum(1) / 2
        changed = before.argmax(1) != now.argmax(1)
        mean, largest, count = torch.stack([moved.mean(), moved.max(), changed.sum()]).tolist()
        return {"mean": mean, "largest": largest, "nodes": int(count)}

    def old_weights(self) -> dict[str, int]:
        """See `Run`: the layer of classes has a row for each."""
        assert self.part is not None
        return dict.fromkeys(("class_weight", "class_bias"), self.part.new_classes.start)

    def open_new(self) -> None:
        """See `Run`; a network's nodes have no rows of their own: there is nothing to close."""

    def open_all(self) -> None:
        """See `Run`."""
        self._open = None

    def outcomes(self, sets: Sequence[Tensor]) -> list[tuple[dict[str, float], Tensor]]:
        """See `Run`; a question is answered when the true class scores highest.

        The network is passed once for all of them.
        """
        scores = torch.split(self.scores(torch.cat(list(sets))), [len(nodes) for nodes in sets])
        labels = [self.labels[nodes] for nodes in sets]
        return [
            (accuracy_metrics(found, true), found.argmax(1) == true)
            for found, true in zip(scores, labels, strict=True)
        ]

    def scores(self, nodes: Tensor) -> Tensor:
        """Class scores of nodes, with all edges in scope, nothing dropped."""
        return self._scores(self.model)[nodes]

    @torch.no_grad()
    def _scores(self, model: NetworkModel) -> Tensor:
        with evaluating(model):
            scores: Tensor = model(self.inputs, self.edges)
        return scores

    @torch.no_grad()
    def vectors(self) -> Tensor:
        """What the class layer sees of every node, [N, width]; nothing dropped."""
        with evaluating(self.model):
            vectors: Tensor = self.model.embed(self.inputs, self.edges)
        return vectors

    def judge(self, examples: Tensor) -> float:
        """See `Run`."""
        return -F.cross_entropy(self.scores(examples), self.labels[examples]).item()

    def chance(self) -> float:
        """See `Run`."""
        return 1 / max(self.model.num_classes, 1)

    def describe_protocol(self) -> dict[str, Any]:
        """See `Run`."""
        return self._selected(PROTOCOL) | {"graph": self.settings.graph}


class _Links(Links):
    """The edges of a run as activation sees them: old ones by the model of before."""

    def __init__(self, run: NodeTrainer) -> None:
        assert run.graph is not None and run.part is not None
        edges = run.graph.edges
        super().__init__(
            run.graph,
            run.graph.edges_of,
            len(edges) - len(run.part.edges),
            run.part.edges,
            run.settings.fan,
            run.choices,
        )
        self._run, self._edges = run, edges

    def ends(self, rows: IntArray) -> IntArray:
        return self._edges[rows]

    def components(self, rows: IntArray) -> IntArray:
        """What either direction of an edge chooses; it depends on the two ends alone."""
        if len(rows) == 0:
            return np.empty(0, np.int64)
        run = self._run
        model = run._before if rows[-1] < self.old and run._before is not None else run.model
        nodes = Groups(self.ends(rows).ravel())
        ends = nodes.group.reshape(-1, 2).T
        both = torch.from_numpy(np.concatenate([ends, ends[::-1]], 1)).to(run.device)
        x = run.x[torch.from_numpy(nodes.values).to(run.device)]
        bits = component_bits(model.edge_components(x, both).cpu().numpy())
        one: IntArray = bits[: len(rows)] | bits[len(rows) :]
        return one


def _at_ends(found: Activation, ends: IntArray) -> Activation:
    """Activated edges as activated nodes: a node takes what its edges have together."""
    nodes = Groups(ends.T.ravel())
    order = np.full(len(nodes.values), np.iinfo(np.int64).max)
    np.minimum.at(order, nodes.group, np.concatenate([found.order, found.order]))
    return Activation(
        nodes.values,
        order,
        nodes.union(np.concatenate([found.common, found.common])),
        nodes.sum(np.concatenate([found.merit, found.merit])),
        found.candidates,
    )

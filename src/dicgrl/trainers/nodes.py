"""Node classification on a growing network: examples are labelled nodes."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from dicgrl.common.growing import GrowingTensor
from dicgrl.common.memory import Need
from dicgrl.common.options import Sections
from dicgrl.errors import UserError
from dicgrl.evaluation import accuracy_metrics
from dicgrl.graph import NetworkGraph, NetworkPart, Part
from dicgrl.graph.arrays import IntArray, distinct, spread
from dicgrl.graph.change import MERGE, Change
from dicgrl.graph.network import Scope
from dicgrl.models import NetworkModel, PreparedEdges, SparseRows
from dicgrl.models.division import EncoderSettings
from dicgrl.models.mode import evaluating
from dicgrl.trainers.blending import blend_rows
from dicgrl.trainers.scaling import scaled, scaled_blocks
from dicgrl.trainers.trainer import TRAINED_BYTES, Trainer
from dicgrl.training import NodeObjective
from dicgrl.training.neighbours import (
    DrawnNeighbourhood,
    IndexedNeighbourhood,
    Neighbourhood,
    SampledNeighbourhood,
    WholeNetwork,
)
from dicgrl.training.settings import NodeTraining
from dicgrl.training.stepper import Objective

_SPARSE = 0.2  # share of non-zero numbers up to which sparse features are faster
_ALL = 1 << 30  # stands for all neighbours of a node
_MOST_OF_IT = 0.6  # share of the network from which on a pass through all of it is as fast


class NodeTrainer(Trainer):
    """A network embedding that learns part by part.

    Args:
        settings: The settings.
        seed: Seed of every random choice.
        device: Where to compute.

    Attributes:
        part: The newest part, in ids of the graph.
        model_before: The model before the newest part; None if nothing was learned before.
        x: Features of all nodes, scaled, [N, F].
        labels: Class of every node, [N]; -1 if unknown.
    """

    metric = "accuracy"
    asks_one_by_one = False  # one pass through the network answers for all nodes
    protocol: ClassVar = {
        "metric": "accuracy",
        "selection": "smallest validation loss",
        "edges": "undirected, each once, one self loop per node",
    }
    model: NetworkModel
    graph: NetworkGraph | None

    def __init__(self, settings: Sections, seed: int, device: torch.device) -> None:
        super().__init__(settings, seed, device)
        import torch_geometric.nn  # noqa: F401  # slow to import: not while a part is timed

        self.training = settings.of(NodeTraining)
        self.encoder = settings.of(EncoderSettings)
        self.graph = None
        self.part: NetworkPart | None = None
        self.model_before: NetworkModel | None = None
        self._rows = GrowingTensor(device)
        self._filled = 0  # how many numbers of all features are not zero
        self._edges: PreparedEdges | None = None
        self._inputs: Tensor | SparseRows | None = None

    def _begin(self, num_features: int) -> NetworkModel:
        encoder = self.encoder
        return NetworkModel(
            self.model_name,
            num_features,
            encoder.hidden,
            encoder.heads,
            encoder.layers,
            encoder.dropout,
            encoder.division(),
            self.seed + self.num_parts,
            self.device,
        )

    @override
    def _needs(self, part: Part) -> list[Need]:
        first = None if self.num_parts else part
        features = first.features.shape[1] if isinstance(first, NetworkPart) else 0
        made = self.encoder
        width = made.hidden * (made.components or made.heads)
        # Layers of a plain model see the whole vector, those of a divided one a component.
        between = width * (made.hidden if made.components else width) * (made.layers - 1)
        heads = "" if made.components else f", heads={made.heads}"
        called = f"hidden={made.hidden}{heads} and layers={made.layers} for {features:,} features"
        return [Need((features * width + between if features else 0) * TRAINED_BYTES, called)]

    @override
    def _add(self, part: Part) -> NetworkPart:
        if not isinstance(part, NetworkPart):
            raise UserError(
                f"{self.model_name} classifies nodes, but this part is of a knowledge graph"
            )
        num_features = part.features.shape[1]
        if not num_features:
            raise UserError(f"this network's nodes have no features; {self.model_name} needs them")
        graph = self.graph or NetworkGraph(num_features)
        self.part = graph.add(part)
        self.graph = graph
        return self.part

    @override
    def _apply(self, change: Change) -> Change:
        if change.kind == MERGE and change.labels["vocabulary"] == "classes":
            self._blend(change.arrays["ids"])
        return self._follow(change)

    @override
    def _follow(self, change: Change) -> Change:
        applied = super()._follow(change)
        if isinstance(applied.part, NetworkPart):
            self.part = applied.part
        if "described" in applied.arrays:  # new features of old nodes
            nodes = torch.from_numpy(applied.arrays["described"])
            rows = torch.from_numpy(applied.arrays["features"]).to(self.device)
            before, now = self.x[nodes], scaled(rows, self.training.features)
            self._filled += int(torch.count_nonzero(now) - torch.count_nonzero(before))
            self.x[nodes] = now
        return applied

    @torch.no_grad()
    def _blend(self, pairs: IntArray) -> None:
        """Place merged classes between the two, weighted by their training nodes."""
        assert self.graph is not None
        of_class = np.bincount(self.graph.labels[self.nodes("train")], minlength=pairs.max() + 1)
        for weights in (self.model.class_weight, self.model.class_bias[:, None]):
            blend_rows(weights, pairs, of_class[pairs])

    @override
    def _replay(self, history: Iterable[Change]) -> list[Change]:
        history = list(history)
        first = next((c.part for c in history if isinstance(c.part, NetworkPart)), None)
        if first is None:
            return []
        self.graph = NetworkGraph.for_part(first)
        replayed = self.graph.replay(history)
        arrived = [change.part for change in replayed if isinstance(change.part, NetworkPart)]
        self.part = arrived[-1]
        return replayed

    @override
    def _prepare(self) -> None:
        """Scale the features of new nodes; whatever passes the whole network is done on demand."""
        graph = self.graph
        assert graph is not None
        fresh = graph.features[len(self._rows) :]
        self._rows.reserve(len(fresh), torch.from_numpy(fresh[:0].copy()))
        for some in scaled_blocks(fresh, self.training.features):
            self._rows.append(some)
            self._filled += int(torch.count_nonzero(some))
        self.x = self._rows.view()
        self.labels = torch.from_numpy(graph.labels.copy()).to(self.device)
        self._edges = self._inputs = None

    @property
    def edges(self) -> PreparedEdges:
        """All edges in scope, with self loops."""
        if self._edges is None:
            assert self.graph is not None
            scope: Scope = "part" if self.training.graph == "part" else "accumulated"
            edge_index = torch.from_numpy(self.graph.edge_index(scope)).to(self.device)
            self._edges = PreparedEdges(edge_index, len(self.x))
        return self._edges

    @property
    def inputs(self) -> Tensor | SparseRows:
        """Features of all nodes in the form that is fastest for the model."""
        if self._inputs is None:
            # A plain model takes dense features.
            sparse = self.encoder.components and self._filled < _SPARSE * self.x.numel()
            self._inputs = SparseRows(self.x) if sparse else self.x
        return self._inputs

    @override
    def _grow(self) -> None:
        assert self.part is not None
        if self.num_parts == 0:
            self.model = self._begin(self.part.features.shape[1])
        else:
            self.model.take_concentration()  # drop what an earlier use may have left
            self.model_before = copy.deepcopy(self.model)
        self.model.grow(len(self.part.new_classes))

    @override
    def check_model(self) -> None:
        assert self.graph is not None
        rows, known = self.model.num_classes, len(self.graph.classes)
        if rows != known:
            raise ValueError(f"a model of {rows} classes for a network of {known}")
        if len(self.graph.features) != len(self.graph.nodes):
            raise ValueError("nodes without features")

    @override
    def rebuild(self) -> None:
        assert self.graph is not None
        self.model = self._begin(self.graph.num_features)
        self.model.grow(len(self.graph.classes))

    @override
    def count(self, split: str, first: int = 0, last: int | None = None) -> int:
        return len(self.nodes(split, first, last))

    @override
    def examples(self, split: str, first: int = 0, last: int | None = None) -> Tensor:
        return torch.from_numpy(self.nodes(split, first, last)).to(self.device)

    @override
    def old_examples(self, chosen: IntArray) -> Tensor:
        return torch.from_numpy(self.nodes("train", 0, None)[chosen]).to(self.device)

    def nodes(self, split: str, first: int = 0, last: int | None = None) -> IntArray:
        """Nodes of a split that arrived with parts [first, last), by ids."""
        assert self.graph is not None
        parts = range(first, self.graph.num_parts if last is None else last)
        nodes = [self.graph.part_nodes(split, part) for part in parts]
        return np.concatenate(nodes) if nodes else np.empty(0, np.int64)

    @override
    def objective(self, examples: Tensor) -> Objective:
        del examples
        model = self.model
        objective = NodeObjective(self.labels, self.neighbourhood(), self.training.beta)
        return lambda nodes, weight: objective(model, nodes, weight)

    @override
    def objective_around(self, examples: Tensor, batch: int) -> Objective:
        """The loss of batches of nodes, computed from their surroundings."""
        model = self.model
        alike = torch.from_numpy(spread(len(examples), batch))
        seen = self.surroundings(examples[alike.to(examples.device)], self.training.neighbours)
        objective = NodeObjective(self.labels, seen, self.training.beta)
        return lambda nodes, weight: objective(model, nodes, weight)

    @override
    def around(self, change: Change) -> IntArray:
        """Training nodes at the change, or that see it."""
        assert self.graph is not None
        arrays, none = change.arrays, np.empty(0, np.int64)
        if change.kind == MERGE and change.labels["vocabulary"] == "classes":
            return np.arange(self.count("train"))  # each node is in one class and in no other
        names = ("edges", "nodes", "described", *(("ids",) if change.kind == MERGE else ()))
        seen = distinct(*(arrays.get(name, none).ravel() for name in names))
        for _ in range(self.encoder.layers):
            ends = self.graph.edges[self.graph.edges_of(seen)[1]]
            seen = distinct(seen, ends.ravel())
        return np.flatnonzero(np.isin(self.nodes("train"), seen))

    def neighbourhood(self) -> Neighbourhood:
        """What a batch of nodes sees during training."""
        if self.at_once:
            return WholeNetwork(self.inputs, self.edges)
        return SampledNeighbourhood(
            self.x,
            self.edges.index,
            self.encoder.layers,
            self.training.neighbours,
            self.generator,
        )

    def surroundings(self, nodes: Tensor, most: int) -> Neighbourhood:
        """What a few nodes see: their surroundings, or everything if that is hardly more.

        Args:
            nodes: Typical nodes that will be asked about.
            most: How many neighbours to consider per node and layer.
        """
        around = self._around(most)
        if not len(nodes):
            return around
        seen = around(nodes)
        assert isinstance(seen.edges, Tensor)
        assert self.graph is not None
        everything = len(self.x) + 2 * len(self.graph.edges)
        if seen.edges.shape[1] < _MOST_OF_IT * everything:
            return around
        return WholeNetwork(self.inputs, self.edges)

    def _around(self, most: int) -> DrawnNeighbourhood:
        layers, graph = self.encoder.layers, self.graph
        assert graph is not None
        if self.device.type == "cpu" and self.training.graph != "part":
            return IndexedNeighbourhood(self.x, graph, layers, most, self.choices)
        return SampledNeighbourhood(self.x, self.edges.index, layers, most, self.generator)

    @override
    def outcomes(self, sets: Sequence[Tensor]) -> list[tuple[dict[str, float], Tensor]]:
        """A question is answered if the true class scores highest; one pass serves all sets."""
        scores = torch.split(self.scores(torch.cat(list(sets))), [len(nodes) for nodes in sets])
        labels = [self.labels[nodes] for nodes in sets]
        return [
            (accuracy_metrics(found, true), found.argmax(1) == true)
            for found, true in zip(scores, labels, strict=True)
        ]

    def scores(self, nodes: Tensor) -> Tensor:
        """Class scores of nodes, with all edges in scope and without dropout."""
        return self.scores_by(self.model)[nodes]

    @torch.no_grad()
    def scores_by(self, model: NetworkModel) -> Tensor:
        """Class scores of all nodes by a model, without dropout, [N, C]."""
        with evaluating(model):
            scores: Tensor = model(self.inputs, self.edges)
        gone = self.graph.retired("classes") if self.graph is not None else ()
        scores[:, [number for number in gone if number < scores.shape[1]]] = -torch.inf
        return scores

    @torch.no_grad()
    def vectors(self) -> Tensor:
        """The input of the class layer for all nodes, without dropout, [N, width]."""
        with evaluating(self.model):
            vectors: Tensor = self.model.embed(self.inputs, self.edges)
        return vectors

    @torch.no_grad()
    def vectors_of(self, nodes: Tensor) -> Tensor:
        """The input of the class layer for some nodes, [n, width]; only passes what is around."""
        seen = self.surroundings(nodes, _ALL)(nodes)
        with evaluating(self.model):
            vectors: Tensor = self.model.embed(seen.x, seen.edges)
        return vectors[seen.positions]

    def new_classes(self) -> dict[int, Tensor]:
        """Training nodes of each class that arrived with the newest part, if it has any."""
        assert self.part is not None
        new = self.examples("train", self.newest)
        found = {number: new[self.labels[new] == number] for number in self.part.new_classes}
        return {number: nodes for number, nodes in found.items() if len(nodes)}

    @override
    @torch.no_grad()
    def describe_part(self) -> dict[str, Any]:
        """How many edges came, and how many training nodes of each new class are right."""
        assert self.part is not None
        brought = {"edges": len(self.part.edges)}
        found = self.new_classes() if self.newest else {}
        if not found:
            return brought
        assert self.graph is not None
        model = self.model
        vectors = self.vectors_of(torch.cat(list(found.values())))
        guesses = F.linear(vectors, model.class_weight, model.class_bias).argmax(1)
        told = torch.split(guesses, [len(nodes) for nodes in found.values()])
        labels = self.graph.classes.labels(found)
        return brought | {
            "new_classes": {
                label: {"right": int((guess == number).sum()), "of": len(guess)}
                for label, number, guess in zip(labels, found, told, strict=True)
            }
        }

    @override
    def judge(self, examples: Tensor) -> float:
        return -F.cross_entropy(self.scores(examples), self.labels[examples]).item()

    @override
    def chance(self) -> float:
        return 1 / max(self.model.num_classes, 1)

    @override
    def describe_protocol(self) -> dict[str, Any]:
        return super().describe_protocol() | {"graph": self.training.graph}

"""Activation in networks: old labelled nodes, through the edges at them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from dicgrl.graph import NetworkGraph, NetworkPart
from dicgrl.graph.arrays import Groups, IntArray
from dicgrl.models.mode import evaluating
from dicgrl.strategies.activation import Activation, Links, activate, component_bits
from dicgrl.strategies.activator import (
    EVEN,
    ActivatedExamples,
    Activator,
    activator_of,
    within_evenly,
)
from dicgrl.strategies.budget import examples_within
from dicgrl.trainers import ExampleGroup, NodeTrainer
from dicgrl.training import KeptClasses, NodeObjective
from dicgrl.training.neighbours import BatchView
from dicgrl.training.stepper import Objective

_SHIELDED = 10  # with batches: shielded old nodes per epoch for each new training node


class NodeActivator(Activator):
    """Finds the old nodes that the newest nodes and edges activate."""

    def __init__(self, trainer: NodeTrainer, settings: object) -> None:
        super().__init__(settings)
        self._trainer = trainer
        self._movable: Tensor | None = None  # components of nodes that may move, [N, K]

    @property
    def _part(self) -> NetworkPart:
        assert self._trainer.part is not None
        return self._trainer.part

    @property
    def _graph(self) -> NetworkGraph:
        assert self._trainer.graph is not None
        return self._trainer.graph

    @override
    def activate(self, budget: int, used: IntArray | None = None) -> ActivatedExamples:
        """Find the training nodes at the ends of activated edges."""
        settings, trainer = self.settings, self._trainer
        links = self._links()
        new = np.arange(links.old, len(self._graph.edges))
        found = activate(links, links.ends(new), links.components(new), settings.orders)
        nodes = _at_ends(found, links.ends(found.rows))
        history = trainer.nodes("train", 0, trainer.newest)
        if settings.selection == EVEN:
            drawn = history[trainer.draw(budget, 0, trainer.newest)]
            rows = within_evenly(drawn, budget, used, trainer.choices)
            order = nodes.orders_of(rows)
        else:
            trained = nodes.at(np.isin(nodes.rows, history))
            chosen = trained.within(budget, settings.selection, trainer.choices, used)
            rows, order = chosen.rows, chosen.order
        return ActivatedExamples(
            torch.from_numpy(rows).to(trainer.device),
            self.weights_of(order, trainer.device),
            rows,
            found,
            found.candidates,
            len(found),
        )

    def _links(self) -> EdgeLinks:
        return EdgeLinks(self._trainer, self._graph, self._part, self.settings.fan)

    @override
    def unfreeze_concerned(self, activated: ActivatedExamples) -> None:
        """Decide which components of which nodes gradients may reach."""
        links, found = self._links(), activated.concerned
        new = np.arange(links.old, len(self._graph.edges))
        ends = np.concatenate([links.ends(new), links.ends(found.rows)])
        bits = np.concatenate([links.components(new), found.common])
        nodes = Groups(ends.T.ravel())
        concerned = nodes.union(np.concatenate([bits, bits]))
        mask = np.zeros((len(self._trainer.x), self._trainer.encoder.components), dtype=np.bool_)
        mask[nodes.values] = (concerned[:, None] >> np.arange(mask.shape[1])) & 1
        mask[self._part.new_nodes.start :] = True
        self._movable = torch.from_numpy(mask).to(self._trainer.device)

    @override
    def objective(self, examples: Tensor) -> Objective:
        del examples
        trainer = self._trainer
        model, before = trainer.model, trainer.model_before
        objective = NodeObjective(
            trainer.labels,
            trainer.neighbourhood(),
            trainer.training.beta,
            kept=None if before is None else before.attention_now(),
            movable=self._movable,
        )
        return lambda nodes, weight: objective(model, nodes, weight)

    @override
    def shield(self, examples: Tensor) -> ExampleGroup | None:
        """A shield in which old nodes keep the class probabilities of the previous model.

        Each counts as much as a training node, but together no more than all nodes that the
        previous model was trained on. With batches their number decides how much they count: an
        epoch takes a fixed number of them for each new training node, different ones each time.
        """
        trainer = self._trainer
        if trainer.model_before is None or not len(examples):
            return None
        model = trainer.model
        objective = KeptClasses(
            self._scores_before(), trainer.neighbourhood(), trainer.training.beta
        )
        each = min(1.0, trainer.count("train", 0, trainer.newest) / len(examples))
        return ExampleGroup(
            lambda nodes, weight: objective(model, nodes, weight),
            examples,
            torch.full((len(examples),), each, device=trainer.device),
            _SHIELDED * max(len(self._part.train), 1),
        )

    def _scores_before(self) -> Callable[[Tensor, BatchView], Tensor]:
        """Class scores by the previous model, from what the nodes see now."""
        before = self._trainer.model_before
        assert before is not None
        if self._trainer.at_once:
            scores = self._trainer.scores_by(before)  # full batch: what nodes see does not vary
            return lambda nodes, _: scores[nodes]

        @torch.no_grad()
        def of_batch(_: Tensor, seen: BatchView) -> Tensor:
            with evaluating(before):
                scores: Tensor = before(seen.x, seen.edges)
            return scores[seen.positions]

        return of_batch

    @override
    def draw_shield(self) -> tuple[Tensor, IntArray]:
        """Draw any old nodes, as their labels are not used.

        If classes arrive, an old node of unknown class may belong to one of them; then only nodes
        that the model was trained on are drawn.
        """
        trainer, part = self._trainer, self._part
        old = np.arange(part.new_nodes.start)
        if len(part.new_classes):
            old = trainer.nodes("train", 0, trainer.newest)
        count = examples_within(self.settings.shield, len(old), len(part.new_nodes), "shield")
        nodes = np.sort(trainer.choices.choice(old, count, replace=False))
        return torch.from_numpy(nodes).to(trainer.device), np.empty(0, np.int64)

    @override
    @torch.no_grad()
    def drift(self) -> dict[str, float]:
        """How far class probabilities of old nodes moved, and how many nodes changed class.

        Not known with batches, as that would take a pass over the whole network.
        """
        trainer = self._trainer
        if trainer.model_before is None or not trainer.at_once:
            return {}
        models = (trainer.model_before, trainer.model)
        old = self._part.new_nodes.start
        before, now = (trainer.scores_by(model)[:old].softmax(1) for model in models)
        new_classes = now.shape[1] - before.shape[1]
        moved = (now - F.pad(before, (0, new_classes))).abs().sum(1) / 2
        changed = before.argmax(1) != now.argmax(1)
        mean, largest, count = torch.stack([moved.mean(), moved.max(), changed.sum()]).tolist()
        return {"mean": mean, "largest": largest, "nodes": int(count)}

    @override
    def old_weights(self) -> dict[str, int]:
        """The output layer has one row per class."""
        return dict.fromkeys(("class_weight", "class_bias"), self._part.new_classes.start)


activator_of.register(NodeTrainer, NodeActivator)


class EdgeLinks(Links):
    """The old edges of a network, routed by the previous model."""

    def __init__(
        self, trainer: NodeTrainer, graph: NetworkGraph, part: NetworkPart, fan: int
    ) -> None:
        edges = graph.edges
        super().__init__(
            graph,
            graph.edges_of,
            len(edges) - len(part.edges),
            part.edges,
            fan,
            trainer.choices,
        )
        self._trainer, self._edges = trainer, edges

    @override
    def ends(self, rows: IntArray) -> IntArray:
        return self._edges[rows]

    @override
    def components(self, rows: IntArray) -> IntArray:
        """The components that either direction of an edge uses; only its two ends matter."""
        if len(rows) == 0:
            return np.empty(0, np.int64)
        trainer = self._trainer
        before = trainer.model_before
        model = before if rows[-1] < self.old and before is not None else trainer.model
        nodes = Groups(self.ends(rows).ravel())
        ends = nodes.group.reshape(-1, 2).T
        both = torch.from_numpy(np.concatenate([ends, ends[::-1]], 1)).to(trainer.device)
        x = trainer.x[torch.from_numpy(nodes.values).to(trainer.device)]
        bits = component_bits(model.edge_components(x, both).cpu().numpy())
        one: IntArray = bits[: len(rows)] | bits[len(rows) :]
        return one


def _at_ends(found: Activation, ends: IntArray) -> Activation:
    """Turn activated edges into activated nodes: a node combines what its edges have."""
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

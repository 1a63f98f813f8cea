"""Activation in knowledge graphs: old triples, routed by the attention from before the part."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.errors import UserError
from dicgrl.graph import KnowledgePart
from dicgrl.graph.arrays import IntArray, distinct, ids_in
from dicgrl.strategies.activation import Activation, Links, activate, component_bits
from dicgrl.strategies.activator import (
    EVEN,
    ActivatedExamples,
    Activator,
    activator_of,
    within_evenly,
)
from dicgrl.strategies.budget import examples_within
from dicgrl.strategies.thresholds import rank_thresholds
from dicgrl.trainers import ExampleGroup, LinkTrainer
from dicgrl.training.stepper import Objective

_SLOWEST = 0.02  # pace of an old row that may move although the part says nothing new about it
_ROUTE_BLOCK = 1 << 16  # compute the components of so many triples at a time


class LinkActivator(Activator):
    """Finds the old triples that the newest ones activate."""

    def __init__(self, trainer: LinkTrainer, settings: object) -> None:
        super().__init__(settings)
        self._trainer = trainer

    @property
    def _part(self) -> KnowledgePart:
        assert self._trainer.part is not None
        return self._trainer.part

    @override
    def activate(self, budget: int, used: IntArray | None = None) -> ActivatedExamples:
        settings, trainer = self.settings, self._trainer
        links = self._links()
        new = np.arange(links.old, len(trainer.graph.train))
        found = activate(links, links.ends(new), links.components(new), settings.orders)
        even = settings.selection == EVEN
        if even:  # what may change is drawn by merit; it is not replayed, so it costs no budget
            chosen = found.within(budget, "sample", trainer.choices)
        else:
            chosen = found.within(budget, settings.selection, trainer.choices, used)
        rows, order = chosen.rows, chosen.order
        if even:
            drawn = trainer.draw(budget, 0, trainer.newest)
            rows = within_evenly(drawn, budget, used, trainer.choices)
            order = found.orders_of(rows)
        return ActivatedExamples(
            trainer.old_examples(rows),
            self.weights_of(order, trainer.device),
            rows,
            chosen,
            found.candidates,
            len(found),
        )

    def _links(self) -> TripleLinks:
        trainer = self._trainer
        old = trainer.count("train", 0, trainer.newest)
        return TripleLinks(trainer, old, self.settings.fan, trainer.attention_before)

    @override
    def unfreeze_concerned(self, activated: ActivatedExamples) -> None:
        trainer, model, links = self._trainer, self._trainer.model, self._links()
        train, concerned = trainer.graph.train, activated.concerned
        new = np.arange(links.old, len(train))
        rows = np.concatenate([new, concerned.rows])
        bits = np.concatenate([links.components(new), concerned.common])
        triples = train[rows]
        ends = np.concatenate([triples[:, 0], triples[:, 2]])
        old = trainer.old_rows()
        spoken = {
            "entities": _component_rows(ends, np.concatenate([bits, bits]), model.count),
            "relations": triples[:, 1],
            "attention": train[new, 1],
        }
        if model.relation_count > 1:
            spoken["relations"] = _component_rows(triples[:, 1], bits, model.count)
        for name, table in model.tables().items():
            newcomers = ids_in(range(old[name], len(table)))
            movable = distinct(spoken[name], newcomers)
            table.restrict(trainer.on_device(movable), self._pace(name, movable, old[name]))

    def _pace(self, name: str, rows: IntArray, old: int) -> Tensor | None:
        """How fast rows of a table learn: an old row by the share of its facts that is new."""
        if not self.settings.pace:
            return None
        trainer, model = self._trainer, self._trainer.model
        per = {"entities": model.count, "relations": model.relation_count}.get(name, 1)
        known, new = trainer.graph.evidence(rows // per, relations=name != "entities")
        pace = np.clip(self.settings.pace * new / np.maximum(known, 1), _SLOWEST, 1)
        return torch.from_numpy(np.where(rows < old, pace, 1.0)).float().to(trainer.device)

    @override
    def objective(self, examples: Tensor) -> Objective:
        trainer = self._trainer
        every = range(trainer.model.num_entities)
        return trainer.objective_against(every, examples, attention=trainer.attention_before)

    @override
    def shield(self, examples: Tensor) -> ExampleGroup | None:
        """A shield in which old triples are compared with new entities only."""
        trainer, new = self._trainer, self._part.new_entities
        model, attention = trainer.model, trainer.attention_before
        if not len(new) or not len(examples):
            return None
        known = trainer.same_questions(examples)
        objective = trainer.link_objective(new, known)
        level = None
        if rank := self.settings.shield_rank:
            with model.attending(attention):
                level = rank_thresholds(model, examples, known, new.start, rank, trainer.generator)

        def of_batch(chosen: Tensor, weight: Tensor) -> Tensor:
            with model.attending(attention):
                below = None if level is None else level[chosen]
                return objective(model, examples[chosen], weight, below)

        entries = torch.arange(len(examples), device=trainer.device)
        return ExampleGroup(of_batch, entries, torch.ones(len(entries), device=trainer.device))

    @override
    def draw_shield(self) -> tuple[Tensor, IntArray]:
        trainer = self._trainer
        old, new = trainer.count("train", 0, trainer.newest), trainer.count("train", trainer.newest)
        count = examples_within(self.settings.shield, old, new, "shield")
        positions = trainer.draw(count, 0, trainer.newest)
        return trainer.old_examples(positions), positions

    @override
    def is_about_newcomers_only(self) -> bool:
        train, first = self._part.train, self._part.new_entities.start
        old = (train[:, 0] < first) & (train[:, 2] < first)
        return not (old & (train[:, 1] < self._part.new_relations.start)).any()


activator_of.register(LinkTrainer, LinkActivator)


def would_activate(
    trainer: LinkTrainer, triple: IntArray, orders: int, old: int | None = None
) -> tuple[Activation, IntArray, list[float]]:
    """What a triple [3] would activate if it arrived now; all its neighbours are considered.

    Args:
        trainer: Holds the graph and a disentangled model.
        triple: The triple, by ids.
        orders: Orders of neighbours.
        old: How many training triples count as old; all of them by default.

    Returns:
        The activation, the components of the triple, and their attention weights.

    Raises:
        UserError: The model is plain.
    """
    links = TripleLinks(trainer, len(trainer.graph.train) if old is None else old)
    with torch.no_grad():
        route = trainer.model.route(*trainer.on_device(triple[None]).unbind(1))
    if route is None:
        raise UserError("a plain model has no components to explain; use a disentangled one")
    chosen = route.chosen.cpu().numpy().reshape(-1)
    bits = component_bits(chosen)[None]
    found = activate(links, triple[None][:, [0, 2]], bits, orders)
    return found, chosen, route.alpha.reshape(-1).tolist()


class TripleLinks(Links):
    """The old triples of a graph.

    Args:
        trainer: Holds the graph and the model.
        old: How many training triples count as old.
        fan: How many old triples to consider per entity; 0 for all.
        attention: Attention parameters for old triples; those of the model by default.
    """

    def __init__(
        self, trainer: LinkTrainer, old: int, fan: int = 0, attention: Tensor | None = None
    ) -> None:
        train = trainer.graph.train
        super().__init__(
            trainer.graph,
            trainer.graph.triples_of,
            old,
            train[old:][:, [0, 2]],
            fan,
            trainer.choices,
        )
        self._trainer, self._train, self._attention = trainer, train, attention
        self._bits: dict[bool, IntArray] = {}

    @override
    def ends(self, rows: IntArray) -> IntArray:
        return self._train[rows][:, [0, 2]]

    @override
    def components(self, rows: IntArray) -> IntArray:
        triples = self._train[rows]
        is_old = bool(len(rows)) and bool(rows[-1] < self.old)
        model, kept = self._trainer.model, self._attention if is_old else None
        if model.attention is None:  # triples of one relation may differ in their components
            blocks = np.array_split(triples, max(len(triples) // _ROUTE_BLOCK, 1))
            return np.concatenate([self._route(block, kept) for block in blocks])
        if is_old not in self._bits:
            count = model.num_relations if kept is None else len(kept)
            one_each = np.zeros((count, 3), dtype=np.int64)
            one_each[:, 1] = np.arange(count)
            self._bits[is_old] = self._route(one_each, kept)
        return self._bits[is_old][triples[:, 1]]

    @torch.no_grad()
    def _route(self, triples: IntArray, kept: Tensor | None) -> IntArray:
        model = self._trainer.model
        with model.attending(kept):
            route = model.route(*self._trainer.on_device(triples).unbind(1))
        assert route is not None
        return component_bits(route.chosen.cpu().numpy())


def _component_rows(ids: IntArray, bits: IntArray, count: int) -> IntArray:
    """Rows id * K + k for every component k in the bits of an id."""
    which, component = ((bits[:, None] >> np.arange(count)) & 1).nonzero()
    return ids[which].astype(np.int64) * count + component

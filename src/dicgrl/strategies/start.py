"""Where new entities and relations start: where the facts about them say they should be.

An entity e that arrives with the triple (h, r, e) should be where the scorer expects it,
`Scorer.place_entity`: for TransE at h + r. It starts at the mean over its triples, component by
component, as each relation only affects the components that it uses. Chains of new entities are
resolved pass by pass. A new relation starts at the mean of what fits between its known ends
(`Scorer.place_relation`), or at what fits all of them best (`Scorer.settle_relation`). Rows without
such facts keep their random start.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch

import torch
from torch import Tensor
from torch.nn import functional as F

from dicgrl.errors import UserError
from dicgrl.models import KnowledgeModel
from dicgrl.models.knowledge import Side
from dicgrl.models.table import Table
from dicgrl.trainers import LinkTrainer, NodeTrainer, Trainer

PASSES = 3
_SPREAD = 0.7  # how far a newcomer with one triple is moved, times the deviation of known answers
_KNOWN = 1000  # most triples to estimate this deviation from
_OLD = 1000  # most old nodes to place a new class away from


@singledispatch
def start_from_neighbours(trainer: Trainer) -> None:
    """Set the new rows of the newest part from the facts about them.

    Each kind of trainer has its own function; `start_from_neighbours.register` adds one.

    Raises:
        UserError: This kind of trainer has none.
    """
    raise UserError(
        f"start=neighbours: {type(trainer).__name__} has no such start; use start=random"
    )


@start_from_neighbours.register
def _(trainer: LinkTrainer) -> None:
    part = trainer.part
    assert part is not None
    train = trainer.on_device(part.train)
    place_newcomers(trainer.model, train, part.new_entities.start, part.new_relations.start)


@start_from_neighbours.register
@torch.no_grad()
def _(trainer: NodeTrainer) -> None:
    """Give a new class the score of the best old class at its own nodes, and a usual one elsewhere.

    Of the weights that do so on average, the shortest ones are used. A class without training nodes
    keeps its random start.
    """
    part, model = trainer.part, trainer.model
    assert part is not None
    known = part.new_classes.start
    old = trainer.examples("train", 0, trainer.newest)
    new = trainer.new_classes()
    if not new or not len(old) or not known:
        return
    old = old[:: -(-len(old) // _OLD)]
    groups = [old, *new.values()]
    sizes = [len(nodes) for nodes in groups]
    vectors = trainer.vectors_of(torch.cat(groups))
    scores = F.linear(vectors, model.class_weight[:known], model.class_bias[:known])
    seen, scored = torch.split(vectors, sizes), torch.split(scores, sizes)
    elsewhere, usual = seen[0].mean(0), scored[0].mean()
    for number, at, told in zip(new, seen[1:], scored[1:], strict=True):
        place, best = at.mean(0), told.amax(1).mean()
        away = place - elsewhere
        weight = (best - usual) * away / away.square().sum().clamp(min=1e-12)
        model.class_weight[number] = weight
        model.class_bias[number] = best - weight @ place


@torch.no_grad()
def scatter_newcomers(trainer: Trainer) -> None:
    """Move new entities away from the ideal answer to the questions of their triples.

    Known answers are never quite ideal. A newcomer with one triple would therefore outrank all of
    them, also in the questions of its neighbours, and is hardly ever drawn as a negative that would
    correct this. It is moved in a random direction by a share of the average deviation of known
    answers, and less the more triples determine its place. The cost depends on the part.
    """
    part = trainer.part
    if not isinstance(trainer, LinkTrainer) or part is None or not trainer.newest:
        return
    model, new = trainer.model, part.new_entities
    if not model.scorer.pinpoints or not new:
        return
    known = trainer.old_examples(trainer.draw(_KNOWN, 0, trainer.newest))
    ends = trainer.on_device(part.train)[:, [0, 2]].flatten()
    said = torch.bincount(ends[ends >= new.start] - new.start, minlength=len(new))
    moved = said.nonzero()[:, 0]
    if not len(known) or not len(moved):
        return
    route = model.route(*known.unbind(1))
    heads, tails = (model.entity_vectors(known[:, end], route) for end in (0, 2))
    placed = model.scorer.place_entity(heads, model.relation_vectors(known[:, 1], route), "tail")
    assert placed is not None
    spread = _SPREAD * (placed - tails).square().mean().sqrt()
    rows = model.entity_rows_of(moved + new.start)
    off = torch.randn(
        len(rows), model.entities.width, generator=trainer.generator, device=trainer.device
    )
    share = said[moved].repeat_interleave(model.count)[:, None]
    model.entities.put(rows, model.entities.gather(rows) + spread * off / share)


@torch.no_grad()
def place_newcomers(
    model: KnowledgeModel, triples: Tensor, first_entity: int, first_relation: int
) -> None:
    """Set the rows of new entities and relations from the triples [m, 3] that mention them.

    Args:
        model: The model, already grown.
        triples: The new training triples.
        first_entity: The first new entity; all before it are old.
        first_relation: The first new relation; all before it are old.
    """
    entities = torch.arange(model.num_entities, device=triples.device) < first_entity
    relations = torch.arange(model.num_relations, device=triples.device) < first_relation
    for _ in range(PASSES):
        before = int(entities.sum() + relations.sum())
        _place_relations(model, triples, entities, relations)
        _place_entities(model, triples, entities, relations)
        if int(entities.sum() + relations.sum()) == before:
            break


def _place_entities(
    model: KnowledgeModel, triples: Tensor, entities: Tensor, relations: Tensor
) -> None:
    means = _Means(model.entities)
    asked = torch.zeros_like(entities)
    sides: tuple[tuple[Side, int, int], ...] = (("head", 0, 2), ("tail", 2, 0))
    for side, target, other in sides:
        usable = ~entities[triples[:, target]] & entities[triples[:, other]]
        chosen = triples[usable & relations[triples[:, 1]]]
        route = model.route(*chosen.unbind(1))
        placed = model.scorer.place_entity(
            model.entity_vectors(chosen[:, other], route),
            model.relation_vectors(chosen[:, 1], route),
            side,
        )
        if placed is None:
            return
        means.add(model.entity_rows(chosen[:, target], route), placed)
        asked[chosen[:, target]] = True
    means.store()
    entities |= asked


def _place_relations(
    model: KnowledgeModel, triples: Tensor, entities: Tensor, relations: Tensor
) -> None:
    usable = ~relations[triples[:, 1]] & entities[triples[:, 0]] & entities[triples[:, 2]]
    chosen = triples[usable]
    route = model.route(*chosen.unbind(1))
    placed = model.scorer.place_relation(
        model.entity_vectors(chosen[:, 0], route), model.entity_vectors(chosen[:, 2], route)
    )
    if placed is None:
        return
    means = _Means(model.relations, model.scorer.settle_relation)
    means.add(model.relation_rows(chosen[:, 1], route), placed)
    means.store()
    relations[chosen[:, 1]] = True


class _Means:
    """Running means of values for rows of a table; the cost depends on the number of values.

    Args:
        table: The table.
        settle: Turns means into rows; by default the means are the rows.
    """

    def __init__(self, table: Table, settle: Callable[[Tensor], Tensor] | None = None) -> None:
        self._table = table
        self._settle = settle
        self._ids: list[Tensor] = []
        self._values: list[Tensor] = []

    def add(self, ids: Tensor, said: Tensor) -> None:
        """Add values [m, n w] for rows [m, n], or [m, w] for rows [m]."""
        self._ids.append(ids.reshape(-1))
        self._values.append(said.reshape(ids.numel(), said.shape[1] // math.prod(ids.shape[1:])))

    def store(self) -> None:
        ids, group = torch.unique(torch.cat(self._ids), return_inverse=True)
        said = torch.cat(self._values)
        total = said.new_zeros(len(ids), said.shape[1]).index_add_(0, group, said)
        mean = total / torch.bincount(group, minlength=len(ids))[:, None]
        self._table.put(ids, mean if self._settle is None else self._settle(mean))

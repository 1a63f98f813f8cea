"""Compare the questions of a batch with all entities: one query each, entities read in place.

A product with some components of a vector equals a product with the whole vector if the query is
zero elsewhere. So queries of a divided ComplEx or DistMult are as long as a whole vector, and one
matrix product serves relations with any components. A distance has no such form.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dicgrl.errors import UserError
from dicgrl.models.components import Route
from dicgrl.models.gradients import Run
from dicgrl.models.knowledge import KnowledgeModel
from dicgrl.models.queries import Dot, Likeness


class Asked(NamedTuple):
    """Questions for the tails of triples, then for their heads; differentiable.

    Attributes:
        queries: The queries that all entities are compared with, [2 b, d].
        scores: Scores of the right answers, [2 b].
        likeness: How entities are compared with queries.
    """

    queries: Tensor
    scores: Tensor
    likeness: Likeness


def check_all_entities(model: KnowledgeModel) -> None:
    """Refuse a model whose questions cannot be compared with all entities at once.

    Raises:
        UserError: It cannot; the message says what can.
    """
    if (made := model.scorer.queries()) is None:
        scaled = " with normalise=true" if model.normalise else ""
        raise UserError(
            f"negatives=0 compares queries with all entities, and {model.name}{scaled} has no "
            "queries; complex, distmult, transe and rotate do, or give a number of negatives"
        )
    if model.components is None:
        return
    if model.attention is None:
        raise UserError(
            "negatives=0 needs attention=relation: otherwise each pair uses different components"
        )
    if not isinstance(made.likeness, Dot):
        raise UserError(
            f"negatives=0 compares whole vectors, but a disentangled {model.name} measures "
            "distances in some components: use components=0, or complex or distmult"
        )


def ask_all(model: KnowledgeModel, triples: Tensor, route: Route | None) -> Asked:
    """The two questions of triples [b, 3].

    Args:
        model: A model that `check_all_entities` accepts.
        triples: The triples.
        route: The components that they use.
    """
    made = model.scorer.queries()
    assert made is not None
    heads, relations, tails = triples.unbind(1)
    h, t = model.entity_vectors(heads, route), model.entity_vectors(tails, route)
    r = model.relation_vectors(relations, route)
    queries = torch.cat([made.query(h, r, "tail"), made.query(t, r, "head")])
    scores = made.likeness.of(queries, torch.cat([t, h]))
    return Asked(_whole(model, queries, route), scores, made.likeness)


def entities_between(model: KnowledgeModel, entities: range) -> Tensor:
    """Whole vectors of a range of entities, [n, d]; differentiable."""
    rows: Tensor = Run.apply(  # type: ignore[no-untyped-call]
        model.entities.anchor,
        model.entities,
        entities.start * model.count,
        entities.stop * model.count,
    )
    return rows.view(len(entities), model.length)


def _whole(model: KnowledgeModel, queries: Tensor, route: Route | None) -> Tensor:
    """Expand queries [2 b, l] to the places of their components in a whole vector, [2 b, d]."""
    if route is None:
        return queries
    chosen = torch.cat([route.chosen, route.chosen])
    parts = queries.view(*chosen.shape, model.size)
    if route.gate is not None:  # the candidate's gate
        parts = parts * torch.cat([route.gate, route.gate])[..., None]
    wide = parts.new_zeros(len(parts), model.count, model.size)
    return wide.scatter(1, chosen[..., None].expand_as(parts), parts).flatten(1)

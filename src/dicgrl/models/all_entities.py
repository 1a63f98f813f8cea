"""Compare the questions of a batch with all entities: one query each, entities read in place.

A product with a part of a vector is a product with all of it where the query is zero elsewhere. So
queries of a divided ComplEx or DistMult are as long as a whole vector, and one matrix product
serves relations of all components. A distance has no such form.
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
        queries: What all entities are compared with, [2 b, d].
        scores: Those of the answers that the triples give, [2 b].
        likeness: How entities are compared.
    """

    queries: Tensor
    scores: Tensor
    likeness: Likeness


def check_all_entities(model: KnowledgeModel) -> None:
    """Refuse a model whose questions cannot be compared with all entities at once.

    Raises:
        UserError: It cannot, and what can instead.
    """
    if (made := model.scorer.queries()) is None:
        scaled = " with normalise=true" if model.normalise else ""
        raise UserError(
            f"negatives=0 compares queries with all entities, and {model.name}{scaled} makes none; "
            "complex, distmult, transe and rotate do, or give a number of negatives"
        )
    if model.components is None:
        return
    if model.attention is None:
        raise UserError(
            "negatives=0 needs attention=relation: otherwise each pair has components of its own"
        )
    if not isinstance(made.likeness, Dot):
        raise UserError(
            f"negatives=0 compares whole vectors, and {model.name} measures distances of some "
            "components: it needs components=0, or complex or distmult"
        )


def ask_all(model: KnowledgeModel, triples: Tensor, route: Route | None) -> Asked:
    """Both questions of triples [b, 3].

    Args:
        model: One that `check_all_entities` lets pass.
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
    """Queries [2 b, l] where an entity's components lie, [2 b, d]."""
    if route is None:
        return queries
    chosen = torch.cat([route.chosen, route.chosen])
    parts = queries.view(*chosen.shape, model.size)
    if route.gate is not None:  # that of the candidate
        parts = parts * torch.cat([route.gate, route.gate])[..., None]
    wide = parts.new_zeros(len(parts), model.count, model.size)
    return wide.scatter(1, chosen[..., None].expand_as(parts), parts).flatten(1)

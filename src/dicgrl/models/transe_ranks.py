"""Counts behind the ranks of TransE on a GPU, made by `dicgrl.kernels.ranking`.

All queries of a side are one launch, whatever their relations, and nothing waits for the device.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.kernels import available
from dicgrl.models.knowledge import KnowledgeModel, Side
from dicgrl.models.transe import TransE
from dicgrl.training.known import HEAD, RELATION, TAIL, KnownAnswers


def supported(model: KnowledgeModel) -> bool:
    """Whether the kernels can rank with this model."""
    return model.is_translation and available(model.entities.rows)


def fused_counts(
    model: KnowledgeModel,
    triples: Tensor,
    side: Side,
    candidates: range,
    known: KnownAnswers,
    memory_bound: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Candidates scored higher, scored the same, and left after filtering, [n] each.

    Args:
        model: One that is `supported`.
        triples: [n, 3].
        side: What is asked for.
        candidates: Range of entities.
        known: Known answers of that side.
        memory_bound: Bytes that the mask of known answers, and a copy of the candidates, may take.
    """
    outcome = torch.zeros(3, len(triples), dtype=torch.int32, device=triples.device)
    if len(triples) and len(candidates):
        # Neighbours in this order have the same relation, so that a tile of them has one route.
        order = triples[:, RELATION].argsort() if model.attention is not None else None
        listed = triples if order is None else triples[order]
        height = max(8 * memory_bound // (len(candidates) + 31), 1)
        width = max(memory_bound // (4 * model.dim), 1)
        counted = outcome if order is None else torch.zeros_like(outcome)
        for first in range(0, len(listed), height):
            _add_block(
                model, listed[first : first + height], side, candidates, width, known,
                counted[:, first : first + height],
            )  # fmt: skip
        if order is not None:
            outcome[:, order] = counted
    higher, equal, filtered = outcome.long()
    answers = triples[:, TAIL if side == "tail" else HEAD]
    among = (answers >= candidates.start) & (answers < candidates.stop)
    return higher, equal, len(candidates) - filtered + (~among).long()


def _add_block(
    model: KnowledgeModel,
    triples: Tensor,
    side: Side,
    candidates: range,
    width: int,
    known: KnownAnswers,
    counted: Tensor,
) -> None:
    from dicgrl.kernels import ranking  # needs Triton

    assert isinstance(model.scorer, TransE)
    queries, chosen = model.translation_queries(triples, side)
    answers = triples[:, TAIL if side == "tail" else HEAD].contiguous()
    entities = model.entities.rows.view(model.num_entities, -1)
    routed, p = (chosen, model.size), model.scorer.p
    threshold = ranking.truth(queries, entities, answers, *routed, p)
    tiles = _tiles(triples, model.num_relations if model.attention is not None else 0)
    first, last = known.find(triples)
    for start in range(candidates.start, candidates.stop, width):
        some = range(start, min(start + width, candidates.stop))
        bits, filtered = ranking.mask(first, last, known.answers, answers, some)
        counted[2] += filtered
        vectors = entities[some.start : some.stop]
        ranking.count(
            queries,
            vectors,
            threshold,
            bits,
            *routed,
            tiles,
            counted[0],
            counted[1],
            model.scorer.p,
        )


def _tiles(triples: Tensor, num_relations: int) -> tuple[Tensor, Tensor]:
    """First triple of each tile and the one after its last; with relations, each has only one.

    How many tiles the relations need is not known without waiting for the device, but at most
    one more for each relation: those that are too many are empty.
    """
    from dicgrl.kernels.ranking import QUERIES

    count = len(triples)
    if not num_relations:
        first = torch.arange(0, count, QUERIES, device=triples.device)
        return first, (first + QUERIES).clamp(max=count)
    each = torch.zeros(num_relations, dtype=torch.long, device=triples.device)
    each.index_add_(0, triples[:, RELATION], torch.ones_like(triples[:, RELATION]))
    stop = each.cumsum(0)
    needed = (each + QUERIES - 1) // QUERIES
    up_to = needed.cumsum(0)
    most = (count + QUERIES - 1) // QUERIES + min(num_relations, count)
    tile = torch.arange(most, device=triples.device)
    relation = torch.searchsorted(up_to, tile, right=True).clamp_(max=num_relations - 1)
    first = (stop - each)[relation] + (tile - (up_to - needed)[relation]) * QUERIES
    return first, torch.minimum(first + QUERIES, stop[relation])

"""What newcomers may not pass: in each question of an old triple the score of a given rank.

A triple asks for its head and for its tail. Old entities that are not known to answer are ranked by
the model as it was, and the score of the given rank is the question's bar: a newcomer behind it
leaves the first answers as they are. The rank is estimated from entities that are drawn, so that
the cost follows the triples and not the number of entities.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.evaluation.ranks import MEMORY_BOUND
from dicgrl.models import KnowledgeModel
from dicgrl.models.mode import evaluating
from dicgrl.training import NegativeSampler

_DRAWN = 1024  # entities that a rank is estimated from
_OPEN = 1e9  # bar of a question that every old entity answers: newcomers are welcome


@torch.no_grad()
def bars(model: KnowledgeModel, triples: Tensor, sampler: NegativeSampler, rank: int) -> Tensor:
    """Scores [n, 2] of about that rank in the questions of triples [n, 3], the head's first.

    Args:
        model: The model.
        triples: Old triples.
        sampler: Draws old entities that do not answer a triple's question.
        rank: From 1, among all entities that the sampler may draw. No rank is told from one of a
            thousandth of these, which is about that of the best one drawn.
    """
    place = round((rank - 0.5) * _DRAWN / len(sampler.entities))
    place = min(max(place, 1), _DRAWN)
    height = max(MEMORY_BOUND // (2 * _DRAWN * model.link_bytes()), 1)
    found = []
    with evaluating(model):
        for block in torch.split(triples, height):
            others = sampler.corrupt(block, 2 * _DRAWN)
            _, scores, _ = model.score_links(block, *(ids.clamp(min=0) for ids in others))
            scores = scores.masked_fill(torch.cat(others, 1) < 0, _OPEN)
            found.append(scores.view(len(block), 2, _DRAWN).kthvalue(_DRAWN + 1 - place).values)
    return torch.cat(found)

"""How far triples that were taken back stand out from others that were never known."""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.models.knowledge import KnowledgeModel
from dicgrl.training.known import HEAD, RELATION, TAIL
from dicgrl.training.losses import weighted_mean

OTHERS = 4  # other heads, and other tails, for each triple


class UnlearnedLinks:
    """By how much the scores of removed triples exceed those of comparable ones.

    Comparable triples replace the head or the tail by another one that is usual for the relation.
    A few are drawn from training triples for each removed triple, once. A triple that scores no
    higher than their mean is left alone: it was taken back, so it is unknown, not false.

    Args:
        model: Scores the triples.
        gone: The removed triples, [n, 3].
        known: Training triples, [m, 3].
        generator: Source of randomness, on the device of the triples.
    """

    def __init__(
        self, model: KnowledgeModel, gone: Tensor, known: Tensor, generator: torch.Generator
    ) -> None:
        self._model, self._gone = model, gone
        by_relation = known[known[:, RELATION].argsort(stable=True)]
        of_known, asked = by_relation[:, RELATION].contiguous(), gone[:, RELATION].contiguous()
        first = torch.searchsorted(of_known, asked)
        count = torch.searchsorted(of_known, asked, right=True) - first
        # For a relation without triples, any ends are used.
        first, count = torch.where(count > 0, first, 0), torch.where(count > 0, count, len(known))
        share = torch.rand(2, len(gone), OTHERS, generator=generator, device=gone.device)
        place = first[:, None] + (share * count[:, None]).long()
        drawn = by_relation[place.clamp(max=len(known) - 1)]  # [2, n, others, 3]
        self._heads, self._tails = drawn[0, ..., HEAD], drawn[1, ..., TAIL]

    def __call__(self, rows: Tensor, weight: Tensor) -> Tensor:
        """The weighted mean over triples, given by positions [b], with weights [b]."""
        head, relation, tail = self._gone[rows].unbind(1)
        with torch.no_grad():
            levels = self._model.score(self._heads[rows], relation[:, None], tail[:, None])
            levels += self._model.score(head[:, None], relation[:, None], self._tails[rows])
            level = levels.mean(1) / 2
        excess = (self._model.score(head, relation, tail) - level).relu()
        return weighted_mean(excess, weight)

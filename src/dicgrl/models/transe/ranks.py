"""Counts behind the ranks of TransE on a GPU, made by `dicgrl.kernels.transe_ranks`.

All questions of a side are one launch, whatever their relations, and nothing waits for the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.models.fast import FastCounts, Questions


@dataclass(frozen=True, slots=True)
class TranslationCounts(FastCounts):
    """TransE's fast path to ranks; it needs kernels.

    Attributes:
        p: Norm of the distance, 1 or 2.
    """

    p: int

    @override
    def count(
        self, questions: Questions, candidates: Sequence[range]
    ) -> tuple[Tensor, Tensor, Tensor]:
        from dicgrl.kernels import ranking, transe_ranks  # need Triton

        entities, answers, chosen = questions.entities, questions.answers, questions.chosen
        queries, routed = _queries(questions), (chosen, questions.size)
        threshold = transe_ranks.truth(queries, entities, answers, *routed, self.p)
        num_relations = 0 if chosen is None else questions.num_relations
        tiles = ranking.tiles(questions.relation_ids, num_relations, transe_ranks.QUERIES)
        counts = torch.zeros(3, len(answers), dtype=torch.int32, device=answers.device)
        for some in candidates:
            bits, known = ranking.mask(*questions.known, answers, some)
            counts[2] += known
            vectors = entities[some.start : some.stop]
            transe_ranks.count(
                queries, vectors, threshold, bits, *routed, tiles, counts[0], counts[1], self.p
            )
        higher, equal, known = counts
        return higher, equal, known

    @override
    def scores(self, questions: Questions, entities: Tensor) -> Tensor:
        from dicgrl.kernels import transe_ranks  # needs Triton

        routed = (questions.chosen, questions.size)
        queries = _queries(questions)
        return transe_ranks.truth(queries, questions.entities, entities, *routed, self.p).neg_()


def _queries(questions: Questions) -> Tensor:
    """Where the answers should lie, [q, l]."""
    if questions.side == "tail":
        return questions.given + questions.relations
    return questions.given - questions.relations

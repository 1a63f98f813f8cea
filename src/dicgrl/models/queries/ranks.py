"""Counts behind the ranks of query decoders on a GPU, made by `dicgrl.kernels.query_ranks`.

All questions of a side are one launch, whatever their relations, and nothing waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.kernels.batch import Compare
from dicgrl.models.fast import FastCounts, Questions, Side


@dataclass(frozen=True, slots=True)
class QueryCounts(FastCounts):
    """A query decoder's fast path to ranks; it needs kernels.

    Attributes:
        query: Makes queries of given ends, relations and the side that is asked for.
        compare: How candidates are compared with them.
    """

    query: Callable[[Tensor, Tensor, Side], Tensor]
    compare: Compare

    @override
    def count(
        self, questions: Questions, candidates: Sequence[range]
    ) -> tuple[Tensor, Tensor, Tensor]:
        from dicgrl.kernels import query_ranks, ranking  # need Triton

        entities, answers, chosen = questions.entities, questions.answers, questions.chosen
        queries, routed = self._queries(questions), (chosen, questions.size)
        threshold = query_ranks.truth(queries, entities, answers, *routed, self.compare)
        num_relations = 0 if chosen is None else questions.num_relations
        tiles = ranking.tiles(questions.relation_ids, num_relations, query_ranks.QUERIES)
        counts = torch.zeros(3, len(answers), dtype=torch.int32, device=answers.device)
        for some in candidates:
            bits, known = ranking.mask(*questions.known, answers, some)
            counts[2] += known
            vectors = entities[some.start : some.stop]
            query_ranks.count(
                queries, vectors, threshold, bits, *routed, tiles, counts[0], counts[1],
                self.compare,
            )  # fmt: skip
        higher, equal, known = counts
        return higher, equal, known

    @override
    def scores(self, questions: Questions, entities: Tensor) -> Tensor:
        from dicgrl.kernels import query_ranks  # needs Triton

        routed = (questions.chosen, questions.size)
        queries, vectors = self._queries(questions), questions.entities
        return query_ranks.truth(queries, vectors, entities, *routed, self.compare).neg_()

    def _queries(self, questions: Questions) -> Tensor:
        return self.query(questions.given, questions.relations, questions.side)

"""Query decoders on a batch of triples and their negatives, with gradients that are written down.

Queries and the gradients of what they are made of are [b, l] and made here; what would be [b, m, l]
is left to `dicgrl.kernels.query_batch`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.kernels.batch import Batch, Compare
from dicgrl.models.fast import FastBatch, Side

_SIDES: tuple[Side, Side] = ("head", "tail")  # in the order of the replacements


class _Vectors(NamedTuple):
    """What the queries of a batch are made of, and these.

    Attributes:
        relations: [b, w].
        ends: The tails, which stay where heads are replaced, and the heads, [b, l] each.
        queries: What heads are compared with, and what tails are, [2, b, l].
    """

    relations: Tensor
    ends: tuple[Tensor, Tensor]
    queries: Tensor


@dataclass(frozen=True, slots=True)
class QueryBatch(FastBatch):
    """A query decoder's fast path through a training batch; it needs kernels.

    Attributes:
        query: Makes queries of given ends, relations and the side that is asked for.
        gradients: Gradients of ends and relations, from those of the queries.
        compare: How candidates are compared with queries.
    """

    query: Callable[[Tensor, Tensor, Side], Tensor]
    gradients: Callable[[Tensor, Tensor, Side, Tensor], tuple[Tensor, Tensor]]
    compare: Compare

    @property
    @override
    def negative_bytes(self) -> int:
        return 20  # its id twice and its score

    @override
    def scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        from dicgrl.kernels import query_batch  # needs Triton

        return query_batch.scores(batch, self._vectors(batch).queries, self.compare)

    @override
    def add_gradients(
        self,
        batch: Batch,
        scores: tuple[Tensor, Tensor],
        upstream: tuple[Tensor, Tensor],
        into: tuple[Tensor, Tensor | None],
        gated: bool,
    ) -> Tensor | None:
        from dicgrl.kernels import query_batch  # needs Triton

        relations, ends, queries = self._vectors(batch)
        d_entities, d_relations = into
        d_queries, d_gate = query_batch.scatter(
            batch, queries, self.compare, upstream, d_entities, gated
        )
        heads, _, tails = batch.triples.unbind(1)
        summed = torch.zeros_like(relations)
        for side, ids, end, d_query in zip(_SIDES, (tails, heads), ends, d_queries, strict=True):
            d_end, d_relation = self.gradients(end, relations, side, d_query)
            summed += d_relation
            _add(d_entities, batch.entity_rows(ids), d_end)
            if d_gate is not None:
                d_gate += _by_part(end * d_end, d_gate.shape[1])
        if d_relations is not None:
            _add(d_relations, batch.relation_rows(), summed)
        if d_gate is not None and batch.divided:
            d_gate += _by_part(relations * summed, d_gate.shape[1])
        return d_gate

    def _vectors(self, batch: Batch) -> _Vectors:
        heads, _, tails = batch.triples.unbind(1)
        relations = batch.relations[batch.relation_rows()].flatten(1)
        t, h = (batch.entities[batch.entity_rows(ids)].flatten(1) for ids in (tails, heads))
        made = [self.query(t, relations, "head"), self.query(h, relations, "tail")]
        return _Vectors(relations, (t, h), torch.stack(made))


def _add(into: Tensor, rows: Tensor, gradients: Tensor) -> None:
    """Add gradients [b, l] to the rows [b] or [b, n] that the vectors are made of."""
    into.index_add_(0, rows.reshape(-1), gradients.reshape(-1, into.shape[1]))


def _by_part(values: Tensor, parts: int) -> Tensor:
    """Sums over each component of [b, l], [b, n]."""
    return values.view(len(values), parts, -1).sum(-1)

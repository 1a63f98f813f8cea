"""The fast path of query decoders through a training batch: queries, comparison, chain rule.

The decoder turns gradients of the queries, [b, l], into those of their ends and relations. All
tensors of shape [b, m, l] are handled by the comparison: `dicgrl.kernels.query_batch` on a GPU with
Triton, otherwise `dicgrl.models.queries.comparison`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.kernels.batch import Batch, vectors_of
from dicgrl.models.fast import FastBatch, Side
from dicgrl.models.queries import comparison, products
from dicgrl.models.queries.likeness import Likeness, by_part


class Decoder(Protocol):
    """The part of `QueryScorer` that is needed here."""

    likeness: Likeness
    linear: ClassVar[bool]

    def query(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        """The queries that answers are compared with, [b, l]."""

    def query_gradients(
        self, given: Tensor, relation: Tensor, side: Side, gradient: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradients of the end and the relation, from that of the query."""


@dataclass(frozen=True, slots=True)
class QueryBatch(FastBatch):
    """Scores triples and their negatives with queries.

    Attributes:
        scorer: The decoder.
        kernels: Whether to use kernels, which must support its likeness.
        blocks: Whether to process few vectors at a time. Not if PyTorch runs on a GPU, where this
            would only add launches.
    """

    handles_places: ClassVar[bool] = True

    scorer: Decoder
    kernels: bool
    blocks: bool

    @property
    @override
    def leaves_out(self) -> bool:
        return not self.kernels

    @property
    @override
    def negative_bytes(self) -> int | None:
        return 20 if self.blocks else None  # its id twice and its score

    @property
    @override
    def shares(self) -> bool:
        """Products become matrix products on any device; on a CPU distances are faster, too."""
        compare = self.scorer.likeness.compare
        return compare == "dot" or (self.blocks and not self.kernels and compare in ("l1", "l2"))

    def _by_matrices(self, batch: Batch) -> bool:
        return batch.share > 1 and self.scorer.likeness.compare == "dot"

    @override
    def scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        likeness, asked = self.scorer.likeness, _Asked.of(batch)
        queries = asked.queries(self.scorer)
        shared = self._by_matrices(batch)
        if self.kernels and not shared:
            from dicgrl.kernels import query_batch  # needs Triton

            assert likeness.compare is not None
            return query_batch.scores(batch, torch.stack(queries), likeness.compare)
        if shared:
            negative = products.scores(batch, queries)
        else:
            negative = comparison.scores(batch, likeness, queries)
        return likeness.block_(asked.tails[:, None].clone(), queries[1])[:, 0], negative

    @override
    def add_gradients(
        self,
        batch: Batch,
        scores: tuple[Tensor, Tensor],
        upstream: tuple[Tensor, Tensor],
        into: tuple[Tensor, Tensor | None],
        gated: bool,
    ) -> Tensor | None:
        asked = _Asked.of(batch)
        queries = asked.queries(self.scorer)
        parts = (1 if batch.chosen is None else batch.chosen.shape[1]) if gated else 0
        shared = self._by_matrices(batch)
        if self.kernels and not shared:
            return self._add_by_kernels(batch, asked, queries, upstream, into, parts)
        scorer, likeness = self.scorer, self.scorer.likeness
        pulls = [likeness.pull(*each) for each in zip(scores, upstream, strict=True)]
        d_gate: Tensor | None = None
        if shared:
            d_queries = products.add_gradients(batch, queries, pulls[1], into[0])
        else:
            d_queries, d_gate = comparison.add_gradients(
                batch, likeness, queries, pulls[1], into[0], parts
            )
        # The triple itself: its tail is compared like a replaced one.
        own = likeness.slopes_(asked.tails[:, None].clone(), queries[1], pulls[0][:, None], parts)
        assert own.queries is not None
        d_queries[1] += own.queries
        gradients = asked.gradients(scorer, d_queries)
        if d_gate is not None and own.gates is not None:
            d_gate += own.gates
            if not scorer.linear:  # otherwise ends and relation together pull as the queries do
                d_gate += asked.pull(gradients, parts)
                for query, gradient in zip(queries, d_queries, strict=True):
                    d_gate -= by_part(query * gradient, parts)
        gradients._replace(tails=own.candidates[:, 0] + gradients.tails).add_to(batch, into)
        return d_gate

    def _add_by_kernels(
        self,
        batch: Batch,
        asked: _Asked,
        queries: tuple[Tensor, Tensor],
        upstream: tuple[Tensor, Tensor],
        into: tuple[Tensor, Tensor | None],
        parts: int,
    ) -> Tensor | None:
        from dicgrl.kernels import query_batch  # needs Triton

        assert self.scorer.likeness.compare is not None
        d_queries, d_gate = query_batch.scatter(
            batch, torch.stack(queries), self.scorer.likeness.compare, upstream, into[0], parts > 0
        )
        gradients = asked.gradients(self.scorer, d_queries.unbind(0))
        gradients.add_to(batch, into)
        return None if d_gate is None else d_gate + asked.pull(gradients, parts)


class _Asked(NamedTuple):
    """Vectors of the triples of a batch, or their gradients: [b, l] each, [b, w] of relations."""

    heads: Tensor
    relations: Tensor
    tails: Tensor

    @classmethod
    def of(cls, batch: Batch) -> _Asked:
        heads, _, tails = batch.triples.unbind(1)
        h, t = (batch.vectors(batch.entity_rows(end)) for end in (heads, tails))
        return cls(h, vectors_of(batch.relations, batch.relation_rows()), t)

    def queries(self, scorer: Decoder) -> tuple[Tensor, Tensor]:
        """The queries that heads, and that tails, are compared with, [b, l] each."""
        return (
            scorer.query(self.tails, self.relations, "head"),
            scorer.query(self.heads, self.relations, "tail"),
        )

    def gradients(self, scorer: Decoder, d_queries: Sequence[Tensor]) -> _Asked:
        """Gradients of the vectors, from those of the queries."""
        d_tails, of_head = scorer.query_gradients(self.tails, self.relations, "head", d_queries[0])
        d_heads, of_tail = scorer.query_gradients(self.heads, self.relations, "tail", d_queries[1])
        return _Asked(d_heads, of_tail + of_head, d_tails)

    def pull(self, gradients: _Asked, parts: int) -> Tensor:
        """Gradients of the components' gates through these vectors, [b, n]."""
        ends = self.heads * gradients.heads + self.tails * gradients.tails
        return by_part(ends, parts) + by_part(self.relations * gradients.relations, parts)

    def add_to(self, batch: Batch, into: tuple[Tensor, Tensor | None]) -> None:
        """Add gradients to those of the tables' rows."""
        heads, _, tails = batch.triples.unbind(1)
        for end, gradient in ((heads, self.heads), (tails, self.tails)):
            rows = batch.places(batch.entity_rows(end).reshape(-1))
            into[0].index_add_(0, rows, gradient.reshape(-1, into[0].shape[1]))
        if into[1] is not None:
            rows = batch.relation_rows().reshape(-1)
            into[1].index_add_(0, rows, self.relations.reshape(-1, into[1].shape[1]))

"""Query decoders: a question becomes a query, and a candidate's score is how well it fits.

For (h, r, ?) the query is made from h and r, for (?, r, t) from t and r, and both give the triple
the same score: phi(q_tail, t) = phi(q_head, h). So a decoder is a `query` and a `Likeness`.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.kernels import available
from dicgrl.models.fast import FastBatch, FastCounts, Queries, Side
from dicgrl.models.queries.batch import QueryBatch
from dicgrl.models.queries.likeness import Likeness
from dicgrl.models.queries.ranks import MatrixCounts, QueryCounts
from dicgrl.models.scorer import Scorer, depth


class QueryScorer(Scorer):
    """Base class of scorers with queries.

    A subclass that overrides `query` does not inherit what depends on the old query.

    Attributes:
        likeness: How well a candidate fits a query.
        linear: Whether a query is jointly linear in end and relation, like a translation.

    Example:
        >>> from dicgrl.models.queries import Norm
        >>> class Mirror(QueryScorer, name="mirror-of-the-docs"):
        ...     likeness = Norm(1)
        ...     def query(self, given, relation, side):
        ...         return relation - given
        >>> ones = torch.ones(2, 3)
        >>> Mirror(3).score(ones, ones, ones)
        tensor([-3., -3.])
    """

    likeness: Likeness
    linear: ClassVar[bool] = False

    def __init_subclass__(cls, name: str | None = None) -> None:
        super().__init_subclass__(name)
        for known in ("query_gradients", "linear", "pinpoints"):
            if depth(cls, "query") < depth(cls, known):
                setattr(cls, known, getattr(QueryScorer, known))

    def query(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        """The queries that the answers of questions are compared with, [..., dim].

        Args:
            given: Vectors of the ends that are known, [..., dim].
            relation: Vectors of the relations, [..., w].
            side: The end that is asked for.
        """
        raise NotImplementedError

    def query_gradients(
        self, given: Tensor, relation: Tensor, side: Side, gradient: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradients of `given` and `relation`, [b, ...] each, from that of the query, [b, dim].

        Uses autograd unless overridden.
        """
        with torch.enable_grad():
            ends = given.detach().requires_grad_(), relation.detach().requires_grad_()
            d_given, d_relation = torch.autograd.grad(self.query(*ends, side), ends, gradient)
        return d_given, d_relation

    @override
    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return self.likeness.of(self.query(head, relation, "tail"), tail)

    @override
    def score_tails(self, head: Tensor, relation: Tensor, tails: Tensor) -> Tensor:
        return self.likeness.matrix(self.query(head, relation, "tail"), tails)

    @override
    def score_heads(self, heads: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return self.likeness.matrix(self.query(tail, relation, "head"), heads)

    @override
    def pair_bytes(self) -> int:
        """Only the scores themselves are stored."""
        return 4

    @override
    def queries(self) -> Queries | None:
        return Queries(self.query, self.likeness)

    @override
    def fast_batch(self, rows: Tensor) -> FastBatch:
        kernels = self.likeness.compare is not None and available(rows)
        return QueryBatch(self, kernels, blocks=kernels or not rows.is_cuda)

    @override
    def fast_counts(self, rows: Tensor) -> FastCounts | None:
        if self.likeness.compare is not None and available(rows):
            return QueryCounts(self.query, self.likeness.compare)
        return MatrixCounts(self.query, self.likeness)

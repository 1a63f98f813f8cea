"""TransE: f = -||h + r - t||_p (Bordes et al. 2013; equation 2 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from typing_extensions import override

from dicgrl.common.options import option
from dicgrl.kernels import available
from dicgrl.models.fast import FastBatch, FastCounts, Side
from dicgrl.models.queries import Norm, QueryScorer
from dicgrl.models.scorer import ScorerSettings
from dicgrl.models.transe.batch import TranslationBatch


class TransE(QueryScorer, name="transe"):
    """A relation is a translation; the score is the negative distance.

    Args:
        dim: Length of the vectors.
        p: Norm of the distance, 1 or 2.

    Example:
        >>> import torch
        >>> head, relation, tail = torch.tensor([[1.0, 2.0], [1.0, 1.0], [2.0, 5.0]])
        >>> TransE(2, p=1).score(head, relation, tail)
        tensor(-2.)
    """

    linear = True
    pinpoints = True

    @dataclass(frozen=True)
    class Settings(ScorerSettings):
        """Settings of TransE."""

        p: int = option(1, "Norm of TransE's distance, 1 or 2.", choices=(1, 2))

    def __init__(self, dim: int, p: int = 1) -> None:
        super().__init__(dim)
        self.p = self.Settings(p).p
        self.likeness = Norm(self.p)

    @override
    def query(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        return given + relation if side == "tail" else given - relation

    @override
    def query_gradients(
        self, given: Tensor, relation: Tensor, side: Side, gradient: Tensor
    ) -> tuple[Tensor, Tensor]:
        return gradient, gradient if side == "tail" else -gradient

    @override
    def score_relations(self, head: Tensor, relations: Tensor, tail: Tensor) -> Tensor:
        if type(self).query is not TransE.query:
            return super().score_relations(head, relations, tail)
        return self.likeness.matrix(tail - head, relations)

    @override
    def place_entity(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        return self.query(given, relation, side)

    @override
    def place_relation(self, head: Tensor, tail: Tensor) -> Tensor:
        return tail - head

    @override
    def fast_batch(self, rows: Tensor) -> FastBatch:
        # Its own kernels compute the query, too, so a subclass with another query cannot use them.
        if available(rows) and type(self).query is TransE.query:
            return TranslationBatch(self.p)
        return super().fast_batch(rows)

    @override
    def fast_counts(self, rows: Tensor) -> FastCounts | None:
        # Sums and differences round the same everywhere, so that the generic path can rank.
        return super().fast_counts(rows) if available(rows) else None

"""What product decoders have in common: f is linear in the head, the relation and the tail."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.common.options import option
from dicgrl.models.fast import Side
from dicgrl.models.queries.likeness import Dot
from dicgrl.models.queries.scorer import QueryScorer
from dicgrl.models.scorer import Regulariser, ScorerSettings

_SPREAD = 0.05  # standard deviation of initial values; larger ones overfit

_MODEST = 0.7  # length of a newcomer relative to its neighbour, chosen on films
_RIDGE = 0.1


@dataclass(frozen=True)
class ProductSettings(ScorerSettings):
    """Settings of product decoders."""

    n3: float = option(
        0.05, "Weight of N3 in the loss: the cubes of all numbers that a triple uses.", least=0
    )


class ProductScorer(QueryScorer):
    """A sum of products of the three vectors' numbers.

    Args:
        dim: Length of the vectors.
        n3: Weight of the regulariser (Lacroix et al. 2018).
    """

    Settings: ClassVar[type[ScorerSettings]] = ProductSettings
    likeness = Dot()
    defaults: ClassVar[Mapping[str, Any]] = {"loss": "softmax", "margin": 0.0}

    def __init__(self, dim: int, n3: float = 0.05) -> None:
        super().__init__(dim)
        self.n3 = ProductSettings(n3).n3

    @abstractmethod
    def moduli(self, vectors: Tensor) -> Tensor:
        """Absolute values of the numbers in vectors [..., l]."""

    @override
    def initial(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        return torch.empty(count, width).normal_(0, _SPREAD, generator=generator)

    @override
    def place_entity(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        """The direction of the query, which fits best for its length, but shorter.

        A longer vector would outscore old answers with no more evidence than one fact.
        """
        query = self.query(given, relation, side)
        return query * (_MODEST * _length(given) / _length(query).clamp(min=1e-12))

    @override
    def score_relations(self, head: Tensor, relations: Tensor, tail: Tensor) -> Tensor:
        # The score is linear in the relation, and this is its gradient.
        query = self.query_gradients(head, relations[:1].expand_as(head), "tail", tail)[1]
        return self.likeness.matrix(query, relations)

    @override
    def regulariser(self) -> Regulariser | None:
        return self._cubes if self.n3 else None

    def _cubes(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        each = (self.moduli(vectors).pow(3).sum(-1) for vectors in (head, relation, tail))
        return self.n3 * torch.stack(list(each)).sum(0)


def ridge(squares: Tensor) -> Tensor:
    """Squares [..., l] to divide by, plus a constant that damps coordinates with little evidence.

    Least squares of h r - t over all triples give r = sum t conj(h) / sum |h|^2.
    """
    return squares + _RIDGE * squares.mean(-1, keepdim=True) + 1e-12


def _length(vectors: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return length

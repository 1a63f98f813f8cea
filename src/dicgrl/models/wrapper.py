"""A scorer around another one, to which everything is delegated that a subclass does not change."""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.models.fast import Side
from dicgrl.models.scorer import Regulariser, Scorer


class Wrapper(Scorer):
    """Delegates everything to another scorer.

    Args:
        inner: The scorer.
    """

    def __init__(self, inner: Scorer) -> None:
        super().__init__(inner.dim)
        self.inner = inner

    @override
    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return self.inner.score(head, relation, tail)

    @override
    def score_tails(self, head: Tensor, relation: Tensor, tails: Tensor) -> Tensor:
        return self.inner.score_tails(head, relation, tails)

    @override
    def score_heads(self, heads: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return self.inner.score_heads(heads, relation, tail)

    @override
    def score_relations(self, head: Tensor, relations: Tensor, tail: Tensor) -> Tensor:
        return self.inner.score_relations(head, relations, tail)

    @override
    def pair_bytes(self) -> int:
        return self.inner.pair_bytes()

    @override
    def relation_width(self, width: int) -> int:
        return self.inner.relation_width(width)

    @override
    def initialise(self, generator: torch.Generator) -> None:
        self.inner.initialise(generator)

    @override
    def initial(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        return self.inner.initial(count, width, generator)

    @override
    def initial_relations(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        return self.inner.initial_relations(count, width, generator)

    @override
    def place_entity(self, given: Tensor, relation: Tensor, side: Side) -> Tensor | None:
        return self.inner.place_entity(given, relation, side)

    @override
    def place_relation(self, head: Tensor, tail: Tensor) -> Tensor | None:
        return self.inner.place_relation(head, tail)

    @override
    def settle_relation(self, mean: Tensor) -> Tensor:
        return self.inner.settle_relation(mean)

    @override
    def regulariser(self) -> Regulariser | None:
        return self.inner.regulariser()

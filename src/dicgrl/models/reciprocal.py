"""Inverse relations: questions about heads have their own relation (Lacroix et al. 2018).

A relation's row is [r, r']: (h, r, ?) is answered by r, and (?, r, t) is asked as (t, r', ?). The
score of a triple is that of its question about the tail; training learns it in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.errors import UserError
from dicgrl.models.components import Components
from dicgrl.models.fast import FastCounts, Queries, Questions, Side
from dicgrl.models.scorer import Regulariser, Scorer
from dicgrl.models.unit import UnitVectors
from dicgrl.models.wrapper import Wrapper


def check_plain(components: Components | None) -> None:
    """Refuse disentangled models, as inverses are not supported for each component.

    Raises:
        UserError: The model is disentangled.
    """
    if components is not None:
        raise UserError("inverses=true needs a plain model: components=0")


class Reciprocal(Wrapper):
    """Wraps a scorer and gives its relations inverses."""

    @override
    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return self.inner.score(head, forward(relation), tail)

    def score_inverse(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """Scores of the same triples through their inverse relations: of (tail, r', head)."""
        return self.inner.score(tail, backward(relation), head)

    @override
    def score_tails(self, head: Tensor, relation: Tensor, tails: Tensor) -> Tensor:
        return self.inner.score_tails(head, forward(relation), tails)

    @override
    def score_heads(self, heads: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return self.inner.score_tails(tail, backward(relation), heads)

    @override
    def score_relations(self, head: Tensor, relations: Tensor, tail: Tensor) -> Tensor:
        return self.inner.score_relations(head, forward(relations), tail)

    @override
    def relation_width(self, width: int) -> int:
        return 2 * self.inner.relation_width(width)

    @override
    def initial_relations(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        halves = (self.inner.initial_relations(count, width // 2, generator) for _ in range(2))
        return torch.cat(list(halves), 1)

    @override
    def place_entity(self, given: Tensor, relation: Tensor, side: Side) -> Tensor | None:
        return self.inner.place_entity(
            given, forward(relation) if side == "tail" else backward(relation), "tail"
        )

    @override
    def place_relation(self, head: Tensor, tail: Tensor) -> Tensor | None:
        there = self.inner.place_relation(head, tail)
        back = self.inner.place_relation(tail, head)
        return None if there is None or back is None else torch.cat([there, back], -1)

    @override
    def settle_relation(self, mean: Tensor) -> Tensor:
        halves = (self.inner.settle_relation(half(mean)) for half in (forward, backward))
        return torch.cat(list(halves), -1)

    @override
    def regulariser(self) -> Regulariser | None:
        inner = self.inner.regulariser()
        if inner is None:
            return None

        def both(head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
            return (
                inner(head, forward(relation), tail) + inner(tail, backward(relation), head)
            ) / 2

        return both

    @override
    def queries(self) -> Queries | None:
        inner = self.inner.queries()
        if inner is None:
            return None

        def asked(given: Tensor, relation: Tensor, side: Side) -> Tensor:
            half = forward if side == "tail" else backward
            return inner.query(given, half(relation), "tail")

        return Queries(asked, inner.likeness)

    @override
    def fast_counts(self, rows: Tensor) -> FastCounts | None:
        inner = self.inner.fast_counts(rows)
        return None if inner is None else ReciprocalCounts(inner)


@dataclass(frozen=True, slots=True)
class ReciprocalCounts(FastCounts):
    """Counts by another path, which is only asked for tails.

    Attributes:
        inner: The path.
    """

    inner: FastCounts

    @override
    def count(
        self, questions: Questions, candidates: Sequence[range]
    ) -> tuple[Tensor, Tensor, Tensor]:
        return self.inner.count(_asked(questions), candidates)

    @override
    def scores(self, questions: Questions, entities: Tensor) -> Tensor:
        return self.inner.scores(_asked(questions), entities)


def formed(
    scorer: Scorer, components: Components | None, *, normalise: bool, inverses: bool
) -> Scorer:
    """Wrap a scorer so that vectors have length 1, relations have inverses, or both."""
    if normalise:
        scorer = UnitVectors(scorer)
    if not inverses:
        return scorer
    check_plain(components)
    return Reciprocal(scorer)


def forward(relation: Tensor) -> Tensor:
    """The vectors r of rows [r, r']."""
    return relation[..., : relation.shape[-1] // 2]


def backward(relation: Tensor) -> Tensor:
    """The vectors r' of rows [r, r']."""
    return relation[..., relation.shape[-1] // 2 :]


def _asked(questions: Questions) -> Questions:
    half = forward if questions.side == "tail" else backward
    return replace(questions, side="tail", relations=half(questions.relations).contiguous())

"""Vectors that are scaled to length 1 for scoring; stored vectors may have any length.

So a score only depends on directions: f(h / |h|, r / |r|, t / |t|). The published code of LKGE,
IncDE and FastKGE scores TransE this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from dicgrl.models.fast import FastCounts, Questions
from dicgrl.models.wrapper import Wrapper

_ENTITIES, _RELATIONS = 0.015, 0.055  # initial spread: Xavier's for 8,700 entities, 460 relations


def unit(vectors: Tensor) -> Tensor:
    """Scale vectors [..., d] to length 1.

    Example:
        >>> unit(torch.tensor([3.0, 4.0]))
        tensor([0.6000, 0.8000])
    """
    return F.normalize(vectors, dim=-1)


class UnitVectors(Wrapper):
    """Wraps a scorer, which is given vectors of length 1."""

    @override
    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return self.inner.score(unit(head), unit(relation), unit(tail))

    @override
    def score_tails(self, head: Tensor, relation: Tensor, tails: Tensor) -> Tensor:
        return self.inner.score_tails(unit(head), unit(relation), unit(tails))

    @override
    def score_heads(self, heads: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return self.inner.score_heads(unit(heads), unit(relation), unit(tail))

    @override
    def score_relations(self, head: Tensor, relations: Tensor, tail: Tensor) -> Tensor:
        return self.inner.score_relations(unit(head), unit(relations), unit(tail))

    @override
    def initial(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        """Initial values; only directions matter, but shorter rows turn faster."""
        return torch.empty(count, width).normal_(0, _ENTITIES, generator=generator)

    @override
    def initial_relations(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        return torch.empty(count, width).normal_(0, _RELATIONS, generator=generator)

    @override
    def fast_counts(self, rows: Tensor) -> FastCounts | None:
        inner = self.inner.fast_counts(rows)
        return None if inner is None else UnitCounts(inner)


@dataclass(frozen=True, slots=True)
class UnitCounts(FastCounts):
    """Counts by another path, which is given vectors of length 1.

    Attributes:
        inner: The path.
    """

    handles_components: ClassVar[bool] = False  # each choice of components has its own length

    inner: FastCounts

    @override
    def count(
        self, questions: Questions, candidates: Sequence[range]
    ) -> tuple[Tensor, Tensor, Tensor]:
        return self.inner.count(_scaled(questions), candidates)

    @override
    def scores(self, questions: Questions, entities: Tensor) -> Tensor:
        return self.inner.scores(_scaled(questions), entities)


def _scaled(questions: Questions) -> Questions:
    return replace(
        questions,
        given=unit(questions.given),
        relations=unit(questions.relations),
        entities=unit(questions.entities),
    )

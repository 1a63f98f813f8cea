"""Negatives among the entities that a rank owns, so that they need not be fetched.

Entities are distributed at random, and triples go to another rank in each epoch, so that in the
course of training a triple is compared with all entities.
"""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.parallel.shards import Shards
from dicgrl.training.sampling import NegativeSampler


class OwnSampler(NegativeSampler):
    """Draws places of own entities that do not answer a triple's question, uniformly.

    Questions are asked by ids of the whole graph.

    Args:
        known: All triples that must not be drawn, [n, 3].
        shards: Which rank owns which entity.
        rank: The rank whose entities are drawn.
        entities: Number of entities on all ranks.
        num_relations: Number of relations seen so far.
        generator: Source of randomness, separate for each rank.
        retired: Entities that are never drawn, sorted.

    Example:
        >>> known = torch.tensor([[0, 0, 1], [0, 0, 3]])
        >>> generator = torch.Generator().manual_seed(0)
        >>> sampler = OwnSampler(known, Shards(2), 1, 8, 1, generator)  # it owns 1, 2, 5 and 7
        >>> sorted(set(sampler.draw(known[:1], 2, 50).flatten().tolist()))
        [1, 2, 3]
    """

    def __init__(
        self,
        known: Tensor,
        shards: Shards,
        rank: int,
        entities: int,
        num_relations: int,
        generator: torch.Generator,
        retired: Tensor | None = None,
    ) -> None:
        self._shards, self._rank = shards, rank
        if retired is not None:
            retired = shards.places(retired[shards.owners(retired) == rank])
        count = shards.length(entities, rank)
        super().__init__(known, count, num_relations, generator, retired)

    @override
    def _within(self, known: Tensor, asked: int) -> Tensor:
        answers = known[:, asked]
        here = self._shards.owners(answers) == self._rank
        mine = known[here]
        mine[:, asked] = self._shards.places(answers[here])
        return super()._within(mine, asked)

"""Scores that newcomers must stay below: in each question of an old triple, that of a given rank.

Each triple asks two questions, for its head and for its tail. The previous model ranks the old
entities that are not known answers, and the score at the given rank is the threshold: a newcomer
below it does not disturb the first answers. A question that many triples ask is ranked once.

The rank is estimated from a sample that all questions of a relation share. Half of it are entities
that the relation is known to have at that end, among which most first answers are; the rest are
drawn from all entities. Each stands for as many entities as it was drawn from. So the cost depends
on the number of triples and not on that of entities, and the first ranks are resolved even on large
graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from dicgrl.evaluation.ranks import MEMORY_BOUND
from dicgrl.models import KnowledgeModel
from dicgrl.models.mode import evaluating
from dicgrl.training.known import HEAD, RELATION, TAIL

_DRAWN = 512  # sampled entities of each of the two kinds, for each relation and side
_RELATIONS = 4096  # relations whose samples are in memory at a time: some 100 MB
_OPEN = 1e9  # threshold of a question that every old entity answers: no limit for newcomers


@torch.no_grad()
def rank_thresholds(
    model: KnowledgeModel,
    triples: Tensor,
    known: Tensor,
    entities: int,
    rank: int,
    generator: torch.Generator,
) -> Tensor:
    """Estimate the scores [n, 2] at a rank in the two questions of triples [n, 3], heads first.

    Args:
        model: The model.
        triples: Old triples.
        known: Known triples, including all that answer a question of `triples`.
        entities: Number of old entities, which are ranked.
        rank: The rank, from 1; the last one if there are fewer entities that are no answers.
        generator: Source of randomness, on the device of the triples.
    """
    found = triples.new_empty(len(triples), 2, dtype=model.entities.learned)
    with evaluating(model):
        for column, asked in enumerate((HEAD, TAIL)):
            asking, question = _questions(triples, asked, model.num_entities)
            of_each = found.new_empty(len(asking))
            for rows in _by_relation(asking):
                side = _Side.of(asking[rows], known, asked, entities, generator)
                of_each[rows] = _side_thresholds(model, asking[rows], side, rank)
            found[:, column] = of_each[question]
    return found


def _questions(triples: Tensor, asked: int, entities: int) -> tuple[Tensor, Tensor]:
    """One triple per question of a side, sorted by relation; and the question of each triple."""
    given = triples[:, HEAD if asked == TAIL else TAIL]
    each, question = torch.unique(triples[:, RELATION] * entities + given, return_inverse=True)
    one = torch.empty_like(each)
    one[question] = torch.arange(len(triples), device=triples.device)  # any triple that asks it
    return triples[one], question


def _by_relation(triples: Tensor) -> Iterator[slice]:
    """Slices of triples, which are sorted by relation, with at most `_RELATIONS` relations each."""
    _, counts = torch.unique_consecutive(triples[:, RELATION], return_counts=True)
    ends = counts.cumsum(0)[_RELATIONS - 1 :: _RELATIONS].tolist()
    for first, last in pairwise([0, *ends, len(triples)]):
        if last > first:
            yield slice(first, last)


def _side_thresholds(model: KnowledgeModel, triples: Tensor, side: _Side, rank: int) -> Tensor:
    """The scores at a rank in the questions of one side, [n]."""
    bound = MEMORY_BOUND
    if not triples.is_cuda:
        bound >>= 4  # fits in a CPU's cache
    height = max(bound // (side.sample.shape[1] * (model.link_bytes() + 24)), 1)
    none = triples.new_empty(0)
    found = []
    # Relation by relation, so that its sample stays in the cache.
    for rows in torch.split(torch.arange(len(triples), device=triples.device), height):
        others = [side.asked_about(rows), none.expand(len(rows), 0)]
        if side.asked == TAIL:
            others.reverse()
        _, scores, _ = model.score_links(triples[rows], *others)
        found.append(_at_rank(scores, side.stand_for(triples[rows], rows), rank))
    return torch.cat(found)


@dataclass(frozen=True, slots=True)
class _Side:
    """The samples that the questions of one side are ranked by.

    Attributes:
        asked: Column of the answers in a triple.
        group: Number of the sample of each triple, [n].
        sample: Entities of each sample, [g, c].
        weight: How many entities each of them stands for, [g, c]; 0 for none.
        known: Keys of the known triples whose answer is old, sorted.
    """

    asked: int
    group: Tensor
    sample: Tensor
    weight: Tensor
    known: Tensor
    _base: tuple[int, int]

    @classmethod
    def of(
        cls, triples: Tensor, known: Tensor, asked: int, entities: int, generator: torch.Generator
    ) -> _Side:
        relations, group = torch.unique(triples[:, RELATION], return_inverse=True)
        known = known[(known[:, asked] < entities) & torch.isin(known[:, RELATION], relations)]
        of_known = torch.searchsorted(relations, known[:, RELATION].contiguous())
        usual = torch.unique(of_known * entities + known[:, asked])  # relation and entity as one
        near, near_weight = _choose(usual, len(relations), entities, generator)
        if entities <= _DRAWN:
            far = torch.arange(entities, device=triples.device)
        else:
            far = torch.randint(entities, (_DRAWN,), generator=generator, device=triples.device)
        numbers = torch.arange(len(relations), device=triples.device)
        is_near = _among(usual, numbers[:, None] * entities + far)
        far_weight = torch.where(is_near, 0.0, max(entities / _DRAWN, 1.0))
        base = (int(relations[-1]) + 1, entities)
        return cls(
            asked,
            group,
            torch.cat([near, far.expand(len(relations), -1)], 1),
            torch.cat([near_weight, far_weight], 1),
            _keys(known, known[:, asked], asked, base).sort().values,
            base,
        )

    def asked_about(self, rows: Tensor) -> Tensor:
        """The entities that the questions of some triples are ranked by, [b, c]."""
        return self.sample[self.group[rows]]

    def stand_for(self, triples: Tensor, rows: Tensor) -> Tensor:
        """How many entities each of them stands for, [b, c]; 0 for known answers."""
        group = self.group[rows]
        weight = self.weight[group]
        # A known answer is always one of the relation's own entities, which come first.
        keys = _keys(triples[:, None], self.sample[group, :_DRAWN], self.asked, self._base)
        weight[:, :_DRAWN].masked_fill_(_among(self.known, keys), 0)
        return weight


def _choose(
    pairs: Tensor, groups: int, entities: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw up to `_DRAWN` entities of each group, from keys group * entities + entity; weights."""
    shuffled = torch.randperm(len(pairs), generator=generator, device=pairs.device)
    group = pairs[shuffled] // entities
    order = group.argsort(stable=True)
    group, chosen = group[order], (pairs[shuffled] % entities)[order]
    counts = torch.bincount(group, minlength=groups)
    place = torch.arange(len(group), device=group.device) - (counts.cumsum(0) - counts)[group]
    few = place < _DRAWN
    sample = pairs.new_zeros(groups, _DRAWN)
    sample[group[few], place[few]] = chosen[few]
    each = (counts / _DRAWN).clamp(min=1)[:, None]
    there = torch.arange(_DRAWN, device=pairs.device) < counts[:, None]
    return sample, torch.where(there, each, 0.0)


def _at_rank(scores: Tensor, weight: Tensor, rank: int) -> Tensor:
    """The score at a rank, [b], if each score [b, c] stands for some number of entities."""
    scores = scores.masked_fill(weight == 0, -torch.inf)
    # Each stands for at least one entity, so that the first `rank` scores are enough.
    best, at = scores.topk(min(rank, scores.shape[1]), dim=1)
    passed = weight.gather(1, at).cumsum(1) < rank - 0.5
    ranked = (best > -torch.inf).sum(1)
    place = torch.minimum(passed.sum(1), ranked - 1)
    threshold = best.gather(1, place.clamp(min=0)[:, None])[:, 0]
    return torch.where(ranked > 0, threshold, _OPEN)


def _keys(triples: Tensor, answers: Tensor, asked: int, base: tuple[int, int]) -> Tensor:
    """Encode the questions of triples [..., 3] with answers [...] as one number each."""
    given = triples[..., HEAD if asked == TAIL else TAIL]
    return (given * base[0] + triples[..., RELATION]) * base[1] + answers


def _among(values: Tensor, keys: Tensor) -> Tensor:
    """Whether each key is among sorted values."""
    if not len(values):
        return torch.zeros_like(keys, dtype=torch.bool)
    return values[torch.searchsorted(values, keys).clamp(max=len(values) - 1)] == keys

"""Turn scores into probabilities: how often is an answer like this right?

Two steps, each fitted per relation and side with partial pooling (`evaluation.pooling`):

1. Temperature scaling (Guo et al. 2017): scores become shares of a question,
   p = softmax(scale x score) over its candidates. What counts is how far an answer is ahead of the
   others, not its score.
2. Platt scaling: a logistic regression of "is right" on the log odds of p, the logarithm of the
   answer's rank and whether it is first. This corrects relations whose first answers are mostly
   wrong, such as the entity itself for a symmetric relation. Here shares are computed with scales
   that were fitted on the other half of the questions, so that they are not overrated.

A part has a few hundred validation questions for dozens of relations. That is too few for a free
curve per relation (isotonic regression), but enough for five numbers that are shrunk towards those
of the side. The numbers are plain, ready for JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dicgrl.evaluation.pooling import fit_odds, fit_scales

SIDES = 3  # what a question asks for: head, relation or tail, by its column
_FEWEST = 5  # fewest questions of a relation and side for numbers of its own
_DIGITS = 6

# How strongly groups are shrunk towards their pool. As a group counts by its questions, about five
# of them weigh as much as the pool.
_POOL, _SCALES = 1e-3, 4.0
_ODDS = (2.0, 8.0, 8.0, 8.0)
_BEGIN = (0.0, 1.0, 0.0, 0.0)  # probabilities are the shares themselves
_ODDS_BOUND = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Questions whose answer is known, with a model's scores.

    Attributes:
        relation: Relation of each question, 0 if it is asked for, [q].
        side: What each asks for, as the column of a triple, [q].
        scores: Scores of candidates, the right one first, [q, m].
        log_weight: Logarithm of how many candidates each of these stands for; -inf for none.
        best: The highest scores among all candidates, descending, [q, k]; padded with -inf.
        right: Which of these is the right one, [q, k].
        rank: Rank of the right one, [q]; ties count half.
        candidates: Number of candidates, [q].
    """

    relation: Tensor
    side: Tensor
    scores: Tensor
    log_weight: Tensor
    best: Tensor
    right: Tensor
    rank: Tensor
    candidates: Tensor

    def __len__(self) -> int:
        return len(self.relation)

    @classmethod
    def joined(cls, pieces: list[Asked]) -> Asked:
        """Concatenate questions, which must have the same number of columns."""
        return cls(*(torch.cat([getattr(p, name) for p in pieces]) for name in cls.__slots__))

    def at(self, chosen: Tensor) -> Asked:
        """A subset of the questions."""
        return type(self)(*(getattr(self, name)[chosen] for name in type(self).__slots__))

    def log_shares(self) -> Tensor:
        """Logarithm of the right answer's share, with one scale for each side, [q]."""
        logits = _sides(self)[self.side][:, None] * self.scores + self.log_weight
        return logits[:, 0] - logits.logsumexp(1)


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """The fitted numbers that turn the scores of answers into probabilities.

    Attributes:
        scales: Scale of each side, [3].
        odds: Coefficients of each side, [3, 4].
        groups: Relations and sides with numbers of their own, as relation * 3 + side, [g].
        group_scales: Their scales, [g].
        group_odds: Their coefficients, [g, 4].
    """

    scales: Tensor
    odds: Tensor
    groups: Tensor
    group_scales: Tensor
    group_odds: Tensor

    @classmethod
    def fitted(cls, asked: Asked) -> Calibration:
        """Fit on questions whose answers were not learned; at least one."""
        scales = _sides(asked)
        key = asked.relation * SIDES + asked.side
        known, number, count = torch.unique(key, return_inverse=True, return_counts=True)
        side = known % SIDES
        own = fit_scales(asked.scores, asked.log_weight, number, scales[side], _SCALES)
        features, right, question = _features(asked, _by_the_others(asked, number, side))
        begin = torch.tensor(_BEGIN, dtype=torch.double).repeat(SIDES, 1)
        weak = torch.full((len(_BEGIN),), 10 * _POOL, dtype=torch.double)
        odds = fit_odds(features, right, asked.side[question], begin, weak)
        ridge = torch.tensor(_ODDS, dtype=torch.double)
        own_odds = fit_odds(features, right, number[question], odds[side], ridge)
        kept = count >= _FEWEST
        return cls(scales, odds, known[kept], own[kept], own_odds[kept])

    def scale_of(self, relations: Tensor, side: int) -> Tensor:
        """The factors of the scores of questions, [q]."""
        own, at = self._find(relations, side)
        return torch.where(own, _at(self.group_scales, at), self.scales[side])

    def probabilities(
        self, relations: Tensor, side: int, scores: Tensor, rank: Tensor, log_mass: Tensor
    ) -> Tensor:
        """Probabilities that answers are right, [q, k].

        Args:
            relations: Relations of the questions, [q].
            side: What they ask for.
            scores: Scores of the answers, [q, k].
            rank: Their ranks among answers that are not known, from 1, [q, k].
            log_mass: log sum exp(scale x score) over the candidates of the question, [q, k].
        """
        shares = scores.double() * self.scale_of(relations, side)[:, None] - log_mass
        own, at = self._find(relations, side)
        odds = torch.where(own[:, None], _at(self.group_odds, at), self.odds[side])  # [q, 4]
        return (_described(shares, rank) * odds[:, None]).sum(-1).sigmoid()

    def _find(self, relations: Tensor, side: int) -> tuple[Tensor, Tensor]:
        key = relations * SIDES + side
        if not len(self.groups):
            return torch.zeros_like(key, dtype=torch.bool), torch.zeros_like(key)
        at = torch.searchsorted(self.groups, key).clamp_(max=len(self.groups) - 1)
        return self.groups[at] == key, at

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return {name: _plain(getattr(self, name)) for name in type(self).__slots__}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Calibration:
        """Restore the result of `as_dict`."""
        width = len(_BEGIN)
        numbers = {
            name: torch.tensor(stored[name], dtype=torch.double)
            for name in ("scales", "odds", "group_scales", "group_odds")
        }
        numbers["group_odds"] = numbers["group_odds"].view(-1, width)
        return cls(groups=torch.tensor(stored["groups"], dtype=torch.long), **numbers)


def said_of(asked: Asked, calibration: Calibration) -> tuple[Tensor, Tensor]:
    """Probabilities of the best answers to questions, and which are right, [q, k] each.

    Missing answers have probability 0.
    """
    said = torch.zeros_like(asked.best)
    rank = torch.arange(1.0, asked.best.shape[1] + 1).double().expand_as(asked.best)
    for side in range(SIDES):
        rows = (asked.side == side).nonzero()[:, 0]
        relations = asked.relation[rows]
        scale = calibration.scale_of(relations, side)[:, None]
        mass = (scale * asked.scores[rows] + asked.log_weight[rows]).logsumexp(1, keepdim=True)
        said[rows] = calibration.probabilities(
            relations, side, asked.best[rows], rank[rows], mass.expand(-1, rank.shape[1])
        )
    return torch.where(asked.best > -torch.inf, said, 0.0), asked.right


def fit_temperature(scores: Tensor, labels: Tensor) -> float:
    """Fit a factor of class scores [n, C] that calibrates their softmax.

    The factor is shrunk towards 1, the model's own probabilities, by the weight of a few nodes.

    Example:
        >>> sure = torch.tensor([[4.0, 0.0]] * 80)
        >>> fit_temperature(sure, torch.tensor([0] * 60 + [1] * 20)) < 0.5
        True
    """
    scores = scores.double()
    places = torch.arange(scores.shape[1], device=scores.device).expand_as(scores)
    others = places[places != labels[:, None]].view(len(scores), -1)
    ordered = scores.gather(1, torch.cat([labels[:, None], others], 1)).cpu()
    pool = torch.ones(1, dtype=torch.double)
    group = torch.zeros(len(ordered), dtype=torch.long)
    scale = fit_scales(ordered, torch.zeros_like(ordered), group, pool, _SCALES)
    return _short(scale.item())


def _sides(asked: Asked) -> Tensor:
    """Fit the scale of each side, [3], beginning where scores are about one apart."""
    there = asked.scores[asked.log_weight > -torch.inf]
    spread = there.std().clamp(min=1e-6) if len(there) > 1 else torch.ones((), dtype=torch.double)
    begin = (1 / spread).repeat(SIDES)
    return fit_scales(asked.scores, asked.log_weight, asked.side, begin, _POOL)


def _by_the_others(asked: Asked, number: Tensor, side: Tensor) -> Tensor:
    """A scale for each question, fitted on the other half of the questions, [q].

    On the questions that they were fitted on, scales look better than they are, especially in small
    groups, and the second step would rely on that.
    """
    found = torch.empty(len(asked), dtype=torch.double)
    half = torch.arange(len(asked)) % 2 == 0
    for told in (half, ~half):
        others = asked.at(~told)
        pool = _sides(others)[side]
        scales = fit_scales(others.scores, others.log_weight, number[~told], pool, _SCALES)
        found[told] = scales[number[told]]
    return found


def _features(asked: Asked, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Features of each of the best answers [n, 4], whether it is right, and its question."""
    mass = (scale[:, None] * asked.scores + asked.log_weight).logsumexp(1, keepdim=True)
    rank = torch.arange(1.0, asked.best.shape[1] + 1).double().expand_as(asked.best)
    described = _described(scale[:, None] * asked.best - mass, rank)
    question, place = (asked.best > -torch.inf).nonzero(as_tuple=True)
    return described[question, place], asked.right[question, place], question


def _described(log_share: Tensor, rank: Tensor) -> Tensor:
    """Features: 1, log odds of the share, logarithm of the rank, whether it is first, [q, k, 4]."""
    log_share = log_share.clamp(min=-_ODDS_BOUND, max=-1e-9)
    odds = log_share - torch.log(-torch.expm1(log_share))
    odds = odds.clamp(min=-_ODDS_BOUND, max=_ODDS_BOUND)
    return torch.stack([torch.ones_like(odds), odds, rank.log(), (rank == 1).double()], -1)


def _at(values: Tensor, at: Tensor) -> Tensor:
    """Rows of values, which may be empty."""
    return values[at] if len(values) else values.new_zeros(len(at), *values.shape[1:])


def _plain(values: Tensor) -> Any:
    """Lists of numbers, rounded to the digits that matter."""
    if values.dim() > 1:
        return [_plain(row) for row in values]
    whole = values.dtype == torch.long
    return values.tolist() if whole else [_short(value) for value in values.tolist()]


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")

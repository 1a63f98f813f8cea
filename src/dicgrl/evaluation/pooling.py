"""Fits with partial pooling: the less data a group has, the more it is shrunk towards its pool.

The parameters of a group are those of its pool plus a deviation with a normal prior (a ridge), so
that a group without data has exactly those of the pool. All groups are fitted at once by Newton's
method. A group's step is halved as long as it would make the group worse, so that fits only
improve.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_STEPS = 30
_HALVINGS = 12
_TOLERANCE = 1e-6  # tolerance of a log likelihood

Judge = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
"""Maps parameters [g, d] to the objective [g], its gradient [g, d] and its Hessian [g, d, d]."""


def descend(start: Tensor, judge: Judge) -> Tensor:
    """Minimise the objective of each group by Newton's method.

    Args:
        start: Parameters to begin with, [g, d].
        judge: The objective of each group, with derivatives.
    """
    at = start
    value, gradient, hessian = judge(at)
    tiny = 1e-9 * torch.eye(start.shape[1], dtype=start.dtype)
    for _ in range(_STEPS):
        step = torch.linalg.solve(hessian + tiny, gradient)
        promised = (step * gradient).sum(1)  # twice what a quadratic objective would gain
        if promised.max() <= _TOLERANCE:
            break
        length = torch.ones(len(at), 1, dtype=at.dtype)
        for _ in range(_HALVINGS):
            tried = at - length * step
            now = judge(tried)
            better = now[0] <= value + _TOLERANCE  # false for NaN
            if better.all():
                break
            length = torch.where(better[:, None], length, length / 2)
        if not better.any():
            break
        at = torch.where(better[:, None], tried, at)
        value, gradient, hessian = now if better.all() else judge(at)
    return at


def fit_scales(
    scores: Tensor, log_weight: Tensor, group: Tensor, pool: Tensor, ridge: float
) -> Tensor:
    """Fit factors of scores so that their softmax is the probability of each candidate, [g].

    The logarithm of the scale of each group is fitted by maximum likelihood.

    Args:
        scores: Scores of the candidates of questions, [q, m], the right one first.
        log_weight: Logarithm of how many candidates each stands for, [q, m]; -inf for none.
        group: Group of each question, [q].
        pool: Scales that groups are shrunk towards, [g].
        ridge: Strength of shrinkage, per squared deviation of the logarithm.
    """
    there = log_weight > -torch.inf
    scores = torch.where(there, scores, 0.0)
    before = pool.log()[:, None]

    def judge(at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scale = at[group].exp()  # [q, 1]
        logits = scale * scores + log_weight
        share = logits.softmax(1)
        mean = (share * scores).sum(1)
        spread = (share * (scores - mean[:, None]).square()).sum(1)
        lost = logits.logsumexp(1) - logits[:, 0]
        slope = scale[:, 0] * (mean - scores[:, 0])
        # Where the likelihood is not concave, use the Fisher information.
        bend = scale[:, 0].square() * spread + slope.clamp(min=0)
        values = _sums(torch.stack([lost, slope, bend], 1), group, len(at))
        away = at - before
        return (
            values[:, 0] + ridge / 2 * away[:, 0].square(),
            values[:, 1:2] + ridge * away,
            values[:, 2:, None] + ridge,
        )

    return descend(before, judge)[:, 0].exp()


def fit_odds(features: Tensor, right: Tensor, group: Tensor, pool: Tensor, ridge: Tensor) -> Tensor:
    """Logistic regressions, one for each group, [g, d].

    Args:
        features: Features of each answer, [n, d].
        right: Whether it is right, [n].
        group: Its group, [n].
        pool: Coefficients that groups are shrunk towards, [g, d].
        ridge: Strength of shrinkage, per squared deviation of each coefficient, [d].
    """
    true = right.to(features.dtype)

    def judge(at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        odds = (features * at[group]).sum(1)
        said = odds.sigmoid()
        lost = torch.nn.functional.softplus(odds) - true * odds
        away = at - pool
        doubt = features * (said * (1 - said))[:, None]
        square = (doubt[:, :, None] * features[:, None]).flatten(1)
        return (
            _sums(lost[:, None], group, len(at))[:, 0] + (ridge * away.square()).sum(1) / 2,
            _sums(features * (said - true)[:, None], group, len(at)) + ridge * away,
            _sums(square, group, len(at)).view(len(at), len(ridge), -1) + torch.diag(ridge),
        )

    return descend(pool, judge)


def _sums(values: Tensor, group: Tensor, groups: int) -> Tensor:
    total = torch.zeros(groups, values.shape[1], dtype=values.dtype)
    return total.index_add_(0, group, values)

"""Partial pooling against a general optimiser, and at its two ends."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from dicgrl.evaluation.pooling import fit_odds, fit_scales


def answers(groups: int = 3, each: int = 40) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = np.random.default_rng(1)
    features = np.stack([np.ones(groups * each), draw.normal(size=groups * each)], 1)
    group = np.repeat(np.arange(groups), each)
    odds = (features * np.array([[-1.0, 2.0], [0.5, 0.5], [0.0, -1.0]])[group]).sum(1)
    right = draw.random(len(odds)) < 1 / (1 + np.exp(-odds))
    return torch.from_numpy(features), torch.from_numpy(right), torch.from_numpy(group)


def test_odds_are_those_of_a_general_optimiser() -> None:
    features, right, group = answers()
    pool = torch.tensor([[0.1, 0.3]], dtype=torch.double).repeat(3, 1)
    ridge = torch.tensor([2.0, 8.0], dtype=torch.double)
    found = fit_odds(features, right, group, pool, ridge)
    for number in range(3):
        x, y = features[group == number].numpy(), right[group == number].numpy()

        def lost(w: np.ndarray, x: np.ndarray = x, y: np.ndarray = y) -> float:
            odds = x @ w
            away = ((w - pool[0].numpy()) ** 2 * ridge.numpy()).sum() / 2
            return float((np.logaddexp(0, odds) - y * odds).sum() + away)

        best = minimize(lost, np.zeros(2), tol=1e-12).x
        assert found[number].numpy() == pytest.approx(best, abs=1e-3)


def test_a_group_without_data_has_what_its_pool_has_and_one_with_much_its_own() -> None:
    features, right, group = answers(each=4000)
    pool = torch.tensor([[5.0, 5.0]], dtype=torch.double).repeat(4, 1)
    ridge = torch.tensor([2.0, 8.0], dtype=torch.double)
    found = fit_odds(features, right, group, pool, ridge)
    assert torch.equal(found[3], pool[3])
    assert found[:3].flatten().tolist() == pytest.approx([-1, 2, 0.5, 0.5, 0, -1], abs=0.2)


def test_separable_answers_and_wild_starts_stay_finite() -> None:
    features = torch.tensor([[1.0, x] for x in (-3.0, -2.0, 2.0, 3.0)], dtype=torch.double)
    right = torch.tensor([False, False, True, True])
    group = torch.zeros(4, dtype=torch.long)
    ridge = torch.tensor([1e-2, 1e-2], dtype=torch.double)
    for start in ([0.0, 0.0], [30.0, -30.0]):
        pool = torch.tensor([start], dtype=torch.double)
        found = fit_odds(features, right, group, pool, ridge)
        assert found.isfinite().all()


@pytest.mark.parametrize("scale", [0.01, 1.0, 300.0])
def test_scales_are_found_again_whatever_the_scores_are_measured_in(scale: float) -> None:
    """Right answers drawn from the softmax of scaled scores."""
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(4000, 30, generator=draw, dtype=torch.double) / scale
    right = (scores * scale * 1.7).softmax(1).multinomial(1, generator=draw)
    first = torch.cat([scores.gather(1, right), scores.scatter(1, right, 0.0)], 1)
    weight = torch.zeros_like(first).scatter(1, 1 + right, -torch.inf)
    group = torch.zeros(len(first), dtype=torch.long)
    begin = torch.tensor([1 / scores.std().item()], dtype=torch.double)
    found = fit_scales(first, weight, group, begin, 1e-3)
    assert found.item() == pytest.approx(1.7 * scale, rel=0.05)


def test_scores_that_say_nothing_get_a_scale_that_says_nothing() -> None:
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(4000, 30, generator=draw, dtype=torch.double)
    group = torch.zeros(len(scores), dtype=torch.long)
    begin = torch.ones(1, dtype=torch.double)
    found = fit_scales(scores, torch.zeros_like(scores), group, begin, 1e-3)
    assert found.item() < 0.1

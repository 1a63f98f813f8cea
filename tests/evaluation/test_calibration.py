"""Calibration on questions whose right probabilities are known, because answers are drawn so."""

from __future__ import annotations

import json

import pytest
import torch

from dicgrl.evaluation.calibration import Asked, Calibration, fit_temperature, said_of
from dicgrl.evaluation.reliability import reliability
from dicgrl.training.known import HEAD, TAIL

SCALES = {(0, TAIL): 0.4, (1, TAIL): 3.0, (0, HEAD): 1.0, (1, HEAD): 1.0}
CANDIDATES = 40


def drawn(count: int, seed: int) -> Asked:
    """Questions of two relations and two sides, each with a scale of its own."""
    draw = torch.Generator().manual_seed(seed)
    relation = torch.randint(2, (count,), generator=draw)
    side = torch.where(torch.rand(count, generator=draw) < 0.5, HEAD, TAIL)
    scale = torch.tensor(
        [SCALES[key] for key in zip(relation.tolist(), side.tolist(), strict=True)]
    )[:, None]
    scores = 2 * torch.randn(count, CANDIDATES, generator=draw, dtype=torch.double)
    right = (scale * scores).softmax(1).multinomial(1, generator=draw)
    truth = scores.gather(1, right)
    every = torch.cat([truth, scores], 1)
    weight = torch.zeros_like(every).scatter(1, 1 + right, -torch.inf)
    best = scores.topk(10)
    rank = 1.0 + (scores > truth).sum(1)
    candidates = torch.full((count,), float(CANDIDATES), dtype=torch.double)
    is_right = best.indices == right
    return Asked(relation, side, every, weight, best.values, is_right, rank.double(), candidates)


def test_probabilities_are_those_that_answers_were_drawn_with() -> None:
    fitted = Calibration.fitted(drawn(4000, seed=0))
    for (relation, side), scale in SCALES.items():
        found = fitted.scale_of(torch.tensor([relation]), side).item()
        assert found == pytest.approx(scale, rel=0.15)
    fresh = drawn(4000, seed=1)
    said, right = said_of(fresh, fitted)
    for column in (slice(0, 1), slice(0, 10)):
        found = reliability(said[:, column].flatten(), right[:, column].flatten())
        assert found["ece"] < 2.5 * found["ece_by_chance"]
    assert found["brier"] < found["brier_of_mean"]


def test_wrong_first_answers_are_not_believed_however_high_they_score() -> None:
    """As in a symmetric relation, where the entity of the question itself comes first."""
    asked = drawn(2000, seed=2)
    crowned = asked.best.max() + 10
    best = torch.cat([crowned.expand(len(asked), 1), asked.best[:, :-1]], 1)
    right = torch.cat([torch.zeros(len(asked), 1).bool(), asked.right[:, :-1]], 1)
    more = torch.cat([asked.scores, crowned.expand(len(asked), 1)], 1)
    weight = torch.cat([asked.log_weight, torch.zeros(len(asked), 1).double()], 1)
    every = Asked(
        asked.relation, asked.side, more, weight, best, right, asked.rank + 1, asked.candidates + 1
    )
    said, right = said_of(every, Calibration.fitted(every))
    assert said[:, 0].max() < 0.01
    assert reliability(said[:, 1], right[:, 1])["ece"] < 0.05


def test_a_relation_with_few_questions_has_what_its_side_has() -> None:
    asked = drawn(1000, seed=3)
    few = asked.relation == 1
    few &= few.cumsum(0) > 4
    fitted = Calibration.fitted(asked.at(~few))
    for side in (HEAD, TAIL):
        for relation in (1, 77):
            found = fitted.scale_of(torch.tensor([relation]), side)
            assert found.item() == fitted.scales[side].item()


def test_it_comes_back_from_json_as_it_was() -> None:
    asked = drawn(500, seed=4)
    fitted = Calibration.fitted(asked)
    stored = json.loads(json.dumps(fitted.as_dict()))
    again = Calibration.from_dict(stored)
    assert again.as_dict() == stored
    one, other = (said_of(asked, each)[0] for each in (fitted, again))
    assert one.flatten().tolist() == pytest.approx(other.flatten().tolist(), rel=1e-4, abs=1e-6)
    empty = Calibration.fitted(asked.at(torch.arange(2)))  # no relation has enough
    assert not len(empty.groups)
    assert Calibration.from_dict(empty.as_dict()).as_dict() == empty.as_dict()


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5])
def test_a_temperature_is_found_again(scale: float) -> None:
    draw = torch.Generator().manual_seed(0)
    scores = 3 * torch.randn(4000, 5, generator=draw)
    labels = (scale * scores).softmax(1).multinomial(1, generator=draw)[:, 0]
    assert fit_temperature(scores, labels) == pytest.approx(scale, rel=0.07)

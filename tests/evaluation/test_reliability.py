"""Reliability of probabilities against slow references and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.evaluation.reliability import reliability

chances = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=300)


@given(chances, st.integers(1, 12))
def test_bins_hold_every_answer_once_and_their_errors_make_the_whole(
    answers: list[tuple[float, bool]], bins: int
) -> None:
    said = torch.tensor([p for p, _ in answers], dtype=torch.double)
    right = torch.tensor([y for _, y in answers])
    found = reliability(said, right, bins)
    listed = found["bins"]
    assert sum(each["count"] for each in listed) == found["count"] == len(answers)
    assert len(listed) <= bins
    assert [each["said"] for each in listed] == sorted(each["said"] for each in listed)
    errors = [each["count"] * abs(each["said"] - each["right"]) for each in listed]
    assert found["ece"] == pytest.approx(sum(errors) / len(answers), abs=1e-9)
    assert found["brier"] == pytest.approx(
        sum((p - y) ** 2 for p, y in answers) / len(answers), abs=1e-9
    )
    share = sum(y for _, y in answers) / len(answers)
    assert found["brier_of_mean"] == pytest.approx(share * (1 - share))
    assert abs(sum(p - y for p, y in answers)) / len(answers) <= found["ece"] + 1e-9


def test_equal_probabilities_are_never_told_apart() -> None:
    said = torch.tensor([0.1] * 70 + [0.9] * 130)
    right = torch.arange(200) % 2 == 0
    assert [each["count"] for each in reliability(said, right)["bins"]] == [70, 130]


def test_right_probabilities_have_the_error_that_chance_gives_them() -> None:
    draw = np.random.default_rng(0)
    errors, expected = [], []
    for _ in range(200):
        said = draw.beta(0.5, 2, 600)
        found = reliability(torch.from_numpy(said), torch.from_numpy(draw.random(600) < said))
        errors.append(found["ece"])
        expected.append(found["ece_by_chance"])
    assert np.mean(errors) == pytest.approx(np.mean(expected), rel=0.05)


def test_nothing_is_said_of_nothing() -> None:
    assert reliability(torch.empty(0), torch.empty(0)) == {"count": 0}

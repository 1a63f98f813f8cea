from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.evaluation import accuracy_metrics

score_rows = st.lists(
    st.tuples(
        # unique: a tie has no single highest class
        st.lists(st.integers(-60, 60).map(lambda i: i / 4), min_size=4, max_size=4, unique=True),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=12,
)


@given(score_rows)
def test_accuracy_and_loss_are_counted_one_by_one(rows: list[tuple[list[float], int]]) -> None:
    right, loss = 0, 0.0
    for scores, label in rows:
        right += max(scores) == scores[label]
        loss -= math.log(math.exp(scores[label]) / sum(math.exp(s) for s in scores))
    found = accuracy_metrics(
        torch.tensor([scores for scores, _ in rows]), torch.tensor([label for _, label in rows])
    )
    assert set(found) == {"accuracy", "loss"}
    assert found["accuracy"] == pytest.approx(right / len(rows), abs=1e-12)
    assert found["loss"] == pytest.approx(loss / len(rows), rel=1e-4, abs=1e-5)
    assert all(type(value) is float for value in found.values())


@given(st.integers(2, 6), st.integers(1, 10))
def test_a_constant_scorer_has_the_loss_of_a_guess(classes: int, nodes: int) -> None:
    labels = torch.arange(nodes) % classes
    found = accuracy_metrics(torch.zeros(nodes, classes), labels)
    assert found["loss"] == pytest.approx(math.log(classes), rel=1e-5)
    assert found["accuracy"] == pytest.approx((labels == 0).sum().item() / nodes)


def test_extremes() -> None:
    labels = torch.tensor([0, 2, 1])
    sure = torch.eye(3)[labels] * 50
    assert accuracy_metrics(sure, labels)["accuracy"] == 1
    assert accuracy_metrics(sure, labels)["loss"] == pytest.approx(0, abs=1e-6)
    wrong = accuracy_metrics(-sure, labels)
    assert wrong["accuracy"] == 0 and wrong["loss"] > 40


def test_no_nodes_are_no_error() -> None:
    none = accuracy_metrics(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long))
    assert none == {"accuracy": 0.0, "loss": 0.0}


def test_a_large_set_is_counted_without_rounding() -> None:
    # The mean of float32 values would keep seven digits.
    nodes = 3_000_001
    scores = torch.zeros(nodes, 2)
    scores[:, 0] = 1
    labels = torch.zeros(nodes, dtype=torch.long)
    labels[0] = 1
    assert accuracy_metrics(scores, labels)["accuracy"] == pytest.approx(1 - 1 / nodes, abs=1e-12)

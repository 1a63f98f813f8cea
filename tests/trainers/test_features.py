"""Features of nodes are scaled as asked."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.trainers.nodes import scaled
from tests.trainers.test_nodes import clusters, node_run

values = st.floats(-1000, 1000, width=32).map(lambda v: v if abs(v) > 1e-3 else 0.0)


matrices = st.lists(st.lists(values, min_size=3, max_size=3), min_size=1, max_size=5)


@given(matrices, st.sampled_from(["l2", "row", "none"]))
def test_features_are_scaled_row_by_row(rows: list[list[float]], how: str) -> None:
    given_rows = torch.tensor(rows)
    kept = given_rows.clone()
    found = scaled(given_rows, how)
    assert torch.equal(given_rows, kept)  # what came in is left alone
    for row, own in zip(found.double().tolist(), rows, strict=True):
        size = {
            "l2": math.sqrt(sum(v * v for v in own)),
            "row": sum(abs(v) for v in own),
            "none": 1.0,
        }[how]
        assert row == pytest.approx([v / size if size else 0 for v in own], rel=1e-5, abs=1e-7)


@given(matrices, st.sampled_from(["l2", "row"]))
def test_scaling_again_or_by_a_factor_changes_nothing(rows: list[list[float]], how: str) -> None:
    once = scaled(torch.tensor(rows), how)
    assert torch.allclose(scaled(once, how), once, atol=1e-6)
    assert torch.allclose(scaled(7 * torch.tensor(rows), how), once, atol=1e-6)


@pytest.mark.parametrize("how", ["l2", "row", "none"])
def test_rows_of_zeros_and_of_no_length_stay(how: str) -> None:
    assert (scaled(torch.zeros(3, 4), how) == 0).all()
    assert scaled(torch.zeros(3, 0), how).shape == (3, 0)
    assert scaled(torch.zeros(0, 4), how).shape == (0, 4)


@pytest.mark.parametrize("how", ["l2", "row", "none"])
def test_a_run_scales_its_features_as_asked(how: str) -> None:
    stream = clusters(extra=1)
    trainer = node_run(stream, features=how)
    assert torch.equal(trainer.x, scaled(torch.from_numpy(stream[0].features), how))

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.evaluation.continual import evaluation, evaluations


def measured(values: dict[int, float], counts: dict[int, int]) -> list[dict[str, Any]]:
    return [
        {"part": part, "count": counts[part], "x": value, "y": 1 - value}
        for part, value in values.items()
    ]


COUNTS = {0: 100, 1: 10, 2: 30}


def test_three_parts_by_hand() -> None:
    """R = [[0.6], [0.7, 0.8], [0.5, 0.9, 0.4]]."""
    rows = [{0: 0.6}, {0: 0.7, 1: 0.8}, {0: 0.5, 1: 0.9, 2: 0.4}]
    found = evaluation("x", [measured(row, COUNTS) for row in rows], [None, 0.3, 0.1], 0.75)
    assert found.whole["x"] == pytest.approx((100 * 0.5 + 10 * 0.9 + 30 * 0.4) / 140)
    assert found.whole["y"] == pytest.approx(1 - found.whole["x"])
    assert found.average == pytest.approx({"x": 0.6, "y": 0.4})
    assert found.count == 140
    # Part 0 reached 0.7 at best, part 1 is better than ever; part 2 cannot have lost anything.
    assert found.forgetting == pytest.approx(((0.7 - 0.5) + (0.8 - 0.9)) / 2)
    assert found.backward_transfer == pytest.approx(((0.5 - 0.6) + (0.9 - 0.8)) / 2)
    assert found.forward_transfer == pytest.approx(0.2)
    assert found.retention == 0.75


def test_after_the_first_part_there_is_nothing_to_forget() -> None:
    found = evaluation("x", [measured({0: 0.6}, COUNTS)], [None])
    assert found.whole == found.average == pytest.approx({"x": 0.6, "y": 0.4})
    assert found.forgetting is None and found.backward_transfer is None
    assert found.forward_transfer is None and found.retention is None


def test_parts_without_a_test_set_are_left_out() -> None:
    rows = [{0: 0.6}, {0: 0.2}, {0: 0.5, 2: 0.3}]
    found = evaluation("x", [measured(row, COUNTS) for row in rows], [None, None, 0.2])
    assert [test["part"] for test in found.tests] == [0, 2]
    assert found.average["x"] == pytest.approx(0.4)
    assert found.forgetting == pytest.approx(0.1)
    assert found.backward_transfer == pytest.approx(-0.1)
    assert found.forward_transfer == 0.2


def test_a_part_that_was_not_measured_at_its_time_has_no_backward_transfer() -> None:
    rows: list[dict[int, float]] = [{}, {0: 0.6, 1: 0.5}, {0: 0.4, 1: 0.7, 2: 0.1}]
    found = evaluation("x", [measured(row, COUNTS) for row in rows])
    assert found.forgetting == pytest.approx(((0.6 - 0.4) + (0.5 - 0.7)) / 2)
    assert found.backward_transfer == pytest.approx(0.7 - 0.5)


def test_nothing_measured_is_nothing_said() -> None:
    for history in ([], [[]]):
        found = evaluation("x", history)
        assert found.tests == [] and found.whole == {} and found.average == {}
        assert found.forgetting is None and found.count == 0


numbers = st.lists(st.lists(st.floats(0, 1), min_size=5, max_size=5), min_size=5, max_size=5)


@given(numbers, st.integers(2, 5), st.lists(st.integers(1, 99), min_size=5, max_size=5))
def test_any_matrix(matrix: list[list[float]], parts: int, sizes: list[int]) -> None:
    counts = dict(enumerate(sizes))
    history = [measured({j: matrix[i][j] for j in range(i + 1)}, counts) for i in range(parts)]
    found = evaluation("x", history)
    last = parts - 1
    lost = moved = 0.0
    for j in range(last):
        lost += max(matrix[i][j] for i in range(j, last)) - matrix[last][j]
        moved += matrix[last][j] - matrix[j][j]
    assert found.forgetting == pytest.approx(lost / last, abs=1e-12)
    assert found.backward_transfer == pytest.approx(moved / last, abs=1e-12)
    assert found.forgetting >= -found.backward_transfer - 1e-12  # the best is at least the first
    low, high = min(matrix[last][:parts]), max(matrix[last][:parts])
    assert low - 1e-12 <= found.whole["x"] <= high + 1e-12


@given(numbers, st.lists(st.none() | st.floats(-1, 1), min_size=5, max_size=5), st.integers(0, 4))
def test_those_after_each_part_are_those_of_the_parts_so_far(
    matrix: list[list[float]], figures: list[float | None], untested: int
) -> None:
    counts = dict.fromkeys(range(5), 10)
    rows = [{j: matrix[i][j] for j in range(i + 1) if j != untested} for i in range(5)]
    history = [measured(row, counts) for row in rows]
    expected = [
        evaluation("x", history[:parts], figures[:parts], figures[parts - 1])
        for parts in range(1, 6)
    ]
    assert list(evaluations("x", history, figures, figures)) == expected


def test_it_can_be_read() -> None:
    rows = [{0: 0.6}, {0: 0.5, 1: 0.25}]
    text = str(evaluation("x", [measured(row, COUNTS) for row in rows]))
    assert [line.split() for line in text.splitlines()] == [
        ["count", "x"],
        ["part", "0", "100", "0.500"],
        ["part", "1", "10", "0.250"],
        ["whole", "110", "0.477"],
        ["average", "0.375"],
        ["forgetting", "0.100"],
    ]

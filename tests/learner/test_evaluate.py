"""What a learner finds on the test sets of its parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dicgrl.errors import UserError
from tests.learner.helpers import FILMS
from tests.tiny import (
    learner_of,
    stream_of,
    taught,
)


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_evaluation_sums_up_the_tests_of_every_part(kind: str) -> None:
    learner = learner_of(kind, lr=0.2)
    metric = learner.trainer.metric
    matrix: list[list[float]] = []
    for part in stream_of(kind):
        learner.learn(part, probe=True)
        matrix.append([test[metric] for test in learner.evaluate().tests])
    found = learner.evaluation()
    counts = [test["count"] for test in found.tests]
    assert counts == [len(part.test) for part in stream_of(kind)]
    last = matrix[-1]
    assert found.average[metric] == pytest.approx(sum(last) / 3)
    pooled = sum(value * count for value, count in zip(last, counts, strict=True)) / sum(counts)
    assert found.whole[metric] == pytest.approx(pooled)
    best = [max(matrix[0][0], matrix[1][0]), matrix[1][1]]
    lost = (best[0] - last[0] + best[1] - last[1]) / 2
    assert found.forgetting == pytest.approx(lost)
    moved = (last[0] - matrix[0][0] + last[1] - matrix[1][1]) / 2
    assert found.backward_transfer == pytest.approx(moved)
    assert found.forward_transfer is not None
    text = str(found)
    for words in ("part 0", "part 1", "part 2", "whole", "average", "forgetting", metric):
        assert words in text
    assert f"{found.whole[metric]:.3f}" in text


def test_evaluating_twice_changes_nothing() -> None:
    learner = taught(learner_of("links", "emr"), 2)
    first = learner.evaluation()
    assert learner.evaluate() == first
    other = taught(learner_of("links", "emr"), 2, evaluate=False)
    other.evaluate()
    assert other.tests[-1] == learner.tests[-1]


def test_without_test_sets_nothing_is_claimed() -> None:
    learner = learner_of("links")
    learner.learn(FILMS)
    found = learner.evaluate()
    assert (found.tests, found.whole, found.average, found.forgetting) == ([], {}, {}, None)
    assert "no test set" in str(found) and "0.0" not in str(found)


def test_parts_that_were_not_learned_have_no_evaluation() -> None:
    for parts in (None, 0, 1):
        with pytest.raises(UserError, match=r"^nothing was learned yet: call learn first"):
            learner_of("links").evaluation(parts)
    learner = taught(learner_of("links"), 2)
    for wrong in (0, 3, "1", 1.0):
        with pytest.raises(UserError, match=f"^parts={wrong!r}: expected a whole number, 1 to 2"):
            learner.evaluation(wrong)  # type: ignore[arg-type]
    assert len(learner.evaluation(1).tests) == 1


def test_nothing_can_be_asked_before_anything_was_learned(tmp_path: Path) -> None:
    learner = learner_of("links")
    for ask in (learner.evaluate, lambda: learner.predict(head="a", relation="b")):
        with pytest.raises(UserError, match="nothing was learned yet"):
            ask()

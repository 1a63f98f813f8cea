"""What a learner finds on the test sets of its parts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dicgrl import Learner
from dicgrl.errors import UserError
from dicgrl.evaluation.sample import sample_of
from tests.learner.helpers import FILMS
from tests.tiny import (
    learner_of,
    ring,
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


def test_a_sample_of_the_test_sets_is_measured_where_they_are_large() -> None:
    def sampled(seed: int) -> Learner:
        learner = learner_of("links", "emr", seed, lr=0.2)
        for part in ring():
            learner.learn(part, probe=True, probe_at_most=5)
            learner.evaluate(at_most=5)
        return learner

    learner, sizes = sampled(0), [len(part.test) for part in ring()]
    found = learner.evaluation()
    assert sum(sizes) > 5 and found.count == sum(sizes)
    assert found.sampled is not None and found.sampled <= 5
    everything = learner.trainer
    for test, part in zip(found.tests, range(3), strict=True):
        chosen = torch.from_numpy(sample_of(part, sizes[part], test["sampled"]))
        metrics = everything.measure(everything.examples("test", part, part + 1)[chosen])
        assert (test["part"], test["count"]) == (part, sizes[part])
        assert {name: test[name] for name in metrics} == pytest.approx(metrics)
    assert sampled(0).evaluations() == learner.evaluations()
    other = [test["sampled"] for test in sampled(1).evaluation().tests]
    assert other == [test["sampled"] for test in found.tests]
    assert learner.evaluate(at_most=sum(sizes)) == learner.evaluate()
    assert learner.evaluation().sampled is None
    with pytest.raises(UserError, match="at_most=-1: expected a whole number, at least 0"):
        learner.evaluate(at_most=-1)


def test_the_probe_asks_no_more_than_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = taught(learner_of("links", validate_on="none"), 1)
    asked: list[int] = []
    outcomes = type(learner.trainer).outcomes
    monkeypatch.setattr(
        type(learner.trainer),
        "outcomes",
        lambda self, sets: asked.extend(map(len, sets)) or outcomes(self, sets),
    )
    learner.learn(ring()[1], probe=True, probe_at_most=2)
    assert asked == [1]  # two of two parts
    assert learner.evaluate(at_most=2).sampled == 2 and asked == [1, 1, 1]


def test_retention_is_that_of_the_sampled_questions() -> None:
    learner = taught(learner_of("links", "lower", lr=0.3, epochs=20), 2)
    assert learner.first_answers is not None
    answered = learner.trainer.outcomes([learner.trainer.examples("test", 0, 1)])[0][1]
    first, now = learner.first_answers.view(2, -1), answered.view(2, -1)  # heads, then tails
    size = learner.trainer.count("test", 0, 1)
    sampled = learner.evaluate(at_most=4).tests[0]["sampled"]
    chosen = torch.from_numpy(sample_of(0, size, sampled))
    asked = first[:, chosen]
    assert asked.any() and sampled < size
    kept = now[:, chosen][asked].double().mean().item()
    assert learner.evaluation().retention == pytest.approx(kept)


def test_retention_ends_where_the_first_test_set_changes(tmp_path: Path) -> None:
    """Whoever goes on then: the one who took the fact back, a reader, one that is loaded."""
    learner = taught(learner_of("links"), 2)
    learner.save(tmp_path)
    learner, reader = (Learner.load(tmp_path, device="cpu") for _ in range(2))
    assert learner.evaluate().retention is not None
    graph = learner.trainer.graph
    head, relation, tail = graph.rows("test", 0, 1)[0]
    ends = graph.entities.labels([head, tail])
    learner.forget([(ends[0], graph.relations.labels([relation])[0], ends[1])])
    learner.save(tmp_path)
    assert reader.refresh()
    for each in (learner, reader, Learner.load(tmp_path, device="cpu")):
        assert each.evaluate().retention is None
        assert each.evaluation(2).retention is not None
    assert Learner.load(tmp_path, at=2, device="cpu").evaluate().retention is not None


def test_nodes_are_measured_all_as_that_takes_no_longer() -> None:
    learner = taught(learner_of("nodes"), 2)
    before = learner.evaluation()
    assert learner.evaluate(at_most=1) == before and before.sampled is None


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

"""The snapshot protocol: each test set among the entities of its own part, beside ours."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import dicgrl
from dicgrl import Learner
from dicgrl.errors import UserError
from dicgrl.jobs.plan import plan_runs
from dicgrl.trainers import LinkTrainer
from tests.tiny import LINKS, NODES, circles, learner_of, ring, taught


def slow_mrr(trainer: LinkTrainer, number: int) -> float:
    """One triple and one candidate after the other."""
    parts = list(ring())[: number + 1]
    then = parts[-1].num_entities
    rows = [getattr(part, split) for part in parts for split in ("train", "valid", "test")]
    known = {tuple(row) for every in rows for row in every.tolist()}
    found = []
    for triple in parts[-1].test.tolist():
        for column in (0, 2):
            asked = [[*triple[:column], e, *triple[column + 1 :]] for e in range(then)]
            others = [each for each in asked if tuple(each) not in known]
            scores = trainer.model.score(*torch.tensor([triple, *others]).unbind(1)).tolist()
            higher = sum(score > scores[0] for score in scores[1:])
            equal = sum(score == scores[0] for score in scores[1:])
            found.append(1 / (1 + higher + equal / 2))
    return sum(found) / len(found)


def test_what_came_later_neither_competes_nor_is_left_out() -> None:
    learner = taught(learner_of("links", lr=0.2), evaluate=False)
    found = learner.evaluate(protocol="snapshot")
    assert isinstance(learner.trainer, LinkTrainer)
    for number, test in enumerate(found.tests):
        assert test["mrr_snapshot"] == pytest.approx(slow_mrr(learner.trainer, number), abs=1e-6)
    # Of the newest part there is nothing that came later.
    assert found.tests[-1]["mrr_snapshot"] == pytest.approx(found.tests[-1]["mrr"])
    assert found.tests[0]["hits@10_snapshot"] >= found.tests[0]["hits@10"]


def test_it_stands_beside_ours_and_replaces_nothing() -> None:
    learner = taught(learner_of("links"), evaluate=False)
    ours = learner.evaluate()
    both = learner.evaluate(protocol="snapshot")
    for metric, value in ours.whole.items():
        assert both.whole[metric] == value
    counts = [test["count"] for test in both.tests]
    pooled = sum(t["mrr_snapshot"] * n for t, n in zip(both.tests, counts, strict=True))
    assert both.whole["mrr_snapshot"] == pytest.approx(pooled / sum(counts))
    assert both.forgetting == ours.forgetting
    assert not any(name.endswith("_snapshot") for name in ours.whole)


def test_results_name_the_protocol_and_carry_both(tmp_path: Path) -> None:
    results = dicgrl.run(
        ring(), "lower", protocol="snapshot", out=tmp_path / "run", device="cpu", **LINKS
    )
    assert "own part" in results["protocol"]["snapshot"]
    for part in results["parts"]:
        for pooled in (part["whole"], part["average"]):
            assert {"mrr", "mrr_snapshot", "hits@1_snapshot", "hits@10_snapshot"} <= set(pooled)
    again = Learner.load(tmp_path / "run")
    assert again.tests[-1] == results["parts"][-1]["tests"]


def test_a_finished_run_is_measured_when_it_is_resumed(tmp_path: Path) -> None:
    given = {"out": tmp_path / "run", "device": "cpu", **LINKS}
    before = dicgrl.run(ring(), "lower", **given)
    after = dicgrl.run(ring(), "lower", resume=True, protocol="snapshot", **given)
    assert "mrr_snapshot" not in before["parts"][-1]["whole"]
    assert "mrr_snapshot" in after["parts"][-1]["whole"]
    assert after["parts"][-1]["whole"]["mrr"] == before["parts"][-1]["whole"]["mrr"]


def test_a_frozen_model_forgets_nothing_under_it() -> None:
    learner = learner_of("links", "frozen", lr=0.2)
    first = []
    for part in ring():
        learner.learn(part)
        first.append(learner.evaluate(protocol="snapshot").tests[0])
    assert len({test["mrr_snapshot"] for test in first}) == 1
    assert first[-1]["mrr"] <= first[0]["mrr"]


def test_it_is_refused_where_it_says_nothing() -> None:
    learner = taught(learner_of("nodes"), 1)
    with pytest.raises(UserError, match="protocol snapshot ranks entities"):
        learner.evaluate(protocol="snapshot")
    with pytest.raises(UserError, match="unknown protocol 'snapshots'; did you mean 'snapshot'"):
        learner.evaluate(protocol="snapshots")
    with pytest.raises(UserError, match="protocol snapshot ranks entities"):
        plan_runs(circles(), model="gat", changes=NODES, protocol="snapshot")
    with pytest.raises(UserError, match="--merged there is only one"):
        plan_runs(ring(), merged=True, changes=LINKS, protocol="snapshot")

"""Runs part by part: what they measure and write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dicgrl import (
    KnowledgeStream,
    Learner,
    UserError,
)
from dicgrl.jobs.changing import ChangeOptions
from dicgrl.jobs.learn import learn_facts
from dicgrl.jobs.results import results_of
from tests.runs import measured, read_json, recipe_of, run
from tests.stores import FILES, kept
from tests.tiny import (
    learner_of,
    ring,
    stream_of,
    taught,
)

KEYS = {
    "dataset",
    "task",
    "model",
    "strategy",
    "recipe",
    "seed",
    "device",
    "settings",
    "protocol",
    "parts",
    "forgetting",
    "backward_transfer",
    "forward_transfer",
    "peak_memory_bytes",
}


PART_KEYS = {
    "part",
    "learn_seconds",
    "evaluate_seconds",
    "new_examples",
    "replayed_examples",
    "positives",
    "candidates",
    "tests",
    "whole",
    "average",
}


@pytest.mark.parametrize(
    ("kind", "metrics"),
    [("links", {"mrr", "hits@1", "hits@3", "hits@10"}), ("nodes", {"accuracy"})],
)
def test_results_have_the_documented_shape(kind: str, metrics: set[str], tmp_path: Path) -> None:
    stream = stream_of(kind)
    results = run(stream, recipe_of(kind, "dicgrl"), seed=3, out=tmp_path)
    assert read_json(tmp_path / "results.json") == json.loads(json.dumps(results))
    assert results.keys() >= KEYS
    assert (results["dataset"], results["seed"], results["device"]) == (stream.name, 3, "cpu")
    assert (results["task"], results["strategy"]) == (str(stream.task), "dicgrl")
    assert results["protocol"] and results["peak_memory_bytes"] > 0
    assert [part["part"] for part in results["parts"]] == [0, 1, 2]
    for number, part in enumerate(results["parts"]):
        assert part.keys() >= PART_KEYS
        assert part["new_examples"] == len(stream[number].train)
        assert part["learn_seconds"] > 0 and part["evaluate_seconds"] > 0
        assert [test["part"] for test in part["tests"]] == list(range(number + 1))
        for test, given in zip(part["tests"], stream, strict=False):
            assert test["count"] == len(given.test)
        for values in (*part["tests"], part["whole"], part["average"]):
            assert metrics <= values.keys()
            assert all(0 <= values[metric] <= 1 for metric in metrics)
    first, *later = results["parts"]
    assert first["replayed_examples"] == first["candidates"] == 0
    assert all(part["replayed_examples"] > 0 and part["candidates"] > 0 for part in later)
    assert all(-1 <= results[name] <= 1 for name in ("forgetting", "backward_transfer"))
    assert results["forgetting"] == later[-1]["forgetting"]


def test_a_run_is_told_part_by_part_and_epoch_by_epoch(tmp_path: Path) -> None:
    told: list[int] = []
    epochs: list[tuple[int, int]] = []
    results = run(
        ring(),
        recipe_of("links", "emr"),
        out=tmp_path,
        on_part=lambda results: told.append(len(results["parts"])),
        on_epoch=lambda part, report: epochs.append((part, report.epoch)),
    )
    assert told == [1, 2, 3]
    assert [part["epochs"] for part in results["parts"]] == [3, 3, 3]
    assert epochs == [(part, epoch) for part in range(3) for epoch in (1, 2, 3)]
    lines = (tmp_path / "trace.jsonl").read_text(encoding="utf-8").splitlines()
    traced = [json.loads(line) for line in lines]
    assert [(line["part"], line["epoch"]) for line in traced] == epochs
    assert all(line["loss"] > 0 and 0 <= line["validation"] <= 1 for line in traced)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == FILES


def test_results_read_every_test_as_often_however_many_parts_follow() -> None:
    class Watched(dict[str, Any]):
        reads = 0

        def __getitem__(self, key: str) -> Any:
            self.reads += 1
            return super().__getitem__(key)

    learner = taught(learner_of("links"), 3)
    expected = results_of(learner, {})
    watched = [[Watched(test) for test in tests] for tests in learner.tests]
    learner.tests = [list(tests) for tests in watched]
    found = results_of(learner, {})
    assert len({test.reads for tests in watched for test in tests}) == 1
    assert measured(found) == measured(expected)


@pytest.mark.parametrize("strategy", ["lower", "dicgrl"])
def test_streams_with_little_in_them(strategy: str, tmp_path: Path) -> None:
    known = [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "a")]
    for number, parts in enumerate(
        [[known], [known, known], [known, [], [("d", "r", "a")]], [known, [known[0]]]]
    ):
        stream = KnowledgeStream.from_labels("little", parts)
        out = tmp_path / str(number)
        results = run(stream, recipe_of("links", strategy), out=out)
        assert len(results["parts"]) == len(parts)
        assert results["parts"][-1]["tests"] == [] and results["forgetting"] is None
        again = run(stream, recipe_of("links", strategy), out=out, resume=True)
        assert measured(again) == measured(results)


def test_test_sets_may_come_late_or_not_with_every_part() -> None:
    with_tests = KnowledgeStream.from_labels(
        "late", [[(f"e{i}", "r", f"e{i + 1}") for i in range(20)]], test=0.3
    )[0]
    bare = KnowledgeStream.from_labels("late", [[("e0", "r", "e2"), ("x", "r", "y")]])[0]
    stream = KnowledgeStream("late", (bare, with_tests, bare))
    results = run(stream, recipe_of("links"))
    assert [len(part["tests"]) for part in results["parts"]] == [0, 1, 1]
    last = results["parts"][-1]
    assert last["tests"][0]["part"] == 1 and last["whole"] == pytest.approx(last["average"])
    assert results["forgetting"] is not None and results["retention"] is None


@pytest.mark.parametrize(("kind", "strategy"), [("links", "dicgrl"), ("nodes", "ewc")])
def test_the_last_model_is_enough(kind: str, strategy: str, tmp_path: Path) -> None:
    stream, recipe, out = stream_of(kind), recipe_of(kind, strategy), tmp_path / "run"
    everything = run(stream, recipe, out=tmp_path / "all")
    assert kept(tmp_path / "all") == [1, 2, 3]
    for parts in (1, 2):
        run(stream[:parts], recipe, out=out, resume=True, keep="last")
        assert kept(out) == [parts]
    again = run(stream, recipe, out=out, resume=True)  # as it was begun
    assert kept(out) == [3]
    assert measured(again) == measured(everything)
    assert measured(read_json(out / "results.json")) == measured(everything)
    one, other = (Learner.load(place, device="cpu") for place in (out, tmp_path / "all"))
    assert one.tests == other.tests
    if kind == "links":
        assert one.predict("e1", "plus 1") == other.predict("e1", "plus 1")
    # One may change one's mind, either way.
    run(stream, recipe, out=tmp_path / "all", resume=True, keep="last")
    assert kept(tmp_path / "all") == [3]
    assert Learner.load(tmp_path / "all", device="cpu").num_parts == 3


def test_facts_that_arrive_later_keep_as_the_run_did(tmp_path: Path) -> None:
    facts = tmp_path / "facts.tsv"
    facts.write_text("e1\tlikes\te2\n")
    run(ring(), recipe_of("links"), out=tmp_path / "run", keep="last")
    learn_facts(tmp_path / "run", facts, ChangeOptions("cpu"))
    assert kept(tmp_path / "run") == [4]
    facts.write_text("e2\tlikes\te1\n")
    learn_facts(tmp_path / "run", facts, ChangeOptions("cpu", keep="all"))
    assert kept(tmp_path / "run") == [4, 5]
    facts.write_text("e1\tlikes\te3\n")
    results = learn_facts(tmp_path / "run", facts, ChangeOptions("cpu")).results
    assert kept(tmp_path / "run") == [6] and len(results["parts"]) == 6
    with pytest.raises(UserError, match="unknown keep 'lst'; did you mean 'last'"):
        learn_facts(tmp_path / "run", facts, ChangeOptions("cpu", keep="lst"))

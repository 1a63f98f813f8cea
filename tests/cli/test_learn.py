"""`dicgrl learn`: triples become the next part of a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dicgrl import (
    KnowledgeGraph,
    Learner,
)
from dicgrl.jobs import changing as jobs
from tests.cli.helpers import DICGRL, Cli, refused
from tests.runs import files_in

pytestmark = pytest.mark.usefixtures("trained_runs_here")


@pytest.mark.parametrize("run", ["divided", "plain"])
def test_new_facts_become_the_next_part_of_a_run(cli: Cli, run: str) -> None:
    shutil.copytree(run, "mine")
    run = "mine"
    before = json.loads(Path(run, "results.json").read_text())
    Path("new.tsv").write_text("e1\tlikes\tnewcomer\nnewcomer\tstep1\te2\n")
    assert cli("predict", run, "--head", "newcomer", "--relation", "likes").code == 2
    outcome = cli("learn", run, "new.tsv", "--device", "cpu", "--json")
    assert outcome.code == 0
    results = json.loads(outcome.out)
    assert results == json.loads(Path(run, "results.json").read_text())
    assert results["dataset"] == before["dataset"] == "ring"
    assert len(results["parts"]) == len(before["parts"]) + 1
    assert results["parts"][-1]["new_examples"] == 2
    assert [part["tests"] for part in results["parts"][:-1]] == [
        p["tests"] for p in before["parts"]
    ]
    found = cli("predict", run, "--head", "e1", "--relation", "likes", "-k", "99", "--json")
    assert {"label": "newcomer", "known": True}.items() <= next(
        answer for answer in json.loads(found.out) if answer["known"]
    ).items()
    # Once more: a run goes on as often as facts arrive.
    Path("more.tsv").write_text("newcomer\tlikes\te3\n")
    assert cli("learn", run, "more.tsv", "--device", "cpu").code == 0
    assert Learner.load(run, device="cpu").num_parts == len(before["parts"]) + 2


def test_facts_that_are_all_known_are_no_part(cli: Cli) -> None:
    shutil.copytree("plain/", "run")
    held = files_in("run")
    known = Path("ring/1/train.txt").read_text(encoding="utf-8").splitlines(keepends=True)[:3]
    Path("facts.tsv").write_text("".join(known))
    words = ("learn", "run", "facts.tsv", "--device", "cpu")
    assert cli(*words) == (0, "nothing new: 3 facts, 3 known already\n", "")
    before = json.loads(Path("run/results.json").read_text(encoding="utf-8"))
    assert json.loads(cli(*words, "--json").out)["parts"] == before["parts"]
    assert held == files_in("run")
    for fact in ("e0\tplus 1\te9\n", "e0\tnever seen\te1\n", "never seen\tplus 1\te1\n"):
        Path("facts.tsv").write_text("".join(known) + fact)
        code, out, _ = cli(*words, "--json")
        assert code == 0 and json.loads(out)["parts"][-1]["new_examples"] == 1


def test_a_new_label_that_is_the_name_of_another_is_mentioned(cli: Cli) -> None:
    shutil.copytree("divided/", "run")
    Path("facts.tsv").write_text("Number One\tplus 1\te2\ne100\tplus 1\te3\n")
    code, out, err = cli("learn", "run", "facts.tsv", "--device", "cpu")
    assert code == 0 and "2 entities arrived; learned 2 new" in out
    assert err.startswith("warning: 'Number One': learned as new") and err.count("\n") == 1


def test_facts_that_cannot_be_learned_leave_the_run_as_it_was(cli: Cli) -> None:
    Path("bad.tsv").write_text("e1\tlikes\n")
    before = files_in("plain")
    for run, file in (("plain", "bad.tsv"), ("plain", "none.tsv"), ("nodes", "bad.tsv")):
        outcome = cli("learn", run, file, "--device", "cpu")
        assert outcome.code == 2 and outcome.err.startswith("error:")
    assert before == files_in("plain")


def test_nothing_is_measured_by_what_is_learned_nor_twice(cli: Cli) -> None:
    shutil.copytree("plain/", "run")
    taught = Path("ring/0/train.txt").read_text(encoding="utf-8").splitlines(keepends=True)[:3]
    Path("day/0").mkdir(parents=True)
    Path("day/0/train.txt").write_text("neo\tplus 1\te1\nneo\tplus 2\te2\n")
    Path("day/0/test.txt").write_text("neo\tplus 5\te5\nneo\tplus 1\te1\n" + "".join(taught))
    words = ("learn", "run", "day", "--device", "cpu")
    code, out, err = cli(*words)
    assert (code, err) == (0, "") and "left out of 7 facts: 4 known already" in out
    graph = Learner.load("run", device="cpu").trainer.graph
    assert isinstance(graph, KnowledgeGraph)
    assert len(graph.rows("test", graph.num_parts - 1)) == 1
    again = "nothing new: 7 facts, 6 known already, 1 held out to measure with\n"
    assert cli(*words) == (0, again, "")


def test_names_beside_facts_are_understood_also_where_nothing_else_is_new(cli: Cli) -> None:
    shutil.copytree("plain/", "run")
    Path("day").mkdir()
    Path("day/facts.tsv").write_text("neo\tplus 1\te1\n")
    Path("day/labels.tsv").write_text("neo\tMr. Anderson\n")
    assert cli("learn", "run", "day/facts.tsv", "--device", "cpu").code == 0
    asked = ("predict", "run", "--head", "Mr. Anderson", "--relation", "plus 1")
    assert cli(*asked).code == 0
    Path("day/labels.tsv").write_text("neo\tThe One\n")
    assert "nothing new: 1 fact" in cli("learn", "run", "day/facts.tsv", "--device", "cpu").out
    assert cli("predict", "run", "--head", "The One", "--relation", "plus 1").code == 0
    refused(cli(*asked), "unknown entity 'Mr. Anderson'")


def test_facts_that_were_held_out_are_not_learned_later(cli: Cli) -> None:
    facts = [f"e{i}\tplus {k}\te{(i + k) % 20}" for i in range(20) for k in (1, 2, 5)]
    Path("facts.tsv").write_text("\n".join(facts) + "\n", encoding="utf-8")
    words = ("--valid", "0.1", "--test", "0.2", "--out", "mine", "--json")
    assert cli("run", "facts.tsv", *DICGRL, *words).code == 0
    before = files_in("mine")
    told = "nothing new: 60 facts, 42 known already, 18 held out to measure with\n"
    assert cli("learn", "mine", "facts.tsv").out == told
    assert before == files_in("mine")
    Path("facts.tsv").write_text("\n".join([*facts, "e1\tplus 1\tnobody"]), encoding="utf-8")
    results = json.loads(cli("learn", "mine", "facts.tsv", "--json").out)
    assert results["parts"][1]["new_examples"] == 1 and "nothing_new" not in results
    assert results["facts"] == {"given": 61, "known": 42, "held_out": 18}
    assert json.loads(cli("learn", "mine", "facts.tsv", "--json").out)["nothing_new"]
    learner = Learner.load("mine", device="cpu")
    assert learner.learn([tuple(line.split("\t")) for line in facts]).new_examples == 0
    assert learner.num_parts == 2


def test_what_is_measured_after_learning_can_be_chosen(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(jobs.EVALUATE, "sample", 4)
    sizes = [
        test["count"]
        for test in json.loads(Path("plain/results.json").read_text())["parts"][-1]["tests"]
    ]
    Path("new.tsv").write_text("e1\tplus 1\tnewcomer\n")
    found = {}
    for choice in ((), ("--evaluate", "sample"), ("--evaluate", "all"), ("--evaluate", "none")):
        shutil.rmtree("run", ignore_errors=True)
        shutil.copytree("plain", "run")
        code, out, _ = cli("learn", "run", "new.tsv", "--device", "cpu", "--json", *choice)
        results = json.loads(out)
        assert code == 0 and results == json.loads(Path("run/results.json").read_text())
        assert results["parts"][-1]["positives"]["new"] > 0
        found[choice[-1] if choice else "default"] = results["parts"][-1]
        again = Learner.load("run", device="cpu")
        assert again.evaluation().tests == results["parts"][-1]["tests"]
    sample, everything, nothing = found["sample"], found["all"], found["none"]
    assert found["default"]["tests"] == sample["tests"]
    assert 0 < sample["sampled"] <= 4 < sum(sizes)
    for test, size in zip(sample["tests"], sizes, strict=True):
        assert (test["count"], test["sampled"] < size) == (size, True)
    assert everything["sampled"] is None and not any("sampled" in t for t in everything["tests"])
    assert [test["count"] for test in everything["tests"]] == sizes
    assert (nothing["tests"], nothing["whole"], nothing["retention"]) == ([], {}, None)
    assert nothing["evaluate_seconds"] == 0
    for choice, words in (
        ("sample", f"measured on {sample['sampled']} of {sum(sizes)} test examples in"),
        ("none", "nothing was measured"),
        ("all", "; measured in"),
    ):
        shutil.rmtree("run")
        shutil.copytree("plain", "run")
        out = cli("learn", "run", "new.tsv", "--device", "cpu", "--evaluate", choice).out
        assert words in " ".join(out.split())
        noted = f"after part {len(sizes)} {words.removesuffix(' in')}"
        assert (noted in " ".join(cli("info", "run").out.split())) == (choice == "sample")
    before = files_in("run")
    refused(
        cli("learn", "run", "new.tsv", "--evaluate", "some"),
        "unknown evaluate 'some'",
        "sample",
        "all",
        "none",
    )
    assert before == files_in("run")

"""What the command line says of how far to trust a run: probabilities, reliability, warnings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dicgrl import Learner
from dicgrl.report.reliability_picture import draw_reliability
from tests.cli.helpers import Cli, refused

pytestmark = pytest.mark.usefixtures("trained_runs_here")


def test_score_adds_the_probability_that_predict_gives(cli: Cli) -> None:
    lines = cli("score", "plain", "ring/0/test.txt", "--probability").out.splitlines()
    learner = Learner.load("plain", device="cpu")
    assert lines
    for line in lines:
        head, relation, tail, score, probability = line.split("\t")
        answers = {a.label: a for a in learner.predict(head=head, relation=relation, k=99)}
        assert float(score) == pytest.approx(answers[tail].score, rel=1e-4)
        assert float(probability) == pytest.approx(answers[tail].probability, rel=1e-3)
    rows = cli("predict", "plain", "--head", "e1", "--relation", "plus 1", "--file", "x").err
    assert "--file holds the questions" in rows
    Path("asked.tsv").write_text("e1\tplus 1\t?\n")
    told = [
        row.split("\t") for row in cli("predict", "plain", "--file", "asked.tsv").out.splitlines()
    ]
    assert all(0 < float(row[5]) < 1 for row in told)


def test_a_run_without_held_out_facts_says_that_it_has_no_probabilities(cli: Cli) -> None:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu")
    learner.learn([("a", "likes", "b"), ("b", "likes", "c")])
    learner.save("bare")
    out = cli("predict", "bare", "--head", "a", "--relation", "likes").out
    assert "no probabilities: no facts are held out to tell them from (--valid 0.1)" in out
    Path("facts.tsv").write_text("a\tlikes\tb\n")
    refused(cli("score", "bare", "facts.tsv", "--probability"), "no probabilities")
    assert cli("score", "bare", "facts.tsv").code == 0


def test_results_info_and_the_table_tell_the_calibration_error(cli: Cli) -> None:
    for run in ("divided", "nodes"):
        parts = json.loads(cli("info", run, "--json").out)["parts"]
        for part in parts:
            found = part["calibration"]
            assert found["basis"] == "validation" and found["count"] > 0
            assert sum(each["count"] for each in found["bins"]) == found["count"]
        assert "calibration" in cli("info", run).out
    again = cli("run", "ring", "--strategy", "lower", "--set", "epochs=1", "--set", "dim=4")
    assert "; calibration error " in again.out


def test_a_run_that_learns_nothing_is_said_in_one_line_for_each_part(cli: Cli) -> None:
    rows = [f"p{i}\tknows\tp{(i + step) % 90}\n" for i in range(90) for step in (1, 2, 3, 4)]
    Path("people.tsv").write_text("".join(rows))
    options = ("--valid", "0.2", "--set", "lr=1e-9", "--set", "epochs=1", "--device", "cpu")
    code, out, err = cli("run", "people.tsv", *options, "--out", "people", "--json")
    assert code == 0
    (doubt,) = json.loads(out)["parts"][0]["warnings"]
    assert doubt.startswith("the model knows nothing: of ") and "try " in doubt
    assert f"warning: part 0: {doubt}\n" in err
    Path("more.tsv").write_text("p1\tknows\tp50\n")
    assert "warning: part 1: the model knows nothing" in cli("learn", "people", "more.tsv").err


def test_the_picture_shows_the_parts_that_were_measured(tmp_path: Path) -> None:
    results = json.loads(Path("divided/results.json").read_text(encoding="utf-8"))
    assert draw_reliability(results, tmp_path / "picture.svg")
    text = (tmp_path / "picture.svg").read_text(encoding="utf-8")
    assert text.count('id="axes_') == 3
    for part in results["parts"]:
        part["calibration"] = None
    assert not draw_reliability(results, tmp_path / "nothing.svg")
    assert not (tmp_path / "nothing.svg").exists()

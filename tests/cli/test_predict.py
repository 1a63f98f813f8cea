"""`dicgrl predict`: one question, or many of a file."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from dicgrl import (
    Learner,
)
from tests.cli.helpers import Cli, refused

pytestmark = pytest.mark.usefixtures("trained_runs_here")


def test_predict_answers_with_names_scores_and_what_is_known(cli: Cli) -> None:
    question = ("predict", "divided", "--head", "Number One", "--relation", "plus 2")
    code, out, err = cli(*question, "-k", "3", "--json")
    assert (code, err) == (0, "")
    answers = json.loads(out)
    expected = Learner.load("divided", device="cpu").predict(head="e1", relation="plus 2", k=3)
    assert [a["label"] for a in answers] == [a.label for a in expected]
    keys = {"label", "name", "score", "known", "held_out", "probability"}
    assert all(a.keys() == keys and 0 < a["probability"] < 1 for a in answers)
    assert [a["score"] for a in answers] == sorted((a["score"] for a in answers), reverse=True)
    code, out, err = cli(*question, "-k", "99")
    assert (code, err) == (0, "")
    assert out.startswith("Number One -- plus 2 -- ?\n")
    assert "Number Three (e3)" in out and "known" in out and "new" in out and "probability" in out


def test_predict_asks_for_any_of_the_three_and_for_classes(cli: Cli) -> None:
    for words in (
        ("divided", "--relation", "plus 1", "--tail", "e3"),
        ("divided", "--head", "e1", "--tail", "e3"),
        ("nodes", "--node", "n3"),
    ):
        answers = json.loads(cli("predict", *words, "--json").out)
        assert len(answers) >= 2 and any(answer["known"] for answer in answers)


def test_questions_of_a_file_are_answered_like_each_alone(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = "e1\tplus 1\t?\n?\tplus 2\te3\ne99\tplus 1\t?\ne1\t?\te2\n"
    Path("asked.tsv").write_text(content)
    every = ("predict", "plain", "--file", "asked.tsv", "-k", "2")
    lines = cli(*every, "--skip-unknown", "--json").out.splitlines()
    learner = Learner.load("plain", device="cpu")
    for line, asked in zip(
        lines, (("e1", "plus 1", None), (None, "plus 2", "e3"), ("e1", None, "e2")), strict=True
    ):
        expected = [asdict(answer) for answer in learner.predict(*asked, k=2)]
        found = json.loads(line)
        assert found["question"] == [field or "?" for field in asked]
        assert found["answers"] == expected
    rows = [line.split("\t") for line in cli(*every, "--skip-unknown").out.splitlines()]
    best = learner.predict(head="e1", relation="plus 1", k=2)
    assert [row[:3] for row in rows[:2]] == [["e1", "plus 1", answer.label] for answer in best]
    assert len(rows) == 6 and {row[4] for row in rows} <= {"known", "held out", "new"}
    stopped = cli(*every)
    assert stopped.code == 2 and "asked.tsv:3: unknown entity 'e99'" in stopped.err
    refused(cli(*every, "--head", "e1"), "leave out the others")
    Path("asked.tsv").write_text("e1\tplus 1\te2\n")
    refused(cli(*every), "asked.tsv:1:")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"n3\nn4\n")))
    rows = [line.split("\t") for line in cli("predict", "nodes", "--file", "-").out.splitlines()]
    shares = {node: sum(float(row[2]) for row in rows if row[0] == node) for node in ("n3", "n4")}
    assert shares == pytest.approx({"n3": 1.0, "n4": 1.0}, abs=1e-4)

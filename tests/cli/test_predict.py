"""`dicgrl predict`: one question, or many of a file."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from dicgrl import KnowledgeGraph, Learner, Reading, Run
from tests.cli.helpers import Cli, refused, write

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


@pytest.mark.parametrize(
    ("name", "lines", "options"),
    [
        ("asked.tsv", ["e1\tplus 1\t", "\tplus 2\te3"], ()),
        ("asked.csv", ["who,how,what", "e1,plus 1,", ",plus 2,e3"], ("--columns", "who,how,what")),
        ("asked.txt", ["e1;plus 1;?", ";plus 2;e3"], ("--sep", ";")),
        ("asked.jsonl", ['["e1", "plus 1", null]', '[null, "plus 2", "e3"]'], ()),
        (
            "asked.data",
            ['{"head": "e1", "relation": "plus 1"}', '{"relation": "plus 2", "tail": "e3"}'],
            ("--format", "jsonl"),
        ),
    ],
)
def test_what_is_asked_may_be_empty_in_a_file_of_any_form(
    cli: Cli, name: str, lines: list[str], options: tuple[str, ...]
) -> None:
    write("plain.tsv", "e1\tplus 1\t?", "?\tplus 2\te3")
    expected = cli("predict", "plain", "--file", "plain.tsv", "--json")
    write(name, *lines)
    assert cli("predict", "plain", "--file", name, *options, "--json") == expected
    assert expected.code == 0 and len(expected.out.splitlines()) == 2


@pytest.mark.parametrize("ending", ["parquet", "feather", "sqlite"])
def test_questions_come_from_tables_with_nothing_in_place_of_what_is_asked(
    cli: Cli, ending: str
) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    write("plain.tsv", "e1\tplus 1\t?", "e2\tplus 2\t?")
    frame = pandas.DataFrame(
        {"head": ["e1", "e2"], "relation": ["plus 1", "plus 2"], "tail": [None, None]}
    )
    name = f"asked.{ending}"
    if ending == "sqlite":
        with closing(sqlite3.connect(name)) as database:
            frame.to_sql("asked", database, index=False)
    else:
        (frame.to_parquet if ending == "parquet" else frame.to_feather)(name)
    expected = cli("predict", "plain", "--file", "plain.tsv", "--json")
    assert cli("predict", "plain", "--file", name, "--json") == expected
    assert Run("plain", device="cpu").predict(file=name) == Run("plain", device="cpu").predict(
        file=frame.rename(columns={"head": "who"}), reading=Reading("who,relation,tail")
    )
    refused(cli("score", "plain", name), name)


def test_how_questions_are_read_is_about_a_file_of_triples(cli: Cli) -> None:
    asked = ("predict", "plain", "--head", "e1", "--relation", "plus 1")
    refused(cli(*asked, "--sep", ";"), "how to read --file")
    write("nodes.tsv", "n3")
    refused(cli("predict", "nodes", "--file", "nodes.tsv", "--columns", "1,2"), "one in each line")
    write("asked.jsonl", '["e1", null, null]')
    refused(cli("predict", "plain", "--file", "asked.jsonl"), "asked.jsonl:1:")
    write("asked.jsonl", '["e1", "plus 1", 1.5]')
    refused(cli("predict", "plain", "--file", "asked.jsonl"), "asked.jsonl:1:", "not a label")


def test_answers_are_taken_from_a_file_of_candidates(cli: Cli) -> None:
    asked = ("predict", "divided", "--head", "e7", "--relation", "plus 2", "--json", "-k", "99")
    write("some.txt", "e9", "Number One", "e12", "e9")
    found = json.loads(cli(*asked, "--among", "some.txt").out)
    assert {answer["label"] for answer in found} == {"e1", "e9", "e12"}  # e9 is there once
    every = [a for a in json.loads(cli(*asked).out) if a["label"] in {"e1", "e9", "e12"}]
    for answer, other in zip(found, every, strict=True):  # likelier where there are few
        assert answer["probability"] >= other["probability"]
        assert answer | {"probability": 0} == other | {"probability": 0}
    write("some.txt", "e9", "nobody", "e12")
    refused(cli(*asked, "--among", "some.txt"), "some.txt:2: unknown entity 'nobody'")
    skipped = cli(*asked, "--among", "some.txt", "--skip-unknown")
    assert {answer["label"] for answer in json.loads(skipped.out)} == {"e9", "e12"}
    assert "1 line has an unknown label" in skipped.err
    write("some.txt", "nobody")
    nothing = cli(*asked, "--among", "some.txt", "--skip-unknown")
    assert nothing.code == 2 and "among names no entity" in nothing.err
    Path("some.txt").write_text("")
    refused(cli(*asked, "--among", "some.txt"), "some.txt: the file is empty")


def test_answers_are_taken_from_what_was_seen_there(cli: Cli) -> None:
    graph = Learner.load("plain", device="cpu").trainer.graph
    assert isinstance(graph, KnowledgeGraph)
    numbers = {label: number for number, label in enumerate(graph.relations)}

    def ends(relation: str, column: int) -> set[str]:
        rows = graph.train[graph.train[:, 1] == numbers[relation]]
        return set(graph.entities.labels(rows[:, column]))

    asked = ("predict", "plain", "--head", "e4", "--relation", "plus 5", "--json", "-k", "99")
    for among, expected in (
        ("seen", ends("plus 5", 2)),
        ("tails:plus 1", ends("plus 1", 2)),
        ("heads:plus 2", ends("plus 2", 0)),
    ):
        found = json.loads(cli(*asked, "--among", among).out)
        assert {answer["label"] for answer in found} == expected - {"e4"}
    write("asked.tsv", "e4\tplus 5\t?", "?\tplus 1\te9")
    lines = cli(
        "predict", "plain", "--file", "asked.tsv", "--among", "seen", "--json", "-k", "99"
    ).out.splitlines()
    labels = [{answer["label"] for answer in json.loads(line)["answers"]} for line in lines]
    assert labels == [ends("plus 5", 2) - {"e4"}, ends("plus 1", 0) - {"e9"}]
    write("asked.tsv", "e4\tplus 5\t?", "e1\t?\te9")
    stopped = cli("predict", "plain", "--file", "asked.tsv", "--among", "seen")
    assert stopped.code == 2 and "asked.tsv:2: among is about entities" in stopped.err


def test_relations_of_pairs_of_a_file(cli: Cli) -> None:
    write("pairs.tsv", "e1\t?\te2", "e5\t?\te7")
    lines = cli("predict", "divided", "--file", "pairs.tsv", "--json").out.splitlines()
    found = [[answer["label"] for answer in json.loads(line)["answers"]] for line in lines]
    learner = Learner.load("divided", device="cpu")
    expected = learner.predict_relations([("e1", "e2"), ("e5", "e7")])
    assert found == [[answer.label for answer in answers] for answers in expected]
    assert all(sorted(labels) == ["plus 1", "plus 2", "plus 5"] for labels in found)


def test_standard_input_holds_one_thing(cli: Cli) -> None:
    refused(cli("predict", "plain", "--file", "-", "--among", "-"), "cannot hold both")

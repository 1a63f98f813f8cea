"""Runs of `--merged` answer and learn like others."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from dicgrl import (
    Learner,
    load_stream,
)
from dicgrl.jobs.merged import run_merged
from tests.cli.helpers import DIVIDED, LINKS, NODES, Cli, refused
from tests.runs import measured, recipe_of

pytestmark = pytest.mark.usefixtures("trained_runs_here")


@pytest.mark.parametrize(
    ("source", "words"),
    [("ring", LINKS), ("ring", (*DIVIDED, "--disentangled")), ("circles", NODES)],
    ids=["plain", "divided", "nodes"],
)
def test_a_run_on_all_parts_answers_the_same_questions(
    cli: Cli, source: str, words: tuple[str, ...]
) -> None:
    results = json.loads(cli("run", source, *words, "--merged", "--out", "mine", "--json").out)
    stream = load_stream(f"./{source}")
    settings = Learner.load("mine", device="cpu").settings
    expected = Learner(settings=settings, device="cpu", names=stream.names)
    expected.learn(stream.merged()[0])
    for metric, value in expected.evaluate().whole.items():
        assert results["test"][metric] == value
    question = {"node": "n3"} if source == "circles" else {"head": "e1", "relation": "plus 2"}
    asked = [word for key, value in question.items() for word in (f"--{key}", value)]
    answers = json.loads(cli("predict", "mine", *asked, "--json").out)
    assert answers == [asdict(answer) for answer in expected.predict(**question)]
    assert cli("export", "mine", "--to", "vectors").code == 0
    if source == "circles":
        return
    assert "Number One" in Path("vectors/entities.tsv").read_text(encoding="utf-8")
    lines = cli("score", "mine", "ring/2/test.txt").out.splitlines()
    triples = [(h, r, t) for h, r, t, _ in (line.split("\t") for line in lines)]
    scores = [float(line.split("\t")[3]) for line in lines]
    assert scores == pytest.approx(expected.score(triples), rel=1e-5) and scores
    explained = cli("explain", "mine", "--triple", "e1", "plus 2", "e3")
    assert explained.code == 0
    assert ("Would activate" in explained.out) == bool(settings.components)
    Path("new.tsv").write_text("e1\tlikes\tnewcomer\n")
    assert cli("learn", "mine", "new.tsv", "--device", "cpu").code == 0
    assert cli("predict", "mine", "--head", "newcomer", "--relation", "likes").code == 0
    assert cli("compare", "mine").code == 0  # it has learned part by part since
    refused(cli("compare", "plain", "mine"), "plain and mine have learned different graphs")


@pytest.mark.parametrize("form", ["--disentangled", "--plain"])
def test_what_follows_is_learned_by_the_default_strategy(form: str, cli: Cli) -> None:
    division = DIVIDED if form == "--disentangled" else LINKS
    assert cli("run", "ring", *division, "--merged", form, "--out", "mine", "--json").code == 0
    before = Learner.load("mine", device="cpu")
    Path("more.tsv").write_text("e1\tplus 1\tnewcomer\n", encoding="utf-8")
    learned = cli("learn", "mine", "more.tsv", "--json")
    assert (learned.code, learned.err) == (0, "")
    results = json.loads(learned.out)
    assert results["strategy"] == "fresh"
    assert [part["part"] for part in results["parts"]] == [0, 1]
    assert results["parts"][1]["replayed_examples"] > 0
    after = Learner.load("mine", device="cpu")
    assert after.settings.as_dict() == before.settings.as_dict()


def test_a_plain_model_that_would_be_fine_tuned_says_so(cli: Cli) -> None:
    """As releases up to 0.1 merged parts."""
    stream = load_stream("./ring")
    run_merged(stream, recipe_of("links", "lower"), device="cpu", out=Path("mine"))
    Path("more.tsv").write_text("e1\tplus 1\tnewcomer\n", encoding="utf-8")
    code, out, err = cli("learn", "mine", "more.tsv", "--json")
    assert code == 0 and json.loads(out)["strategy"] == "lower"
    assert "fine-tuned, and forgets" in err and "continued with fresh" in err


def test_the_older_spelling_means_the_same(cli: Cli) -> None:
    results = json.loads(cli("run", "ring", "--model", "transe", *LINKS, "--whole", "--json").out)
    assert measured(results) == measured(json.loads(Path("merged/results.json").read_text()))
    refused(cli("run", "ring", "--whole", "--strategy", "emr"), "--strategy emr", "--merged")

"""`dicgrl run`, `predict`, `score`, `export`, `explain`, `compare` as a user meets them."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tarfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file

from dicgrl import KnowledgeGraph, Learner, NetworkGraph, load_stream
from dicgrl.cli import main
from tests.test_jobs import measured
from tests.tiny import learner_of, taught, write_circles, write_growing_circles, write_ring

SMALL = ("--device", "cpu", "--set", "epochs=2")
LINKS = (*SMALL, "--set", "dim=8", "--set", "batch=16")
DIVIDED = (*LINKS, "--set", "components=4", "--set", "top=2")
NODES = (*SMALL, "--set", "hidden=4")


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """Run `dicgrl` in this process, exit code included."""

    def run(*words: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["dicgrl", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        assert ended.value.code is None or isinstance(ended.value.code, int)
        return Outcome(ended.value.code or 0, captured.out, captured.err)

    return run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two streams and a run of each kind, made by the command line."""
    place = tmp_path_factory.mktemp("place")
    write_ring(place / "ring")
    write_circles(place / "circles")
    (place / "growing").mkdir()
    write_growing_circles(place / "growing")
    (place / "ring" / "labels.tsv").write_text("e1\tNumber One\ne3\tNumber Three\n")
    before = sys.argv
    for words in (
        ("ring", *DIVIDED, "--out", place / "divided"),
        ("ring", *LINKS, "--strategy", "lower", "--out", place / "plain"),
        ("circles", *NODES, "--out", place / "nodes"),
        ("growing/circles", *NODES, "--out", place / "begun"),
        ("ring", *LINKS, "--whole", "--out", place / "whole"),
    ):
        sys.argv = ["dicgrl", "run", str(place / words[0]), *map(str, words[1:]), "--json"]
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    sys.argv = before
    return place


@pytest.fixture(autouse=True)
def here(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder of one's own, with the streams and runs in it."""
    for name in ("FORCE_COLOR", "DICGRL_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    for path in place.iterdir():
        (tmp_path / path.name).symlink_to(path)


def refused(outcome: Outcome, *mentioned: str, code: int = 2) -> None:
    """A message on stderr that mentions what it should, and nothing on stdout."""
    assert (outcome.code, outcome.out) == (code, ""), outcome
    for words in mentioned:
        assert words in outcome.err
    if outcome.err.startswith("error: "):
        assert outcome.err.count("\n") == 1


# Run.


def test_a_run_prints_a_table_after_every_part(cli: Cli) -> None:
    code, out, err = cli("run", "ring", *DIVIDED, "--out", "run")
    assert (code, err) == (0, "")
    for number in range(3):
        assert f"ring, transe disentangled, dicgrl, after part {number}, in per cent\n" in out
    tables = out.split("after part ")[1:]
    for number, table in enumerate(tables):
        rows = [line for line in table.splitlines() if line.startswith("│ part ")]
        assert len(rows) == number + 1
        assert "whole" in table and "average" in table
        assert ("forgetting" in table) == (number > 0)
        assert "learned" in table and ("neighbours share" in table) == (number > 0)
    for heading in ("MRR", "H@1", "H@3", "H@10", "count"):
        assert heading in tables[0]
    assert "run/curves.png" in out
    (names,) = Path("run").glob("names-*.json")
    assert {path.name for path in Path("run").iterdir()} == {
        "config.json",
        names.name,
        "results.json",
        "trace.jsonl",
        "curves.png",
        "part-0",
        "part-1",
        "part-2",
    }
    assert Path("run/curves.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_what_the_folder_holds(cli: Cli) -> None:
    code, out, err = cli("run", "circles", *NODES, "--out", "run", "--seed", "2", "--json")
    assert (code, err) == (0, "")
    results = json.loads(out)
    assert results == json.loads(Path("run/results.json").read_text(encoding="utf-8"))
    assert (results["strategy"], results["model"], results["seed"]) == ("dicgrl", "gat", 2)
    assert "accuracy" in results["parts"][-1]["whole"]


def test_without_a_folder_nothing_is_written(cli: Cli) -> None:
    before = sorted(Path().iterdir())
    assert cli("run", "ring", *LINKS, "--strategy", "lower").code == 0
    assert sorted(Path().iterdir()) == before


def test_several_strategies_are_compared(cli: Cli) -> None:
    words = ("run", "ring", *LINKS, "--strategy", "lower, emr,lower", "--out", "both")
    code, out, err = cli(*words)
    assert (code, err) == (0, "")
    assert {path.name for path in Path("both").iterdir()} == {"lower", "emr", "curves.png"}
    table = out[out.index("after the last part") :]
    rows = [line.split()[1] for line in table.splitlines() if line.startswith("│ ")]
    assert rows == ["lower", "emr"]
    for name in ("lower", "emr"):
        alone = cli("run", "ring", *LINKS, "--strategy", name, "--json")
        held = json.loads(Path("both", name, "results.json").read_text(encoding="utf-8"))
        assert measured(json.loads(alone.out)) == measured(held)
    refused(cli(*words), "holds a run already")
    again = cli(*words, "--resume", "--json")
    assert [each["strategy"] for each in json.loads(again.out)] == ["lower", "emr"]


def test_settings_without_use_are_refused_before_anything_runs(cli: Cli) -> None:
    run = ("run", "ring", *LINKS, "--out", "never", "--strategy")
    useless = "strength has no effect with strategy upper; ewc uses it"
    refused(cli(*run, "upper", "--set", "strength=100"), useless)
    refused(cli(*run, "lower,upper", "--set", "budget=5%"), "strategy lower, upper")
    refused(cli(*run, "lower", "--set", "top=2"), "top has no effect on a plain model")
    merged = ("run", "ring", *LINKS, "--out", "never", "--whole")
    refused(cli(*merged, "--set", "top=2"), "top has no effect on a plain model")
    grid = ("sweep", "ring", *SMALL, "--strategy", "lower", "--set", "budget=5%", "--grid", "dim=4")
    refused(cli(*grid), "budget has no effect with strategy lower")
    assert not Path("never").exists()
    both = ("run", "ring", *LINKS, "--strategy", "lower,emr", "--set", "budget=5%", "--json")
    assert [each["strategy"] for each in json.loads(cli(*both).out)] == ["lower", "emr"]
    divided = ("--strategy", "lower", "--disentangled", "--set", "top=2", "--json")
    assert json.loads(cli("run", "ring", *LINKS, *divided).out)["settings"]["top"] == 2


def test_the_same_seed_gives_the_same_numbers(cli: Cli) -> None:
    first, again, other = (
        measured(json.loads(cli("run", "ring", *DIVIDED, "--json", "--seed", seed).out))
        for seed in ("1", "1", "2")
    )
    assert first == again and first["parts"] != other["parts"]


def test_a_recipe_may_carry_what_has_no_effect(cli: Cli) -> None:
    Path("mine.toml").write_text("[continual]\nmax_drift = 0.1\nshield = '2x'\n")
    words = ("run", "circles", *NODES, "--strategy", "lower", "--recipe", "mine.toml", "--json")
    code, out, err = cli(*words)
    assert (code, err) == (0, "")
    assert json.loads(out)["settings"]["max_drift"] == 0.1


def test_a_finished_run_that_is_resumed_shows_its_last_table(cli: Cli) -> None:
    code, out, _ = cli("run", "ring", *LINKS, "--strategy", "lower", "--out", "plain", "--resume")
    assert code == 0 and out.count("after part") == 1 and "after part 2" in out


def test_a_stream_without_test_sets_says_so(cli: Cli) -> None:
    for path in Path(shutil.copytree("ring", "bare")).glob("*/*.txt"):
        if path.name != "train.txt":
            path.unlink()
    code, out, err = cli("run", "bare", *DIVIDED, "--out", "run")
    assert (code, err) == (0, "")
    assert out.count("no test set so far: nothing was measured") == 3
    assert Path("run/curves.png").exists()
    aside = cli("run", "bare", *DIVIDED, "--test", "0.2", "--valid", "0.1", "--json")
    assert json.loads(aside.out)["parts"][-1]["whole"]["mrr"] > 0


def test_a_stream_of_one_part_and_one_without_new_entities(cli: Cli) -> None:
    train = Path("ring/0/train.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("one.tsv").write_text("".join(train))
    Path("old").mkdir()
    for number in range(3):  # the same facts again and again
        Path("old", f"{number}.tsv").write_text("".join(train[number:]))
    for source in ("one.tsv", "old"):
        assert cli("run", source, *DIVIDED, "--out", f"run of {source}").code == 0
        answer = cli("predict", f"run of {source}", "--head", "e0", "--relation", "plus 1")
        assert answer.code == 0


RUN_MISTAKES = {
    "a folder is missing": (("ring", "--resume"), ("--resume", "--out")),
    "resume and whole": (("ring", "--resume", "--whole", "--out", "x"), ("without --merged",)),
    "keep and whole": (("ring", "--keep", "last", "--whole"), ("--keep", "without --merged")),
    "keep": (("ring", "--keep", "least", "--out", "never"), ("'least'", "did you mean 'last'?")),
    "strategy and whole": (
        ("ring", "--whole", "--strategy", "dicgrl"),
        ("--strategy dicgrl", "--merged", "leave out"),
    ),
    "a run is there": (("ring", "--out", "plain"), ("plain", "holds a run already", "--resume")),
    "whole over a run": (("ring", "--whole", "--out", "plain"), ("holds a run already",)),
    "resume over whole": (("ring", "--resume", "--out", "whole"), ("whole", "part by part")),
    "other settings": (
        ("ring", *LINKS, "--strategy", "lower", "--set", "lr=0.5", "--resume", "--out", "plain"),
        ("lr=0.003, not 0.5", "choose another folder"),
    ),
    "other seed": (
        ("ring", *LINKS, "--strategy", "lower", "--seed", "9", "--resume", "--out", "plain"),
        ("seed=0, not 9",),
    ),
    "other strategy": (
        ("ring", *LINKS, "--strategy", "emr", "--resume", "--out", "plain"),
        ("strategy='lower', not 'emr'",),
    ),
    "other data": (("circles", "--resume", "--out", "plain"), ("dataset='ring', not 'circles'",)),
    "a file": (("ring", "--out", "ring/0/train.txt"), ("is a file", "a folder")),
    "dataset": (("film",), ("'film'", "did you mean 'films'?", "FB15k-237", "cora")),
    "path": (("./nowhere",), ("./nowhere: no such file or folder",)),
    "model": (("ring", "--model", "tranes"), ("did you mean 'transe'?", "convkb", "gat")),
    "strategy": (
        ("ring", "--strategy", "lower,dicgl"),
        ("'dicgl'", "did you mean 'dicgrl'?", "emr, ewc, frozen, gem, lower, upper"),
    ),
    "empty strategy": (("ring", "--strategy", "lower,"), ("unknown strategy ''", "upper")),
    "option": (("ring", "--modl", "x"), ("--modl", "--model")),
    "setting": (("ring", "--set", "epoch=3"), ("'epoch'", "did you mean 'epochs'?", "budget")),
    "no effect": (("circles", "--set", "max_drift=0.1"), ("max_drift", "no effect on a network")),
    "budget": (("ring", "--set", "budget=lots"), ("budget='lots'", "10%", "all")),
    "choice": (("ring", "--set", "selection=tap"), ("'tap'", "did you mean 'top'?", "sample")),
    "recipe": (("ring", "--recipe", "papr"), ("'papr'", "did you mean 'paper'?")),
    "set strategy": (("ring", "--set", "strategy=emr"), ("--strategy emr",)),
    "set model": (("ring", "--set", "model=convkb"), ("--model convkb",)),
    "plain dicgrl": (("ring", "--plain"), ("disentangled model",)),
    "plain dicgrl, late": (
        ("ring", "--strategy", "lower,dicgrl", "--set", "components=0"),
        ("disentangled model",),
    ),
    "model of nodes": (("ring", "--model", "gat"), ("gat", "knowledge graph", "transe")),
    "model of links": (("circles", "--model", "transe"), ("transe", "network", "gat or sage")),
    "device": (("ring", "--device", "tpu"), ("device 'tpu'", "cpu")),
    "seed": (("ring", "--seed", "-1"), ("--seed",)),
    "large seed": (("ring", "--seed", str(1 << 40)), ("--seed",)),
    "share": (("ring", "--test", "2"), ("test=2",)),
}


@pytest.mark.parametrize("name", RUN_MISTAKES)
def test_a_mistake_is_refused_before_anything_is_written(cli: Cli, name: str) -> None:
    words, mentioned = RUN_MISTAKES[name]
    out = () if "--out" in words or "--resume" in words else ("--out", "never")
    kept = {path: path.read_bytes() for path in Path("plain/").rglob("*") if path.is_file()}
    refused(cli("run", *words, *out), *mentioned)
    assert not Path("never").exists()
    now = {path: path.read_bytes() for path in Path("plain/").rglob("*") if path.is_file()}
    assert now == kept


@pytest.mark.parametrize(
    ("words", "mentioned"),
    [
        (("ring", *SMALL, "--set", "dim=100000000000"), "dim=100000000000"),
        (("ring", *SMALL, "--set", "dim=100000000000", "--whole"), "dim=100000000000"),
        (("ring", *SMALL, "--set", "negatives=9999999999"), "negatives=9999999999"),
        (
            ("ring", *SMALL, "--model", "convkb", "--set", "negatives=99999999"),
            "negatives=99999999",  # ids and scores alone would fit
        ),
        (("circles", *SMALL, "--set", "hidden=100000000000"), "hidden=100000000000"),
    ],
)
def test_a_model_that_cannot_fit_is_refused(
    cli: Cli, words: tuple[str, ...], mentioned: str
) -> None:
    refused(cli("run", *words, "--out", "never"), mentioned, "GB of memory", "GB are free")
    assert not Path("never").exists()


def test_a_second_strategy_that_cannot_run_stops_the_first(cli: Cli) -> None:
    assert cli("run", "ring", *LINKS, "--strategy", "emr", "--out", "both/emr").code == 0
    outcome = cli("run", "ring", *LINKS, "--strategy", "lower,emr", "--out", "both")
    refused(outcome, "both/emr", "holds a run already")
    assert not Path("both/lower").exists()


def test_a_part_that_is_empty_is_named(cli: Cli) -> None:
    shutil.copytree("ring", "hole")
    Path("hole/1/train.txt").write_text("")
    refused(cli("run", "hole", *DIVIDED), "hole/1/train.txt", "empty")


def test_a_run_that_diverges_can_be_gone_on_with(cli: Cli) -> None:
    """The first part is learned and kept, the second one fails; that is nobody's mistake."""
    words = ("run", "ring", *LINKS, "--strategy", "lower", "--set", "p=2")
    wild = ("--set", "later_rate=1e33", "--out", "run")
    outcome = cli(*words, *wild)
    assert outcome.code == 1 and "training diverged" in outcome.err
    assert outcome.out.count("after part") == 1
    assert Learner.load("run", device="cpu").num_parts == 1
    assert cli(*words, *wild, "--resume").code == 1
    assert Learner.load("run", device="cpu").num_parts == 1


# Questions to a run.


def test_predict_answers_with_names_scores_and_what_is_known(cli: Cli) -> None:
    question = ("predict", "divided", "--head", "Number One", "--relation", "plus 2")
    code, out, err = cli(*question, "-k", "3", "--json")
    assert (code, err) == (0, "")
    answers = json.loads(out)
    expected = Learner.load("divided", device="cpu").predict(head="e1", relation="plus 2", k=3)
    assert [a["label"] for a in answers] == [a.label for a in expected]
    assert all(a.keys() == {"label", "name", "score", "known", "aside"} for a in answers)
    assert [a["score"] for a in answers] == sorted((a["score"] for a in answers), reverse=True)
    code, out, err = cli(*question, "-k", "99")
    assert (code, err) == (0, "")
    assert out.startswith("Number One -- plus 2 -- ?\n")
    assert "Number Three (e3)" in out and "known" in out and "new" in out


def test_predict_asks_for_any_of_the_three_and_for_classes(cli: Cli) -> None:
    for words in (
        ("divided", "--relation", "plus 1", "--tail", "e3"),
        ("divided", "--head", "e1", "--tail", "e3"),
        ("nodes", "--node", "n3"),
    ):
        answers = json.loads(cli("predict", *words, "--json").out)
        assert len(answers) >= 2 and any(answer["known"] for answer in answers)


@pytest.mark.parametrize(
    ("source", "words"),
    [("ring", LINKS), ("ring", (*DIVIDED, "--disentangled")), ("circles", NODES)],
    ids=["plain", "divided", "nodes"],
)
def test_a_run_on_all_parts_answers_the_same_questions(
    cli: Cli, source: str, words: tuple[str, ...]
) -> None:
    results = json.loads(cli("run", source, *words, "--whole", "--out", "merged", "--json").out)
    stream = load_stream(f"./{source}")
    settings = Learner.load("merged", device="cpu").settings
    expected = Learner(settings=settings, device="cpu", names=stream.names)
    expected.learn(stream.merged()[0])
    for metric, value in expected.evaluate().whole.items():
        assert results["test"][metric] == value
    question = {"node": "n3"} if source == "circles" else {"head": "e1", "relation": "plus 2"}
    asked = [word for key, value in question.items() for word in (f"--{key}", value)]
    answers = json.loads(cli("predict", "merged", *asked, "--json").out)
    assert answers == [asdict(answer) for answer in expected.predict(**question)]
    assert cli("export", "merged", "--to", "vectors").code == 0
    if source == "circles":
        return
    assert "Number One" in Path("vectors/entities.tsv").read_text(encoding="utf-8")
    lines = cli("score", "merged", "ring/2/test.txt").out.splitlines()
    triples = [(h, r, t) for h, r, t, _ in (line.split("\t") for line in lines)]
    scores = [float(line.split("\t")[3]) for line in lines]
    assert scores == pytest.approx(expected.score(triples), rel=1e-5) and scores
    explained = cli("explain", "merged", "--triple", "e1", "plus 2", "e3")
    assert explained.code == (0 if settings.components else 2)
    Path("new.tsv").write_text("e1\tlikes\tnewcomer\n")
    assert cli("learn", "merged", "new.tsv", "--device", "cpu").code == 0
    assert cli("predict", "merged", "--head", "newcomer", "--relation", "likes").code == 0
    assert cli("compare", "merged").code == 0  # it has learned part by part since
    refused(cli("compare", "plain", "merged"), "plain and merged have learned different graphs")


ASKED_WRONG = {
    "nothing": (("predict", "plain"), ("exactly one",)),
    "everything": (
        ("predict", "plain", "--head", "e1", "--relation", "plus 1", "--tail", "e2"),
        ("exactly one",),
    ),
    "head": (
        ("predict", "plain", "--head", "e77", "--relation", "plus 1"),
        ("unknown entity 'e77'", "did you mean 'e7'"),
    ),
    "relation": (
        ("predict", "plain", "--head", "e1", "--relation", "plus"),
        ("unknown relation 'plus'", "'plus 1'"),
    ),
    "none at all": (("predict", "plain", "--head", "e1", "--relation", "plus 1", "-k", "0"), "-k"),
    "node of links": (("predict", "plain", "--node", "e1"), ("node is for networks",)),
    "new classes": (("predict", "nodes", "--node", "n1", "--new"), ("node alone",)),
    "head of nodes": (("predict", "nodes", "--head", "n1"), ("node alone",)),
    "unknown node": (("predict", "nodes", "--node", "n77"), ("unknown node 'n77'", "'n7'")),
    "no run": (("predict", "ring", "--head", "e1"), ("ring: no run here",)),
    "no folder": (("predict", "nowhere", "--head", "e1"), ("nowhere: no run here",)),
    "score: no file": (("score", "plain", "nothing.tsv"), ("nothing.tsv: no such file",)),
    "score: a folder": (("score", "plain", "ring"), ("ring", "file")),
    "score: a picture": (("score", "plain", "plain/curves.png"), ("curves.png:1", "UTF-8")),
    "score: a table": (("score", "plain", "circles/edges.csv"), ("edges.csv:1", "3 fields")),
    "score: nodes": (("score", "nodes", "ring/0/test.txt"), ("classifies nodes",)),
    "explain: unknown": (
        ("explain", "divided", "--triple", "e1", "plus 1", "e77"),
        ("unknown entity 'e77'", "did you mean 'e7'"),
    ),
    "explain: nearly a name": (
        ("explain", "divided", "--triple", "Numer One", "plus 1", "e3"),
        ("unknown entity 'Numer One'", "did you mean 'Number One'"),
    ),
    "explain: relation": (
        ("explain", "divided", "--triple", "e1", "Number One", "e3"),
        ("unknown relation 'Number One'\n",),
    ),
    "predict: nearly a name": (
        ("predict", "divided", "--head", "number one", "--relation", "plus 1"),
        ("unknown entity 'number one'", "did you mean 'Number One'"),
    ),
    "explain: plain": (
        ("explain", "plain", "--triple", "e1", "plus 1", "e2"),
        ("plain model", "disentangled"),
    ),
    "explain: nodes": (("explain", "nodes", "--triple", "a", "b", "c"), ("classifies nodes",)),
    "explain: two": (("explain", "divided", "--triple", "e1", "plus 1"), ("--triple", "3")),
    "explain: nothing": (("explain", "divided"), ("--triple",)),
    "export: there": (("export", "plain", "--to", "ring"), ("ring", "already")),
    "export: in a file": (
        ("export", "plain", "--to", "ring/0/test.txt/x"),
        ("ring/0/test.txt: is a file; expected a folder",),
    ),
    "export: nowhere": (("export", "plain"), ("--to",)),
    "compare: nothing": (("compare",), ("RUN",)),
    "compare: tasks": (("compare", "plain", "nodes"), ("different tasks",)),
    "compare: no run": (("compare", "plain", "ring"), ("ring: no run here",)),
    "compare: whole": (("compare", "plain", "whole"), ("--whole",)),
    "compare: picture": (("compare", "plain", "--out", "x.bmp"), ("x.bmp", ".png, .svg or .pdf")),
}


@pytest.mark.parametrize("name", ASKED_WRONG)
def test_a_wrong_question_is_one_message(cli: Cli, name: str) -> None:
    words, mentioned = ASKED_WRONG[name]
    before = sorted(Path().iterdir())
    refused(cli(*words), *mentioned)
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        (verb, name)
        for verb in ("predict", "score", "export", "explain", "run")
        for name in ("config.json", "part-1/report.json", "part-2/model.safetensors")
    ]
    + [("compare", "config.json")],  # which reads the results alone
)
def test_a_damaged_run_is_refused_by_every_command(cli: Cli, verb: str, name: str) -> None:
    damaged = Path(shutil.copytree("divided/", "damaged")) / name
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 4
    damaged.write_bytes(content)
    words = {
        "predict": ("predict", "damaged", "--head", "e1", "--relation", "plus 1"),
        "score": ("score", "damaged", "ring/0/test.txt"),
        "export": ("export", "damaged", "--to", "never"),
        "explain": ("explain", "damaged", "--triple", "e1", "plus 1", "e2"),
        "compare": ("compare", "damaged", "--out", "never.png"),
        "run": ("run", "ring", *DIVIDED, "--out", "damaged", "--resume"),
    }[verb]
    refused(cli(*words), "damaged")
    assert not Path("never").exists() and not Path("never.png").exists()


def test_compare_needs_results(cli: Cli) -> None:
    shutil.copytree("plain/", "half")
    Path("half/results.json").unlink()
    refused(cli("compare", "half"), "half", "no results yet", "--resume")
    Path("half/results.json").write_text("{")
    refused(cli("compare", "half"), "results.json", "damaged")


def test_compare_says_how_a_run_that_was_saved_from_python_gets_results(cli: Cli) -> None:
    taught(learner_of("links", "lower"), 1).save("saved")
    code, out, err = cli("compare", "saved")
    assert (code, out) == (2, "") and "saved from Python" in err and "--resume" not in err
    fact = Path("ring/0/train.txt").read_text(encoding="utf-8").splitlines()[0]
    Path("known.tsv").write_text(fact, encoding="utf-8")
    assert cli("learn", "saved", "known.tsv", "--device", "cpu").code == 0
    assert cli("compare", "saved").code == 0


def test_score_gives_every_line_its_score(cli: Cli) -> None:
    code, out, err = cli("score", "divided", "ring/0/train.txt")
    assert (code, err) == (0, "")
    lines = Path("ring/0/train.txt").read_text(encoding="utf-8").splitlines()
    assert [line.rpartition("\t")[0] for line in out.splitlines()] == lines
    triples = [tuple(line.split("\t")) for line in lines]
    expected = Learner.load("divided", device="cpu").score(triples)  # type: ignore[arg-type]
    found = [float(line.rpartition("\t")[2]) for line in out.splitlines()]
    assert found == pytest.approx(expected, rel=1e-5)


def test_edges_that_are_all_known_are_no_part(cli: Cli) -> None:
    shutil.copytree("begun/", "run")
    more = ("learn", "run", "growing/more", "--device", "cpu")
    assert "arrived" in cli(*more).out
    held = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    graph = Learner.load("run", device="cpu").run.graph
    assert isinstance(graph, NetworkGraph)
    ends = graph.nodes.labels(graph.edges[:3].ravel())
    Path("again").mkdir()
    pairs = [f"{a},{b}\n" for a, b in zip(ends[::2], ends[1::2], strict=True)]
    Path("again/edges.csv").write_text("source,target\n" + "".join(pairs))
    assert cli("learn", "run", "again").out == "nothing new: 3 facts, 3 known already\n"
    assert held == {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}


def test_a_new_label_that_is_the_name_of_another_is_mentioned(cli: Cli) -> None:
    shutil.copytree("divided/", "run")
    Path("facts.tsv").write_text("Number One\tplus 1\te2\ne100\tplus 1\te3\n")
    code, out, err = cli("learn", "run", "facts.tsv", "--device", "cpu")
    assert code == 0 and "2 entities arrived; learned 2 new" in out
    assert err.startswith("warning: 'Number One': learned as new") and err.count("\n") == 1


def test_what_cannot_be_written_is_one_message(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise SafetensorError("No space left on device (os error 28)")

    monkeypatch.setattr("dicgrl.store.checkpoint.save_file", full)
    code, _, err = cli("export", "divided", "--to", "vectors")
    assert code == 1 and "vectors.safetensors: cannot be written (No space left" in err
    assert err.count("\n") == 1 and not Path("vectors").exists()


def test_arrays_are_for_everyone_whom_the_umask_allows(cli: Cli) -> None:
    before = os.umask(0o027)
    try:
        assert cli("export", "divided", "--to", "vectors").code == 0
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in Path("vectors").iterdir()} == {0o640}


def test_a_file_whose_name_is_no_text(cli: Cli) -> None:
    name = os.fsdecode(b"caf\xe9.tsv")
    Path(name).write_text("a\tr\tb\nb\tr\tc\n")
    assert cli("run", name, *DIVIDED, "--out", "run", "--json").code == 0
    assert json.loads(cli("info", "run", "--json").out)["dataset"] == "caf\ufffd"


def test_facts_that_are_all_known_are_no_part(cli: Cli) -> None:
    shutil.copytree("plain/", "run")
    held = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    known = Path("ring/1/train.txt").read_text(encoding="utf-8").splitlines(keepends=True)[:3]
    Path("facts.tsv").write_text("".join(known))
    words = ("learn", "run", "facts.tsv", "--device", "cpu")
    assert cli(*words) == (0, "nothing new: 3 facts, 3 known already\n", "")
    before = json.loads(Path("run/results.json").read_text(encoding="utf-8"))
    assert json.loads(cli(*words, "--json").out)["parts"] == before["parts"]
    assert held == {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    for fact in ("e0\tplus 1\te9\n", "e0\tnever seen\te1\n", "never seen\tplus 1\te1\n"):
        Path("facts.tsv").write_text("".join(known) + fact)
        code, out, _ = cli(*words, "--json")
        assert code == 0 and json.loads(out)["parts"][-1]["new_examples"] == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("triples.tsv", "head\trelation\ttail\ne1\tplus 1\te2\n"),
        ("triples.csv", "Subject,Predicate,Object\r\ne1,plus 1,e2\r\n"),
        ("triples.csv", '\ufeff"h","r","t"\n"e1","plus 1","e2"\n'),
    ],
)
def test_score_reads_what_learn_reads(cli: Cli, name: str, content: str) -> None:
    Path(name).write_bytes(content.encode())
    shutil.copytree("plain/", "run")
    code, out, err = cli("score", "run", name)
    assert (code, err) == (0, "")
    assert [line.split("\t")[:3] for line in out.splitlines()] == [["e1", "plus 1", "e2"]]
    assert cli("learn", "run", name, "--device", "cpu").code == 0
    assert Learner.load("run", device="cpu").run.model.num_relations == 3  # none of the header
    Path(name).write_bytes(content.replace("e2", "e99").encode())
    refused(cli("score", "run", name), f"{name}:2:", "'e99'")


@pytest.mark.parametrize(
    ("line", "mentioned"),
    [
        ("e1\tplus 1\te99\n", ("unknown entity 'e99'",)),
        ("e1\tminus 1\te2\n", ("unknown relation 'minus 1'",)),
        ("e1\tplus 1\n", ("expected 3 fields",)),
        ("e1\t\te2\n", ("field 2 of 3 is empty",)),
    ],
)
def test_a_line_that_cannot_be_scored_is_named_before_anything_is_printed(
    cli: Cli, line: str, mentioned: tuple[str, ...]
) -> None:
    Path("triples.tsv").write_text("e1\tplus 1\te2\n" * 4 + line + "e2\tplus 1\te3\n")
    refused(cli("score", "plain", "triples.tsv"), "triples.tsv:5:", *mentioned)


def test_triples_come_from_standard_input_as_well(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"e1\tplus 1\te2\ne1\tplus 1\te99\nNumber One\tplus 2\te3\n"
    Path("own.tsv").write_bytes(content)
    expected = cli("score", "plain", "own.tsv", "--skip-unknown")
    assert expected.code == 0 and len(expected.out.splitlines()) == 2
    assert expected.err == "warning: 1 line has an unknown label and is left out\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert cli("score", "plain", "-", "--skip-unknown") == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    refused(cli("score", "plain", "-"), "standard input:2: unknown entity 'e99'")
    refused(cli("score", "plain", "ring"), "ring: is a folder")


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
    assert len(rows) == 6 and {row[4] for row in rows} <= {"known", "set aside", "new"}
    stopped = cli(*every)
    assert stopped.code == 2 and "asked.tsv:3: unknown entity 'e99'" in stopped.err
    refused(cli(*every, "--head", "e1"), "leave out the others")
    Path("asked.tsv").write_text("e1\tplus 1\te2\n")
    refused(cli(*every), "asked.tsv:1:")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"n3\nn4\n")))
    rows = [line.split("\t") for line in cli("predict", "nodes", "--file", "-").out.splitlines()]
    shares = {node: sum(float(row[2]) for row in rows if row[0] == node) for node in ("n3", "n4")}
    assert shares == pytest.approx({"n3": 1.0, "n4": 1.0}, abs=1e-4)


def test_triples_of_ones_own_are_measured_like_a_test_set(cli: Cli) -> None:
    learner = Learner.load("plain", device="cpu")
    expected = learner.evaluation().tests[0]
    found = json.loads(cli("evaluate", "plain", "ring/0/test.txt", "--json", "--by-relation").out)
    names = ("mrr", "hits@1", "hits@3", "hits@10", "mean_rank", "count")
    assert {name: found[name] for name in names} == pytest.approx(
        {name: expected[name] for name in names}
    )
    assert (found["known"], found["unknown"]) == (0, 0)
    sides = found["relations"]
    assert sum(side["count"] for side in sides) == 2 * found["count"]
    mean = sum(side["mrr"] * side["count"] for side in sides) / (2 * found["count"])
    assert mean == pytest.approx(found["mrr"])
    learned = json.loads(cli("evaluate", "plain", "ring/0/train.txt", "--json").out)
    assert learned["known"] == learned["count"] > 0 and "relations" not in learned
    table = cli("evaluate", "plain", "ring/0/test.txt", "--by-relation").out
    assert "plus 1" in table and "all" in table
    Path("none.tsv").write_text("nobody\tplus 1\te2\n")
    refused(cli("evaluate", "plain", "none.tsv", "--skip-unknown"), "no triple to measure with")
    refused(cli("evaluate", "nodes", "ring/0/test.txt"), "about triples")


def test_triples_that_are_measured_filter_each_other(cli: Cli) -> None:
    """Two answers to one question that nobody knew of: each is ranked as if alone."""
    both, one = (
        json.loads(cli("evaluate", "plain", name, "--json").out)["mean_rank"]
        for name in _written({"both": ["e1", "e2"], "one": ["e1"]})
    )
    other = json.loads(cli("evaluate", "plain", *_written({"other": ["e2"]}), "--json").out)
    assert both <= (one + other["mean_rank"]) / 2
    learner = Learner.load("plain", device="cpu")
    scores = learner.score([("e9", "plus 5", "e1"), ("e9", "plus 5", "e2")])
    assert scores[0] != scores[1]  # one stands before the other, and is taken out
    assert both < (one + other["mean_rank"]) / 2


def _written(files: dict[str, list[str]]) -> list[str]:
    for name, tails in files.items():
        Path(name).write_text("".join(f"e9\tplus 5\t{tail}\n" for tail in tails))
    return list(files)


@pytest.mark.parametrize(("run", "label"), [("divided", "Number One"), ("nodes", "n3")])
def test_what_is_similar_points_in_the_same_direction(cli: Cli, run: str, label: str) -> None:
    assert cli("export", run, "--to", "vectors").code == 0
    name = "entities" if run == "divided" else "nodes"
    lines = Path(f"vectors/{name}.tsv").read_text(encoding="utf-8").splitlines()
    labels, names = zip(*(line.split("\t") for line in lines), strict=True)
    vectors = np.load(f"vectors/{name}.npy")
    for words, of in (((), vectors), (("--component", "0"), vectors[:, :1])):
        if words and run == "nodes":
            continue
        flat = of.reshape(len(of), -1)
        flat = flat / np.linalg.norm(flat, axis=1, keepdims=True)
        me = names.index(label)
        cosine = flat @ flat[me]
        best = np.sort(np.delete(cosine, me))[::-1][:3]
        found = json.loads(cli("similar", run, label, "-k", "3", *words, "--json").out)
        theirs = [cosine[labels.index(each["label"])] for each in found]
        assert [each["cosine"] for each in found] == pytest.approx(theirs, abs=1e-5)
        assert theirs == pytest.approx(best, abs=1e-5)  # nodes may have the same vectors
        assert len({me, *(labels.index(each["label"]) for each in found)}) == 4
    assert label in cli("similar", run, label).out
    refused(cli("similar", run, label, "--component", "9"), "component=9")
    refused(cli("similar", run, "nobody"), "'nobody'")


def test_exported_vectors_give_the_models_scores(cli: Cli) -> None:
    code, out, err = cli("export", "plain", "--to", "vectors")
    assert (code, err) == (0, "")
    files = {path.name for path in Path("vectors").iterdir()}
    assert files == {
        "entities.npy",
        "entities.tsv",
        "relations.npy",
        "relations.tsv",
        "vectors.safetensors",
    }
    assert all(name in out for name in files)
    arrays = load_file("vectors/vectors.safetensors")
    rows: dict[str, dict[str, int]] = {}
    for name in ("entities", "relations"):
        assert np.array_equal(np.load(f"vectors/{name}.npy"), arrays[name])
        lines = Path(f"vectors/{name}.tsv").read_text(encoding="utf-8").splitlines()
        assert len(lines) == len(arrays[name])
        rows[name] = {line.split("\t")[0]: i for i, line in enumerate(lines)}
    entity, relation = arrays["entities"].squeeze(1), arrays["relations"].squeeze(1)
    away = (
        entity[rows["entities"]["e3"]]
        + relation[rows["relations"]["plus 2"]]
        - entity[rows["entities"]["e9"]]
    )
    score = Learner.load("plain", device="cpu").score([("e3", "plus 2", "e9")])[0]
    assert -np.abs(away).sum() == pytest.approx(score, rel=1e-5)
    assert "e1\tNumber One" in Path("vectors/entities.tsv").read_text(encoding="utf-8")


def test_vectors_are_exported_from_python(tmp_path: Path) -> None:
    learner = taught(learner_of("links"), 1)
    for place in (str(tmp_path / "text"), tmp_path / "path"):
        assert set(learner.export(place)) == {path.name for path in Path(place).iterdir()}


def test_networks_and_divided_models_are_exported(cli: Cli) -> None:
    assert cli("export", "nodes", "--to", "x/nodes").code == 0
    arrays = load_file("x/nodes/vectors.safetensors")
    assert len(arrays["nodes"]) == 40 and len(arrays["classes"]) == 3
    assert len(Path("x/nodes/nodes.tsv").read_text().splitlines()) == 40
    assert arrays["attention_weight"].shape == (2, 2, 4)
    assert cli("export", "divided", "--to", "x/divided").code == 0
    arrays = load_file("x/divided/vectors.safetensors")
    assert arrays["entities"].shape[1:] == (4, 2)
    assert arrays["attention"].shape == (3, 4)
    assert arrays["attention"].sum(1) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("kind", ["nodes", "triple"])
@pytest.mark.parametrize("routing", ["learned", "published"])
def test_exported_attention_is_that_of_the_model(cli: Cli, kind: str, routing: str) -> None:
    """The weights of every triple's components, by the formula of docs/data.md."""
    words = ("--set", f"attention={kind}", "--set", f"routing={routing}", "--strategy", "lower")
    assert cli("run", "ring", *DIVIDED, *words, "--out", "run").code == 0
    assert cli("export", "run", "--to", "x").code == 0
    arrays = load_file("x/vectors.safetensors")
    assert "attention" not in arrays
    assert np.array_equal(np.load("x/attention_weight.npy"), arrays["attention_weight"])
    rows = {}
    for name in ("entities", "relations"):
        lines = Path(f"x/{name}.tsv").read_text(encoding="utf-8").splitlines()
        rows[name] = dict(zip((line.split("\t")[0] for line in lines), arrays[name], strict=True))
    for head, relation, tail in (("e3", "plus 1", "e9"), ("e12", "plus 5", "e4")):
        seen = [rows["entities"][head], rows["entities"][tail]]  # [K, size] each
        if kind == "triple":
            own = rows["relations"][relation]
            seen.append(np.broadcast_to(own, (4, own.shape[1])))
        logits = np.maximum(np.concatenate(seen, 1) @ arrays["attention_weight"], 0)
        alpha = np.exp(logits) / np.exp(logits).sum()
        found = json.loads(cli("explain", "run", "--triple", head, relation, tail, "--json").out)
        for component, weight in found["components"].items():
            assert weight == pytest.approx(alpha[int(component)], rel=1e-5)


def test_explain_names_components_and_neighbours_that_share_them(cli: Cli) -> None:
    words = ("explain", "divided", "--triple", "e1", "plus 2", "e3")
    found = json.loads(cli(*words, "--json", "-k", "99").out)
    assert found["triple"] == ["Number One", "plus 2", "Number Three"] and found["known"]
    assert len(found["components"]) == 2
    assert sum(found["activated"].values()) == len(found["best"]) <= found["candidates"]
    for entry in found["best"]:
        assert entry["shared"] and {str(c) for c in entry["shared"]} <= found["components"].keys()
        near = {"Number One", "Number Three"} & {entry["triple"][0], entry["triple"][2]}
        assert bool(near) == (entry["order"] == 1)
    assert found["triple"] not in [entry["triple"] for entry in found["best"]]
    merits = [entry["merit"] for entry in found["best"]]
    assert merits == sorted(merits, reverse=True)
    code, out, err = cli(*words)
    assert (code, err) == (0, "")
    assert "Number One -- plus 2 -- Number Three\n" in out
    assert "known" in out and "Would activate" in out


@pytest.mark.parametrize(("ending", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_compare_makes_a_table_and_a_picture(cli: Cli, ending: str, begins: bytes) -> None:
    code, out, err = cli("compare", "divided", "plain", "--out", f"both.{ending}")
    assert (code, err) == (0, "")
    assert Path(f"both.{ending}").read_bytes().startswith(begins)
    rows = [line for line in out.splitlines() if line.startswith("│ ")]
    assert [row.split()[1] for row in rows] == ["dicgrl", "lower"]
    for folder, row in zip(("divided", "plain"), rows, strict=True):
        last = json.loads(Path(folder, "results.json").read_text())["parts"][-1]
        assert f"{last['whole']['hits@10'] * 100:.1f}" in row
        assert f"{last['average']['mrr'] * 100:.1f}" in row
    compared = json.loads(cli("compare", "divided", "plain", "--json").out)
    assert [run["strategy"] for run in compared] == ["dicgrl", "lower"]


def test_compare_refuses_runs_of_different_graphs(cli: Cli) -> None:
    """Facts or features that differ, whatever the folders are called."""
    for source, file, old, new, words in (
        ("ring", "1/train.txt", "e10", "e9", LINKS),
        ("circles", "nodes.csv", ",1,1\n", ",1,0\n", NODES),
    ):
        path = Path(shutil.copytree(source, f"other/{source}")) / file
        path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
        out = f"other run of {source}"
        words = (f"./other/{source}", *words, "--strategy", "lower", "--out", out)
        assert cli("run", *words).code == 0
        run = "plain" if source == "ring" else "nodes"
        refused(cli("compare", run, out, "--out", "x.png"), run, out, "different graphs")
        assert not Path("x.png").exists()


def test_compare_warns_of_different_questions(cli: Cli) -> None:
    for path in Path(shutil.copytree("ring", "bare")).glob("*/*.txt"):
        if path.name != "train.txt":
            path.unlink()
    words = ("run", "bare", *LINKS, "--strategy", "lower", "--valid", "0.1", "--test", "0.2")
    for seed in ("0", "1"):
        assert cli(*words, "--seed", seed, "--out", f"seed {seed}").code == 0
    code, out, err = cli("compare", "seed 0", "seed 1", "--json")
    assert code == 0 and len(json.loads(out)) == 2
    assert err.startswith("warning: seed 0 and seed 1 hold out other sets of the same graph")
    shutil.copytree("plain/", "longer")
    Path("new.tsv").write_text("e1\tlikes\tnewcomer\n")
    assert cli("learn", "longer", "new.tsv", "--device", "cpu").code == 0
    code, out, err = cli("compare", "plain", "longer")
    assert code == 0 and err.startswith("warning: plain has learned 3 parts and longer 4")
    assert err.count("warning") == 1


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


def test_facts_that_cannot_be_learned_leave_the_run_as_it_was(cli: Cli) -> None:
    Path("bad.tsv").write_text("e1\tlikes\n")
    before = {p: p.read_bytes() for p in Path("plain").rglob("*") if p.is_file()}
    for run, file in (("plain", "bad.tsv"), ("plain", "none.tsv"), ("nodes", "bad.tsv")):
        outcome = cli("learn", run, file, "--device", "cpu")
        assert outcome.code == 2 and outcome.err.startswith("error:")
    assert before == {p: p.read_bytes() for p in Path("plain").rglob("*") if p.is_file()}


# Whole graphs that go on, and folders of runs.


@pytest.mark.parametrize(("form", "strategy"), [("--disentangled", "dicgrl"), ("--plain", "lower")])
def test_what_follows_a_whole_graph_is_learned_by_components_where_there_are_any(
    form: str, strategy: str, cli: Cli
) -> None:
    division = DIVIDED if form == "--disentangled" else LINKS
    assert cli("run", "ring", *division, "--whole", form, "--out", "merged", "--json").code == 0
    before = Learner.load("merged", device="cpu")
    Path("more.tsv").write_text("e1\tplus 1\tnewcomer\n", encoding="utf-8")
    results = json.loads(cli("learn", "merged", "more.tsv", "--json").out)
    assert results["strategy"] == strategy
    assert [part["part"] for part in results["parts"]] == [0, 1]
    after = Learner.load("merged", device="cpu")
    assert after.settings.as_dict() == before.settings.as_dict()
    assert after.settings.starts_from_neighbours == (strategy == "dicgrl")  # type: ignore[union-attr]


def test_a_run_and_folders_of_runs_are_not_mixed(cli: Cli) -> None:
    several = ("--strategy", "lower,ewc", "--out", "several")
    assert cli("run", "ring", *LINKS, *several, "--json").code == 0
    before = sorted(Path("several").iterdir())
    one = cli("run", "ring", *LINKS, "--strategy", "ewc", "--out", "several", "--resume")
    refused(one, "several: holds the runs ewc, lower")
    assert sorted(Path("several").iterdir()) == before
    refused(cli("run", "ring", *LINKS, "--strategy", "lower,ewc", "--out", "plain"), "of their own")


# Info.


@pytest.mark.parametrize("run", ["divided", "plain", "nodes", "whole"])
def test_info_says_what_a_run_is_and_what_its_parts_brought(run: str, cli: Cli) -> None:
    found = json.loads(cli("info", run, "--json").out)
    learner = Learner.load(run, device="cpu")
    assert found["settings"] == json.loads(json.dumps(learner.settings.as_dict()))
    assert found["whole"] == (run == "whole")
    assert found["bytes"] == sum(p.stat().st_size for p in Path(run).rglob("*") if p.is_file())
    kinds = ("nodes", "classes") if run == "nodes" else ("entities", "relations")
    vocabularies = [getattr(learner.run.graph, kind) for kind in kinds]
    for kind, vocabulary in zip(kinds, vocabularies, strict=True):
        assert sum(part[f"new_{kind}"] for part in found["parts"]) == len(vocabulary)
    results = json.loads((Path(run) / "results.json").read_text(encoding="utf-8"))
    for part, expected in zip(found["parts"], results["parts"], strict=True):
        assert expected.items() <= part.items()
    code, out, _ = cli("info", run)
    assert code == 0 and f"{found['strategy']}, recipe {found['recipe']}" in out
    rows = [line for line in out.splitlines() if line.startswith("│")]
    assert len(rows) == len(found["parts"])
    metric = "accuracy" if run == "nodes" else "hits@10"
    assert f"{100 * results['parts'][-1]['whole'][metric]:.1f}" in rows[-1]


def test_info_on_what_is_no_run(cli: Cli) -> None:
    refused(cli("info", "ring"), "no run here")
    shutil.copytree("plain", "damaged")
    (Path("damaged") / "part-1" / "labels.json").write_text("[]", encoding="utf-8")
    refused(cli("info", "damaged"), "part-1", "damaged")


# A network that grows. `more` is the last part of the circles; `nodes` learned them in one go.


def as_tables(more: Path) -> Path:
    return more


def as_tables_and_array(more: Path) -> Path:
    rows = [line.split(",") for line in Path(more, "nodes.csv").read_text().splitlines()]
    place = Path("with array")
    place.mkdir()
    place.joinpath("nodes.csv").write_text("\n".join(f"{r[0]},{r[1]},{r[3]}" for r in rows))
    shutil.copy(more / "edges.csv", place)
    np.save(place / "features.npy", np.array([row[4:] for row in rows[1:]], dtype=float))
    return place


def as_arrays(more: Path) -> Path:
    rows = [line.split(",") for line in Path(more, "nodes.csv").read_text().splitlines()[1:]]
    edges = [line.split(",") for line in Path(more, "edges.csv").read_text().splitlines()[1:]]
    np.savez(
        "more.npz",
        nodes=[row[0] for row in rows],
        classes=[row[1] for row in rows],
        split=[("train", "valid", "test").index(row[3]) for row in rows],
        features=np.array([row[4:] for row in rows], dtype=float),
        edges=edges,
    )
    return Path("more.npz")


def as_authors(more: Path) -> Path:
    rows = [line.split(",") for line in Path(more, "nodes.csv").read_text().splitlines()[1:]]
    edges = Path(more, "edges.csv").read_text().splitlines()[1:]
    place = Path("as authors")
    (place / "0").mkdir(parents=True)
    (place / "features.txt").write_text("\n".join(" ".join([r[0], *r[4:]]) for r in rows))
    (place / "labels.txt").write_text("\n".join(f"{r[0]} {r[1]}" for r in rows))
    (place / "0/edgelist.txt").write_text("\n".join(edge.replace(",", " ") for edge in edges))
    for split in ("train", "valid", "test"):
        chosen = [f"{row[0]} {row[1]}" for row in rows if row[3] == split]
        (place / f"0/{split}.txt").write_text("\n".join(chosen))
    return place


def as_archive(more: Path) -> Path:
    with tarfile.open("more.tar.gz", "w:gz") as archive:
        archive.add(more, "more")
    return Path("more.tar.gz")


@pytest.mark.parametrize(
    "layout", [as_tables, as_tables_and_array, as_arrays, as_authors, as_archive]
)
def test_a_network_that_grows_is_that_of_one_go(cli: Cli, layout: Callable[[Path], Path]) -> None:
    shutil.copytree("begun", "mine")
    path = layout(Path("growing/more"))
    outcome = cli("learn", "mine", path, "--device", "cpu", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    whole = json.loads(Path("nodes/results.json").read_text())
    assert measured(json.loads(outcome.out))["parts"] == measured(whole)["parts"]
    for name in ("data.safetensors", "labels.json", "model.safetensors", "strategy.safetensors"):
        assert Path("mine/part-2", name).read_bytes() == Path("nodes/part-2", name).read_bytes()
    assert json.loads(Path("mine/part-2/labels.json").read_text()) == {
        "nodes": [f"n{i}" for i in range(32, 40)],
        "classes": ["green"],
    }
    mine, nodes = (Learner.load(run, device="cpu").run.graph for run in ("mine", "nodes"))
    assert isinstance(mine, NetworkGraph) and isinstance(nodes, NetworkGraph)
    assert mine.nodes == nodes.nodes and mine.classes == nodes.classes
    for name in ("edges", "features", "labels"):
        assert np.array_equal(getattr(mine, name), getattr(nodes, name)), name
    assert {(0, 38), (1, 39), (30, 32)} <= set(map(tuple, mine.edges.tolist()))
    assert (
        cli("predict", "mine", "--node", "n39").out == cli("predict", "nodes", "--node", "n39").out
    )


def test_a_network_grows_by_edges_alone_and_goes_on(cli: Cli) -> None:
    shutil.copytree("nodes", "mine")
    Path("links").mkdir()
    Path("links/edges.csv").write_text("source,target\nn0,n7\nn7,n0\nn0,n2\nn9,n9\n")
    code, out, err = cli("learn", "mine", "links", "--device", "cpu")
    assert (code, err) == (0, "") and "after part 3" in out
    graph = Learner.load("mine", device="cpu").run.graph
    assert isinstance(graph, NetworkGraph) and graph.num_parts == 4
    assert graph.edges[-1].tolist() == [0, 7] and len(graph.edges) == 41  # the others were known
    Path("links/nodes.csv").write_text("node,class,x,y\nz1,violet,1,2\nz2,,0,1\n")
    Path("links/edges.csv").write_text("z1,n3\nz2,z1\n")
    assert cli("learn", "mine", "links", "--device", "cpu", "--keep", "last").code == 0
    answers = json.loads(cli("predict", "mine", "--node", "z2", "--json").out)
    assert {answer["label"] for answer in answers} == {"red", "blue", "green", "violet"}
    refused(cli("learn", "mine", "links"), "links/nodes.csv:2:", "node 'z1'", "in this run")


HEAD, LINK = "node,class,split,size,side\n", "source,target\n"
GROWING_MISTAKES = {
    "unknown node": (
        {"nodes.csv": HEAD + "z1,red,train,1,2\n", "edges.csv": LINK + "z1,n3\nz1,n99\n"},
        ("new/edges.csv:3: unknown node 'n99'", "nodes.csv does not list it", "not in this run"),
    ),
    "old node again": (
        {"nodes.csv": HEAD + "z1,red,train,1,2\nn3,red,,1,2\n", "edges.csv": LINK + "z1,n3\n"},
        ("new/nodes.csv:3: node 'n3' is already in this run", "list new nodes only"),
    ),
    "width": (
        {"nodes.csv": HEAD[:-6] + "\nz1,red,train,1\n", "edges.csv": LINK},
        ("new/nodes.csv: 1 features per node; this run has 2",),
    ),
    "no features": (
        {"nodes.csv": "node\nz1\n", "edges.csv": LINK},
        ("new/nodes.csv: 0 features per node; this run has 2",),
    ),
    "edges alone": ({"edges.csv": "n1,n99\n"}, ("new/edges.csv:1: unknown node 'n99'",)),
    "no edges": ({"nodes.csv": HEAD + "z1,red,train,1,2\n"}, ("new: edges.csv", "is missing")),
    "parts": (
        {"nodes.csv": "node,part,w,h\nz1,0,1,2\nz2,1,1,2\n", "edges.csv": LINK},
        ("new: 2 parts; learn takes one at a time",),
    ),
    "authors, old node again": (
        {"features.txt": "z1 1 2\nn3 1 2\n", "labels.txt": "z1 red\nn3 red\n"},
        ("new/features.txt:2: node 'n3' is already in this run",),
    ),
    "authors, old node's class": (
        {"features.txt": "z1 1 2\n", "labels.txt": "z1 red\nn3 red\n"},
        ("new/labels.txt:2: node 'n3' is already in this run",),
    ),
    "authors, width": (
        {"features.txt": "z1 1 2 3\n", "labels.txt": "z1 red\n"},
        ("new/features.txt: 3 features per node; this run has 2",),
    ),
    "authors, unknown node": (
        {
            "features.txt": "z1 1 2\nz2 1 2\nz3 1 2\n",
            "labels.txt": "z1 red\nz2 red\nz3 red\n",
            "0/train.txt": "z1 red\n",
            "0/valid.txt": "z2 red\n",
            "0/test.txt": "z3 red\n",
            "0/edgelist.txt": "z1 n3\nn3 n99\n",
        },
        ("new/0/edgelist.txt:2: unknown node 'n99': it has no features", "not in this run"),
    ),
    "triples": ({"0.tsv": "n1\tlikes\tn2\n"}, ("knowledge graph",)),
}


@pytest.mark.parametrize("name", GROWING_MISTAKES)
def test_new_nodes_that_do_not_fit_leave_the_run_as_it_was(cli: Cli, name: str) -> None:
    files, mentioned = GROWING_MISTAKES[name]
    for file, content in files.items():
        Path("new", file).parent.mkdir(parents=True, exist_ok=True)
        Path("new", file).write_text(content)
    before = {p: p.read_bytes() for p in Path("nodes/").rglob("*") if p.is_file()}
    refused(cli("learn", "nodes", "new", "--device", "cpu"), *mentioned)
    assert before == {p: p.read_bytes() for p in Path("nodes/").rglob("*") if p.is_file()}


def test_old_nodes_in_arrays_are_named(cli: Cli) -> None:
    arrays = {"features": np.ones((1, 2)), "classes": ["red"], "nodes": ["z1"]}
    np.savez("again.npz", **(arrays | {"nodes": ["n3"]}), edges=[["n3", "n1"]])
    refused(cli("learn", "nodes", "again.npz"), "again.npz[nodes]:1: node 'n3' is already in this")
    np.savez("other.npz", **arrays, edges=[["z1", "n1"], ["z1", "n99"]])
    refused(cli("learn", "nodes", "other.npz"), "other.npz[edges]: edge 1", "unknown node 'n99'")
    np.savez("rows.npz", **arrays, edges=[[0, 1]])  # rows of the file's own arrays
    refused(cli("learn", "nodes", "rows.npz"), "rows.npz: edge 0 [0, 1] mentions an unknown node")
    np.savez("wide.npz", **(arrays | {"features": np.ones((1, 3))}), edges=[["z1", "n1"]])
    refused(cli("learn", "nodes", "wide.npz"), "wide.npz: 3 features per node; this run has 2")


# Facts that are given again, and runs that Python saved.


def test_nothing_is_measured_by_what_is_learned_nor_twice(cli: Cli) -> None:
    shutil.copytree("plain/", "run")
    taught = Path("ring/0/train.txt").read_text(encoding="utf-8").splitlines(keepends=True)[:3]
    Path("day/0").mkdir(parents=True)
    Path("day/0/train.txt").write_text("neo\tplus 1\te1\nneo\tplus 2\te2\n")
    Path("day/0/test.txt").write_text("neo\tplus 5\te5\nneo\tplus 1\te1\n" + "".join(taught))
    words = ("learn", "run", "day", "--device", "cpu")
    code, out, err = cli(*words)
    assert (code, err) == (0, "") and "left out of 7 facts: 4 known already" in out
    graph = Learner.load("run", device="cpu").run.graph
    assert isinstance(graph, KnowledgeGraph)
    assert len(graph.rows("test", graph.num_parts - 1)) == 1
    again = "nothing new: 7 facts, 6 known already, 1 set aside to measure with\n"
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


def test_test_triples_that_are_taught_are_mentioned(cli: Cli) -> None:
    for name, lines in {"train": "a\tr\tb\nb\tr\tc\n", "test": "a\tr\tb\na\tr\tc\n"}.items():
        Path("leaky/0").mkdir(parents=True, exist_ok=True)
        Path(f"leaky/0/{name}.txt").write_text(lines)
    code, _, err = cli("run", "leaky", *DIVIDED)
    assert code == 0 and "1 of 2 test triples are training triples, too" in err
    assert "training triples, too" not in cli("run", "ring", *DIVIDED).err


def test_facts_that_were_set_aside_are_not_learned_later(cli: Cli) -> None:
    facts = [f"e{i}\tplus {k}\te{(i + k) % 20}" for i in range(20) for k in (1, 2, 5)]
    Path("facts.tsv").write_text("\n".join(facts) + "\n", encoding="utf-8")
    words = ("--valid", "0.1", "--test", "0.2", "--out", "mine", "--json")
    assert cli("run", "facts.tsv", *DIVIDED, *words).code == 0
    before = {p: p.read_bytes() for p in Path("mine").rglob("*") if p.is_file()}
    told = "nothing new: 60 facts, 42 known already, 18 set aside to measure with\n"
    assert cli("learn", "mine", "facts.tsv").out == told
    assert before == {p: p.read_bytes() for p in Path("mine").rglob("*") if p.is_file()}
    Path("facts.tsv").write_text("\n".join([*facts, "e1\tplus 1\tnobody"]), encoding="utf-8")
    results = json.loads(cli("learn", "mine", "facts.tsv", "--json").out)
    assert results["parts"][1]["new_examples"] == 1 and "nothing_new" not in results
    assert results["facts"] == {"given": 61, "known": 42, "set_aside": 18}
    assert json.loads(cli("learn", "mine", "facts.tsv", "--json").out)["nothing_new"]
    learner = Learner.load("mine", device="cpu")
    assert learner.learn([tuple(line.split("\t")) for line in facts]).new_examples == 0
    assert learner.num_parts == 2


def test_info_on_a_run_that_python_saved(cli: Cli) -> None:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu")
    learner.learn([("a", "likes", "b"), ("b", "likes", "c")])
    learner.save("by hand")
    found = json.loads(cli("info", "by hand", "--json").out)
    assert (found["dataset"], found["recipe"]) == ("by hand", "default")
    assert (found["parts"][0]["new_examples"], found["parts"][0]["new_entities"]) == (2, 3)
    assert "by hand: transe (plain), lower" in cli("info", "by hand").out


def test_runs_are_compared_by_labels(cli: Cli) -> None:
    """One graph, read in another order and divided otherwise: a warning, no refusal."""
    facts = [f"e{i}\tplus {k}\te{(i + k) % 20}" for i in range(20) for k in (1, 2, 5)]
    for name, lines in {"there": facts, "back": facts[::-1], "other": facts[1:]}.items():
        Path(f"{name}.tsv").write_text("\n".join(lines), encoding="utf-8")
        words = ("--strategy", "lower", "--test", "0.2", "--out", f"run {name}", "--json")
        assert cli("run", f"{name}.tsv", *LINKS, *words).code == 0
    code, out, err = cli("compare", "run there", "run back")
    assert code == 0 and "retention" in out and "hold out other sets" in err
    refused(cli("compare", "run there", "run other"), "different graphs")
    for name, order in {"nodes": 1, "rows": -1}.items():
        Path(name + " of it").mkdir()
        rows = [f"n{i},{'red' if i % 2 else 'blue'},{i % 2},1" for i in range(12)][::order]
        ends = [f"n{i},n{(i + 2) % 12}" for i in range(12)][::order]
        Path(name + " of it/nodes.csv").write_text("\n".join(["node,class,x,y", *rows]))
        Path(name + " of it/edges.csv").write_text("\n".join(["source,target", *ends]))
        words = ("--strategy", "lower", "--test", "0.3", "--out", f"run {name}", "--json")
        assert cli("run", f"{name} of it", *NODES, *words).code == 0
    code, _, err = cli("compare", "run nodes", "run rows")
    assert code == 0, err

"""`dicgrl run`: tables, folders and JSON."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from dicgrl import (
    Learner,
)
from tests.cli.helpers import DICGRL, LINKS, NODES, Cli, refused
from tests.runs import measured
from tests.stores import FILES

pytestmark = pytest.mark.usefixtures("trained_runs_here")


@pytest.mark.usefixtures("real_curves")
def test_a_run_prints_a_table_after_every_part(cli: Cli) -> None:
    code, out, err = cli("run", "ring", *DICGRL, "--out", "run")
    assert (code, err) == (0, "")
    for number in range(3):
        assert f"ring, rotate disentangled, dicgrl, after part {number}, in per cent\n" in out
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
    assert {path.name for path in Path("run").iterdir()} == {
        *FILES,
        "curves.png",
        "reliability.png",
    }
    for picture in ("curves.png", "reliability.png"):
        assert (Path("run") / picture).read_bytes().startswith(b"\x89PNG")


def test_json_is_what_the_folder_holds(cli: Cli) -> None:
    code, out, err = cli("run", "circles", *NODES, "--out", "run", "--seed", "2", "--json")
    assert (code, err) == (0, "")
    results = json.loads(out)
    assert results == json.loads(Path("run/results.json").read_text(encoding="utf-8"))
    assert (results["strategy"], results["model"], results["seed"]) == ("fresh", "gat", 2)
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
    refused(cli(*words), "already holds a run")
    again = cli(*words, "--resume", "--json")
    assert [each["strategy"] for each in json.loads(again.out)] == ["lower", "emr"]


def test_the_same_seed_gives_the_same_numbers(cli: Cli) -> None:
    first, again, other = (
        measured(json.loads(cli("run", "ring", *DICGRL, "--json", "--seed", seed).out))
        for seed in ("1", "1", "2")
    )
    assert first == again and first["parts"] != other["parts"]


def test_a_recipe_may_carry_what_has_no_effect(cli: Cli) -> None:
    Path("mine.toml").write_text("[continual]\nmax_drift = 0.1\nshield = '2x'\n")
    words = ("run", "circles", *NODES, "--strategy", "lower", "--recipe", "mine.toml", "--json")
    code, out, err = cli(*words)
    assert (code, err) == (0, "")
    assert "max_drift" not in json.loads(out)["settings"]


def test_a_finished_run_that_is_resumed_shows_its_last_table(cli: Cli) -> None:
    code, out, _ = cli("run", "ring", *LINKS, "--strategy", "lower", "--out", "plain", "--resume")
    assert code == 0 and out.count("after part") == 1 and "after part 2" in out


@pytest.mark.usefixtures("real_curves")
def test_a_stream_without_test_sets_says_so(cli: Cli) -> None:
    for path in Path(shutil.copytree("ring", "bare")).glob("*/*.txt"):
        if path.name != "train.txt":
            path.unlink()
    code, out, err = cli("run", "bare", *DICGRL, "--out", "run")
    assert (code, err) == (0, "")
    assert out.count("no test set so far: nothing was measured") == 3
    assert Path("run/curves.png").exists()
    aside = cli("run", "bare", *DICGRL, "--test", "0.2", "--valid", "0.1", "--json")
    assert json.loads(aside.out)["parts"][-1]["whole"]["mrr"] > 0


def test_a_stream_of_one_part_and_one_without_new_entities(cli: Cli) -> None:
    train = Path("ring/0/train.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("one.tsv").write_text("".join(train))
    Path("old").mkdir()
    for number in range(3):  # the same facts again and again
        Path("old", f"{number}.tsv").write_text("".join(train[number:]))
    for source in ("one.tsv", "old"):
        assert cli("run", source, *DICGRL, "--out", f"run of {source}").code == 0
        answer = cli("predict", f"run of {source}", "--head", "e0", "--relation", "plus 1")
        assert answer.code == 0


def test_a_run_that_diverges_can_be_gone_on_with(cli: Cli) -> None:
    """The first part is learned and kept, the second one fails; that is nobody's mistake."""
    words = ("run", "ring", *LINKS, "--model", "transe", "--strategy", "lower")
    wild = ("--set", "later_rate=1e33", "--out", "run")
    outcome = cli(*words, *wild)
    assert outcome.code == 1 and "training diverged" in outcome.err
    assert outcome.out.count("after part") == 1
    assert Learner.load("run", device="cpu").num_parts == 1
    assert cli(*words, *wild, "--resume").code == 1
    assert Learner.load("run", device="cpu").num_parts == 1


def test_a_file_whose_name_is_no_text(cli: Cli) -> None:
    name = os.fsdecode(b"caf\xe9.tsv")
    Path(name).write_text("a\tr\tb\nb\tr\tc\n")
    assert cli("run", name, *DICGRL, "--out", "run", "--json").code == 0
    assert json.loads(cli("info", "run", "--json").out)["dataset"] == "caf\ufffd"


def test_test_triples_that_are_taught_are_mentioned(cli: Cli) -> None:
    for name, lines in {"train": "a\tr\tb\nb\tr\tc\n", "test": "a\tr\tb\na\tr\tc\n"}.items():
        Path("leaky/0").mkdir(parents=True, exist_ok=True)
        Path(f"leaky/0/{name}.txt").write_text(lines)
    code, _, err = cli("run", "leaky", *DICGRL)
    assert code == 0 and "1 of 2 test triples are training triples, too" in err
    assert "training triples, too" not in cli("run", "ring", *DICGRL).err

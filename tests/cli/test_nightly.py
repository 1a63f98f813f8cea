from __future__ import annotations

import json
import re
import threading
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from dicgrl.report.progress_lines import progress_lines
from dicgrl.store.run_folder import RunFolder
from tests.cli.helpers import LINKS, Cli, refused, write

CPU = ("--device", "cpu")
TONIGHT = ("e1\tlikes\te5", "e0\tplus 5\te9", "e2\tplus 1\tnewcomer")


@pytest.fixture
def run(cli: Cli, own_folder: Path, trained_runs: Path) -> str:
    done = cli("run", trained_runs / "ring", *LINKS, "--out", "run", "--quiet")
    assert (done.code, done.out) == (0, "")
    write("tonight.tsv", *TONIGHT)
    return "run"


def test_a_night_is_told_kept_and_shown(cli: Cli, run: str) -> None:
    done = cli("nightly", run, "tonight.tsv", "--fail-if", "mrr-drop 100%", *CPU)
    assert done.code == 0, done
    for words in ("night 1: kept as version 4", "1 of 3 facts name only", "mrr-drop 100%: passed"):
        assert words in done.out
    assert Path("run/nights/0001.html").exists()
    info = cli("info", run)
    assert "MRR, foretold" in info.out and "1 night, 0 refused" in info.out
    found = json.loads(cli("info", run, "--json").out)["nights"]
    assert [(each["night"], each["version"], each["facts"]) for each in found] == [(1, 4, 3.0)]


def test_a_gate_that_fails_is_exit_code_1(cli: Cli, run: str) -> None:
    words = ("nightly", run, "tonight.tsv", "--fail-if", "newcomers > 10%", *CPU, "--json")
    done = cli(*words)
    assert done.code == 1 and done.err == "error: gate failed: newcomers > 10%\n"
    assert not json.loads(done.out)["kept"] and len(RunFolder(run).versions()) == 3
    anyway = cli(*words, "--keep-anyway")
    assert anyway.code == 1 and json.loads(anyway.out)["version"] == 4


def test_mistakes_are_one_line(cli: Cli, run: str) -> None:
    for words, mentioned in (
        (("--fail-if", "mrr-drop"), "such as"),
        (("--fail-if", "mrr-drop 5"), "did you mean 'mrr-drop 5%'"),
        (("--fail-if", "accuracy < 5%"), "hits@10"),
        (("--test", "2"), "--test 2.0"),
        (("--evaluate", "some"), "sample"),
        (("--quiet", "--verbose"), "--verbose"),
        (("--log-level", "loud"), "debug"),
    ):
        refused(cli("nightly", run, "tonight.tsv", *words, *CPU), mentioned)
    refused(cli("nightly", run, "nothing.tsv", *CPU), "nothing.tsv")
    refused(cli("nightly", "nowhere", "tonight.tsv", *CPU), "nowhere")
    assert not RunFolder(run).nights()


def test_a_run_is_retrained_in_place(cli: Cli, run: str) -> None:
    done = cli("retrain", run, "-m", "anew", *CPU)
    assert done.code == 0, done
    newest = RunFolder(run).log()[-1]
    assert (newest["version"], newest["kind"], newest["message"]) == (4, "retrain", "anew")
    assert "2 retrain" in cli("info", run).out
    for at in ("3", "4"):
        assert cli("predict", run, "--head", "e1", "--relation", "plus 1", "--at", at).code == 0
    assert cli("verify", run).code == 0


def test_lines_of_a_log_have_time_and_level(cli: Cli, run: str) -> None:
    done = cli("learn", run, "tonight.tsv", "--log-level", "debug", "--json", *CPU)
    assert done.code == 0 and json.loads(done.out)
    lines = done.err.splitlines()
    assert lines and all(" DEBUG run tonight.tsv: " in line for line in lines)
    assert all(line[:4].isdecimal() for line in lines)
    failed = cli("nightly", run, "tonight.tsv", "--log-level", "error", "--fail-if", "nothing")
    assert failed.code == 2 and " ERROR not a gate: 'nothing'" in failed.err


@pytest.mark.parametrize(
    ("words", "work"),
    [
        (("evaluate",), "dicgrl.learner.Learner.evaluate"),
        (("evaluate", "tonight.tsv", "--skip-unknown"), "dicgrl.ask.links.LinkAsking.measure_rows"),
        (("score", "tonight.tsv", "--skip-unknown"), "dicgrl.ask.links.LinkAsking.score_rows"),
        (("export", "--to", "there"), "dicgrl.jobs.export.export_run"),
        (("map",), "dicgrl.jobs.maps.make_maps"),
    ],
)
def test_what_takes_long_says_that_it_goes_on_unless_one_wants_quiet(
    cli: Cli, run: str, words: tuple[str, ...], work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("tonight.tsv", "e1\tplus 1\te2")
    place, _, name = work.rpartition(".")
    owner: Any = resolve_name(place)
    does, told = getattr(owner, name), threading.Event()
    monkeypatch.setattr("dicgrl.report.progress_lines.LOG.info", lambda *_: told.set())
    monkeypatch.setattr(
        "dicgrl.report.progress_bars.progress_lines", partial(progress_lines, every=0.001)
    )
    monkeypatch.setattr(owner, name, lambda *a, **k: (told.wait(30), does(*a, **k))[1])
    verb, *others = words
    assert cli(verb, run, *others).code == 0 and told.is_set()
    monkeypatch.setattr(owner, name, does)
    told.clear()
    others = ["--to", "here"] if verb == "export" else others
    assert cli(verb, run, *others, "--quiet").err == "" and not told.is_set()


def test_verbose_tells_of_every_epoch_and_quiet_of_none(cli: Cli, run: str) -> None:
    told = cli("learn", run, "tonight.tsv", "-v", *CPU)
    assert "run tonight.tsv: part 3, epoch 1  loss" in told.err
    write("more.tsv", "e3\tlikes\te7")
    quiet = cli("learn", run, "more.tsv", "-q", *CPU)
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_a_short_night_is_in_a_log_from_its_beginning_to_its_end(cli: Cli, run: str) -> None:
    words = ("nightly", run, "tonight.tsv", *CPU)
    first = cli(*words, "--log-level", "info", "--json")
    assert first.code == 0 and json.loads(first.out)["kept"]
    lines = first.err.splitlines()
    assert all(re.match(r"20\d\d-\d\d-\d\d .* INFO run: ", line) for line in lines)
    assert lines[0].endswith("run: a night begins with tonight.tsv, at version 3")
    assert lines[1].endswith("run: 3 facts arrived")
    assert re.search(r"run: night 1: kept as version 4, in [0-9.]+ s$", lines[-1])
    again = cli(*words, "--log-level", "info").err.splitlines()
    assert again[1].endswith("run: 3 facts arrived, 3 known already")
    assert "night 2: nothing new: the run is version 4, as before" in again[-1]
    for quiet in ((), ("--quiet",), ("--log-level", "warning")):
        assert cli(*words, *quiet).err == ""

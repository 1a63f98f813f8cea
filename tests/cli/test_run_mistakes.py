"""`dicgrl run` refuses mistakes before anything is learned or written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.cli.helpers import DICGRL, LINKS, SMALL, Cli, refused
from tests.runs import files_in

pytestmark = pytest.mark.usefixtures("trained_runs_here")


RUN_MISTAKES = {
    "a folder is missing": (("ring", "--resume"), ("--resume", "--out")),
    "resume and merged": (("ring", "--resume", "--merged", "--out", "x"), ("leave out --merged",)),
    "keep and merged": (("ring", "--keep", "last", "--merged"), ("--keep", "leave out --merged")),
    "keep": (("ring", "--keep", "least", "--out", "never"), ("'least'", "did you mean 'last'?")),
    "strategy and merged": (
        ("ring", "--merged", "--strategy", "dicgrl"),
        ("--strategy dicgrl", "--merged", "leave out"),
    ),
    "a run is there": (("ring", "--out", "plain"), ("plain", "already holds a run", "--resume")),
    "merged over a run": (("ring", "--merged", "--out", "plain"), ("already holds a run",)),
    "resume over merged": (("ring", "--resume", "--out", "merged"), ("merged", "part by part")),
    "half a complex number": (
        ("ring", "--model", "complex", "--set", "dim=7", "--out", "never"),
        ("dim=7: complex takes 2 numbers together", "dim=8 suits it"),
    ),
    "other settings": (
        ("ring", *LINKS, "--strategy", "lower", "--set", "lr=0.5", "--resume", "--out", "plain"),
        ("lr=0.0, not 0.5", "choose another folder"),
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
        ("'dicgl'", "did you mean 'dicgrl'?", "emr, ewc, fastkge, fresh, frozen, gem"),
    ),
    "empty strategy": (("ring", "--strategy", "lower,"), ("unknown strategy ''", "upper")),
    "option": (("ring", "--modl", "x"), ("--modl", "--model")),
    "setting": (("ring", "--set", "epoch=3"), ("'epoch'", "did you mean 'epochs'?", "budget")),
    "no effect": (("circles", "--set", "max_drift=0.1"), ("max_drift", "no effect on a network")),
    "budget": (
        ("ring", "--strategy", "emr", "--set", "budget=lots"),
        ("budget='lots'", "10%", "all"),
    ),
    "effort": (("ring", "--set", "effort=abc"), ("effort='abc'", "a share such as 10%", "all")),
    "no effort": (("ring", "--set", "effort=-1"), ("effort='-1'", "a share such as 10%")),
    "one bad effort": (("circles", "--set", "effort=10%,2y"), ("effort='2y'", "500 or all")),
    "epochs of the default": (
        ("ring", "--set", "later_epochs=3"),
        ("later_epochs has no effect with strategy fresh", "lower"),
    ),
    "choice": (
        ("ring", "--strategy", "dicgrl", "--set", "selection=tap"),
        ("'tap'", "did you mean 'top'?", "sample"),
    ),
    "recipe": (("ring", "--recipe", "papr"), ("'papr'", "did you mean 'paper'?")),
    "set strategy": (("ring", "--set", "strategy=emr"), ("--strategy emr",)),
    "set model": (("ring", "--set", "model=convkb"), ("--model convkb",)),
    "plain dicgrl": (("ring", "--strategy", "dicgrl", "--plain"), ("disentangled model",)),
    "plain and divided": (("ring", "--plain", "--disentangled"), ("--disentangled and --plain",)),
    "columns of a network": (
        ("circles", "--columns", "1,2"),
        ("circles: --columns does not apply to tables of a network",),
    ),
    "literals of a network": (("circles", "--literals", "keep"), ("circles: --literals does not",)),
    "times of a network": (("circles", "--time-format", "s"), ("circles: --time-format does not",)),
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
    kept = files_in("plain/")
    refused(cli("run", *words, *out), *mentioned)
    assert not Path("never").exists()
    now = files_in("plain/")
    assert now == kept


@pytest.mark.parametrize(
    ("words", "mentioned"),
    [
        (("ring", *SMALL, "--set", "dim=100000000000"), "dim=100000000000"),
        (("ring", *SMALL, "--set", "dim=100000000000", "--merged"), "dim=100000000000"),
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


@pytest.mark.parametrize("effort", ["10", "10%,5x", "all"])
def test_an_effort_may_be_a_number_a_share_or_all(cli: Cli, effort: str) -> None:
    words = ("--strategy", "fresh,warm", "--set", f"effort={effort}", "--json")
    for results in json.loads(cli("run", "ring", *LINKS, *words).out):
        assert results["settings"]["effort"] == effort
        assert [part["epochs"] > 0 for part in results["parts"]] == [True] * 3


def test_settings_without_use_are_refused_before_anything_runs(cli: Cli) -> None:
    run = ("run", "ring", *LINKS, "--out", "never", "--strategy")
    useless = "strength has no effect with strategy upper; ewc uses it"
    refused(cli(*run, "upper", "--set", "strength=100"), useless)
    refused(cli(*run, "lower,upper", "--set", "budget=5%"), "strategy lower, upper")
    refused(cli(*run, "lower", "--set", "top=2"), "top has no effect on a plain model")
    merged = ("run", "ring", *LINKS, "--out", "never", "--merged")
    refused(cli(*merged, "--set", "top=2"), "top has no effect on a plain model")
    grid = ("sweep", "ring", *SMALL, "--strategy", "lower", "--set", "budget=5%", "--grid", "dim=4")
    refused(cli(*grid), "budget has no effect with strategy lower")
    assert not Path("never").exists()
    both = ("run", "ring", *LINKS, "--strategy", "lower,emr", "--set", "budget=5%", "--json")
    assert [each["strategy"] for each in json.loads(cli(*both).out)] == ["lower", "emr"]
    divided = ("--strategy", "lower", "--disentangled", "--set", "top=2", "--json")
    assert json.loads(cli("run", "ring", *LINKS, *divided).out)["settings"]["top"] == 2


def test_a_second_strategy_that_cannot_run_stops_the_first(cli: Cli) -> None:
    assert cli("run", "ring", *LINKS, "--strategy", "emr", "--out", "both/emr").code == 0
    outcome = cli("run", "ring", *LINKS, "--strategy", "lower,emr", "--out", "both")
    refused(outcome, "both/emr", "already holds a run")
    assert not Path("both/lower").exists()


def test_a_part_that_is_empty_is_named(cli: Cli) -> None:
    shutil.copytree("ring", "hole")
    Path("hole/1/train.txt").write_text("")
    refused(cli("run", "hole", *DICGRL), "hole/1/train.txt", "empty")


def test_a_run_and_folders_of_runs_are_not_mixed(cli: Cli) -> None:
    several = ("--strategy", "lower,ewc", "--out", "several")
    assert cli("run", "ring", *LINKS, *several, "--json").code == 0
    before = sorted(Path("several").iterdir())
    one = cli("run", "ring", *LINKS, "--strategy", "ewc", "--out", "several", "--resume")
    refused(one, "several: holds the runs ewc, lower")
    assert sorted(Path("several").iterdir()) == before
    refused(cli("run", "ring", *LINKS, "--strategy", "lower,ewc", "--out", "plain"), "of their own")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "out of memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "out of memory"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB"), "out of memory"),
        (RuntimeError("Storage size calculation overflowed with sizes=[4]"), "out of memory"),
        (RuntimeError("value cannot be converted to type float without overflow"), "too large"),
        (OverflowError("int too large to convert to float"), "a number is too large"),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
    ],
)
def test_what_runs_out_in_the_middle_is_one_message_and_a_failure(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("dicgrl.learner.Learner.learn", fails)
    refused(cli("run", "ring", *LINKS), said, code=1)


def test_other_errors_keep_their_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("the size of tensor a must match")

    monkeypatch.setattr("dicgrl.learner.Learner.learn", fails)
    with pytest.raises(RuntimeError, match="tensor a"):
        cli("run", "ring", *LINKS)


_LIMITED = """
import resource
from pathlib import Path
import torch
from dicgrl.cli import main
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a process is bounded by its /proc")
def test_a_real_lack_of_memory_is_one_message() -> None:
    """More than the process may have, which no look at the machine's memory foresees."""
    words = ("run", "ring", *SMALL, "--set", "dim=1000000", "--strategy", "lower")
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, *words], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) in ((1, ""), (2, "")), done.stderr
    assert done.stderr.startswith("error: ") and "memory" in done.stderr
    assert done.stderr.count("\n") == 1

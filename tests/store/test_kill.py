"""`kill -9` at any moment, then `--resume`: the same numbers as without it."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dicgrl import Learner
from tests.children import ended, start
from tests.runs import measured
from tests.tiny import write_circles, write_ring

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and signals")

SMALL = ("--device", "cpu", "--seed", "4", "--set", "epochs=4", "--set", "validate_every=1")
FRESH = ("run", "ring", *SMALL, "--set", "dim=8", "--set", "batch=16", "--set", "components=4")
FRESH = (*FRESH, "--set", "top=2")
RING = (*FRESH, "--strategy", "dicgrl", "--set", "arrive_epochs=3", "--set", "later_epochs=2")
FRESH = (*FRESH, "--set", "effort=50%")
CIRCLES = ("run", "circles", *SMALL, "--strategy", "ewc", "--set", "hidden=4")
Steady = dict[tuple[str, ...], dict[str, Any]]
FINISHED = {"config.json", "results.json", "trace.jsonl", "curves.png", "reliability.png"} | {
    f"part-{number}" for number in range(3)
}


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_ring(tmp_path / "ring")
    write_circles(tmp_path / "circles")


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Steady:
    """Results of runs that nobody disturbed."""
    place = tmp_path_factory.mktemp("steady")
    write_ring(place / "ring")
    write_circles(place / "circles")
    found = {}
    before = Path.cwd()
    os.chdir(place)
    try:
        for number, words in enumerate((RING, CIRCLES, FRESH)):
            out = place / f"run {number}"
            assert ended(start(place / "log", *words, "--out", str(out))) == 0
            found[words] = finished(out)
    finally:
        os.chdir(before)
    return found


def finished(out: Path) -> dict[str, Any]:
    """The results of a run that came to its end, and nothing else in its folder."""
    assert {path.name for path in out.iterdir()} == FINISHED
    results: dict[str, Any] = json.loads((out / "results.json").read_text(encoding="utf-8"))
    lines = (out / "trace.jsonl").read_text(encoding="utf-8").splitlines()
    trace = [json.loads(line) for line in lines]
    return {
        "results": measured(results),
        "trace": [{k: v for k, v in line.items() if k != "rate"} for line in trace],
        "curves": (out / "curves.png").read_bytes(),
        "reliability": (out / "reliability.png").read_bytes(),
    }


def loadable(out: Path) -> int:
    """How many parts a killed run has; they are whole, whenever it was killed."""
    if not (out / "config.json").exists():
        return 0
    return Learner.load(out, device="cpu").num_parts


@pytest.mark.parametrize(
    ("words", "moments"),
    [
        (RING, (1, 4, 9, 15, 22, 1, 14, 20, 23)),
        (CIRCLES, (3, 12, 21, 13, 22, 8, 21)),
        (FRESH, (4, 15, 22, 14, 20, 23)),
    ],
    ids=["links", "nodes", "default"],
)
def test_killed_while_files_are_written(
    words: tuple[str, ...],
    moments: tuple[int, ...],
    steady: Steady,
    tmp_path: Path,
) -> None:
    """Again and again, in one run. A part takes some twenty syncs, so there is progress."""
    out, log = tmp_path / "run", tmp_path / "log"
    reached, halves = [], 0
    for die_at in moments:
        code = ended(start(log, *words, "--out", str(out), "--resume", die_at=die_at))
        assert code == -signal.SIGKILL, log.read_text()
        reached.append(loadable(out))
        halves += any(out.glob(".part-*"))
    assert reached == sorted(reached) and {0, 1, 2} <= set(reached)
    assert halves, "no part was caught under its temporary name"
    assert ended(start(log, *words, "--out", str(out), "--resume")) == 0
    assert finished(out) == steady[words]  # and the halves are gone


def test_killed_while_the_model_before_is_removed(steady: Steady, tmp_path: Path) -> None:
    log = tmp_path / "log"
    halves = 0
    for die_at in range(42, 47):  # the second part is complete, then the first one's model goes
        out = tmp_path / f"run {die_at}"
        words = (*RING, "--keep", "last", "--out", str(out))
        assert ended(start(log, *words, die_at=die_at)) == -signal.SIGKILL
        halves += len(list(out.glob("part-*/model.json"))) == 2 == loadable(out)
        assert ended(start(log, *words, "--resume")) == 0
        assert finished(out) == steady[RING]
        assert [path.parent.name for path in out.glob("*/model.*")] == ["part-2", "part-2"]
        assert not list(out.rglob(".*"))
    assert halves, "no model was caught between two parts"


def test_killed_at_moments_that_nobody_chose(steady: Steady, tmp_path: Path) -> None:
    out, log = tmp_path / "run", tmp_path / "log"
    chance = random.Random(7)
    kills = 0
    for seconds in sorted(chance.uniform(0.02, 0.6) for _ in range(8)):
        child = start(log, *RING, "--out", str(out), "--resume")
        child.join(seconds)
        if child.exitcode is None:
            child.kill()
            kills += 1
        if ended(child) == 0:
            break
        loadable(out)
    else:
        assert ended(start(log, *RING, "--out", str(out), "--resume")) == 0
    assert kills, "the run ended before it could be killed once"
    assert finished(out) == steady[RING]


def test_killed_as_soon_as_a_part_is_there(steady: Steady, tmp_path: Path) -> None:
    out, log = tmp_path / "run", tmp_path / "log"
    for number in (0, 1):
        child = start(log, *RING, "--out", str(out), "--resume")
        until = time.monotonic() + 60
        while not (out / f"part-{number}").exists() and time.monotonic() < until:
            time.sleep(0.001)
        child.kill()
        ended(child)
        assert loadable(out) >= number + 1
    assert ended(start(log, *RING, "--out", str(out), "--resume")) == 0
    assert finished(out) == steady[RING]


def test_interrupted_by_the_user(tmp_path: Path) -> None:
    """Ctrl-C: no traceback, and a word on what there is to go on with."""
    out, log = tmp_path / "run", tmp_path / "log"
    words = (*RING, "--set", "epochs=100000", "--set", "patience=0", "--out", str(out))
    child = start(log, *words)
    until = time.monotonic() + 60
    while not out.exists() and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(0.2)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGINT)
    assert ended(child) == 130
    said = log.read_text()
    assert "Traceback" not in said
    assert "interrupted; no part was finished yet, and nothing is kept" in said

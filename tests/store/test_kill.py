"""`kill -9` at any moment, then `--resume`: the same numbers as without it."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dicgrl import Learner
from tests.children import ended, start
from tests.faults import ENDS, KINDS, Fault
from tests.runs import measured
from tests.stores import FILES, assert_same_stores, kept
from tests.tiny import write_circles, write_ring

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and signals")

SMALL = ("--device", "cpu", "--seed", "4", "--set", "epochs=4", "--set", "validate_every=1")
FRESH = ("run", "ring", *SMALL, "--set", "dim=8", "--set", "batch=16", "--set", "components=4")
FRESH = (*FRESH, "--set", "top=2")
RING = (*FRESH, "--strategy", "dicgrl", "--set", "arrive_epochs=3", "--set", "later_epochs=2")
FRESH = (*FRESH, "--set", "effort=50%")
CIRCLES = ("run", "circles", *SMALL, "--strategy", "ewc", "--set", "hidden=4")
Steady = dict[tuple[str, ...], tuple[Path, dict[str, Any]]]
FINISHED = {*FILES, "curves.png"}


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
            found[words] = out, finished(out)
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
    }


def loadable(out: Path) -> int:
    """How many versions a killed run has; they are whole, whenever it was killed."""
    if not (out / "store.sqlite").exists():
        return 0
    return Learner.load(out, device="cpu").version


def goes_on(out: Path, log: Path, words: tuple[str, ...], steady: Steady) -> None:
    """The run comes to its end, and is that which nobody disturbed, bit for bit."""
    assert ended(start(log, *words, "--out", str(out), "--resume")) == 0, log.read_text()
    assert finished(out) == steady[words][1]
    assert_same_stores(out, steady[words][0])
    assert not [path for path in out.rglob(".*") if path.name != ".lock"]


def steps_of(log: Path, *words: str) -> int:
    """How many steps there are at which a command can be disturbed."""
    count = log.with_name("count")
    assert ended(start(log, *words, fault=Fault("kill", 0, str(count)))) == 0, log.read_text()
    return count.stat().st_size


@pytest.mark.parametrize("words", [RING, CIRCLES, FRESH], ids=["links", "nodes", "default"])
def test_killed_while_something_is_written(
    words: tuple[str, ...], steady: Steady, tmp_path: Path
) -> None:
    """Again and again, in one run: each time a little later than it came the last time."""
    out, log = tmp_path / "run", tmp_path / "log"
    reached = []
    for at in (1, 45, 47, 30, 44, 40):
        code = ended(start(log, *words, "--out", str(out), "--resume", fault=Fault("kill", at)))
        assert code in (-signal.SIGKILL, 0), log.read_text()
        reached.append(loadable(out))
    assert reached == sorted(reached) and len(set(reached)) > 2
    goes_on(out, log, words, steady)


@pytest.mark.parametrize("kind", KINDS)
def test_something_goes_wrong_at_a_step(kind: str, steady: Steady, tmp_path: Path) -> None:
    """A sample; `make torture` takes all of them."""
    out, log = tmp_path / "run", tmp_path / "log"
    steps = steps_of(log, *RING, "--out", str(tmp_path / "counted"))
    assert steps > 100
    for at in random.Random(kind).sample(range(1, steps + 1), 4):
        code = ended(start(log, *RING, "--out", str(out), fault=Fault(kind, at)))
        assert code in ENDS[kind], (at, log.read_text())
        assert "Traceback" not in log.read_text()
        loadable(out)
        goes_on(out, log, RING, steady)
        shutil.rmtree(out)


def test_killed_while_the_model_before_is_removed(steady: Steady, tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = (*RING, "--keep", "last")
    steps = steps_of(log, *words, "--out", str(tmp_path / "counted"))
    for at in range(steps - 9, steps, 3):
        out = tmp_path / f"run {at}"
        code = ended(start(log, *words, "--out", str(out), fault=Fault("kill", at)))
        assert code == -signal.SIGKILL
        loadable(out)
        assert ended(start(log, *words, "--out", str(out), "--resume")) == 0
        assert finished(out) == steady[RING][1]
        assert kept(out) == [3]


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
    goes_on(out, log, RING, steady)


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

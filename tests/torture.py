"""Every way in which a process that writes to a run can fail: `make torture`.

Each command is disturbed at its first step, its second, and so on: the process is killed there or a
moment later, wherever it is then (in SQLite's own writes, too), or the disk is full or broken
(`tests/faults.py`). After each the store opens at a version that was committed, `verify` is clean,
and the command run again gives what an undisturbed one gives, bit for bit.

    python -m tests.torture [--injections 1000] [--only learn]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dicgrl import Learner
from dicgrl.jobs.versions import verified
from dicgrl.store.run_folder import RunFolder
from tests.children import ended, start
from tests.faults import ENDS, KINDS, Fault
from tests.stores import assert_same_stores
from tests.tiny import write_ring

SMALL = ("--device", "cpu", "--set", "epochs=1", "--set", "dim=4", "--set", "batch=32")
RUN = ("run", "ring", *SMALL, "--strategy", "ewc", "--seed", "4", "--json", "--out")
RELEASED = Path(__file__).parent / "store" / "released" / "run-3-links-dicgrl.tar.gz"


@dataclass(frozen=True)
class Command:
    """A command that writes.

    Attributes:
        before: A folder to begin with; empty for none.
        words: The command line; RUN stands for the folder.
        again: How it is run again; as before where empty.
    """

    before: str
    words: tuple[str, ...]
    again: tuple[str, ...] = ()


COMMANDS = {
    "run": Command("", (*RUN, "RUN"), (*RUN, "RUN", "--resume")),
    "learn": Command("begun", ("learn", "RUN", "facts.tsv", "--device", "cpu", "--json")),
    "keep last": Command(
        "begun", ("learn", "RUN", "facts.tsv", "--device", "cpu", "--json", "--keep", "last")
    ),
    "compact": Command("begun", ("compact", "RUN", "--keep", "last")),
    "restore": Command("begun", ("restore", "RUN", "1")),
    "convert": Command("released", ("learn", "RUN", "facts.tsv", "--device", "cpu", "--json")),
    "forget": Command("begun", ("forget", "RUN", "old.tsv", "--device", "cpu", "--json")),
    "replace": Command(
        "begun", ("replace", "RUN", "old.tsv", "facts.tsv", "--device", "cpu", "--json")
    ),
    "rename": Command("begun", ("rename", "RUN", "e1", "the first", "--json")),
    "retrain": Command("begun", ("retrain", "RUN", "--device", "cpu", "--json")),
    "merge": Command("begun", ("merge", "RUN", "e1", "e2", "--device", "cpu", "--json")),
}


def prepared(place: Path) -> None:
    """Streams, facts and runs to begin with, in the working folder."""
    os.chdir(place)
    write_ring(place / "ring")
    Path("facts.tsv").write_text("e1\tlikes\tnewcomer\n", encoding="utf-8")
    first = Path("ring/0/train.txt").read_text(encoding="utf-8").splitlines()[0]
    Path("old.tsv").write_text(f"{first}\n", encoding="utf-8")
    assert ended(start(place / "log", *RUN, "begun")) == 0, (place / "log").read_text()
    with tarfile.open(RELEASED) as archive:
        archive.extractall(place / "unpacked", filter="data")
    next((place / "unpacked").iterdir()).rename(place / "released")


def call(
    command: Command, folder: Path, log: Path, fault: Fault | None, again: bool = False
) -> int:
    """Run a command on a folder; its exit code."""
    words = command.again if again and command.again else command.words
    given = (str(folder) if word == "RUN" else word for word in words)
    return ended(start(log, *given, fault=fault, pictures=False))


def fresh(command: Command, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if command.before:
        shutil.copytree(command.before, folder)


def moments(injections: int, steps: dict[str, int], seed: int) -> Iterator[tuple[str, Fault]]:
    """What to disturb, and when: each command once, then every step of every one, by chance."""
    every = [
        (name, Fault(kind, at))
        for name, count in steps.items()
        for kind in KINDS
        for at in range(1, count + 1)
    ]
    random.Random(seed).shuffle(every)
    ordered = [*dict(reversed(every)).items(), *every]
    for number in range(injections):
        yield ordered[number % len(ordered)]


def checked(command: Command, folder: Path, log: Path, expected: Path, before: int) -> None:
    """The store is at a version that was committed, clean, and goes on to what is expected."""
    run = RunFolder(folder)
    if run.exists():
        found = verified(folder)
        assert found.clean, found.damage
        versions = len(run.versions())
        assert versions >= before, versions
        assert Learner.load(folder, device="cpu").version == versions
    goal = len(RunFolder(expected).versions())
    once = command.words[0] in ("restore", "forget", "replace", "rename", "merge", "retrain")
    if once and run.exists() and len(run.versions()) == goal:  # it was done, but for clearing up
        run.compact(keep="all")
    else:
        code = call(command, folder, log, None, again=run.exists())
        assert code == 0, log.read_text()[-500:]
    assert_same_stores(folder, expected)
    assert not [path for path in folder.rglob(".*") if path.name != ".lock"]
    found = verified(folder)
    assert found.clean and not found.leftovers, found.as_dict()


def torture(place: Path, injections: int, only: str = "", seed: int = 0) -> int:
    """Disturb commands; how often."""
    prepared(place)
    log, count, folder = place / "log", place / "count", place / "run"
    steps = {}
    for name, command in COMMANDS.items():
        if only and only != name:
            continue
        expected = place / f"expected {name}"
        fresh(command, expected)
        count.unlink(missing_ok=True)
        code = call(command, expected, log, Fault("kill", 0, str(count)))
        assert code == 0, (name, log.read_text()[-500:])
        steps[name] = count.stat().st_size
    print(f"steps: {', '.join(f'{name} {number}' for name, number in steps.items())}", flush=True)
    begun = time.monotonic()
    done = 0
    for name, fault in moments(injections, steps, seed):
        command = COMMANDS[name]
        fresh(command, folder)
        before = len(RunFolder(folder).versions()) if command.before else 0
        log.write_text("")
        code = call(command, folder, log, fault)
        try:
            assert code in ENDS[fault.kind], code
            assert "Traceback" not in log.read_text()
            checked(command, folder, log, place / f"expected {name}", before)
        except AssertionError:
            print(f"{name}, {fault}: {log.read_text()[-2000:]}", file=sys.stderr)
            raise
        done += 1
        if not done % 100:
            print(f"{done:,} injections, {time.monotonic() - begun:.0f} s", flush=True)
    return done


def main() -> None:
    """Print how often commands were disturbed, and that nothing was lost."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--injections", type=int, default=1000)
    options.add_argument("--only", default="", choices=["", *COMMANDS])
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        done = torture(Path(place), given.injections, given.only, given.seed)
        os.chdir("/")
    print(f"{done:,} injections: nothing was lost")


if __name__ == "__main__":
    main()

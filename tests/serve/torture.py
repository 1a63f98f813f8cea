"""A server that is treated badly: `make torture-serve`.

Killed at random moments, a start, an answer or a commit among them, while several clients add facts
and take facts back; every second time what it began dies with it. After each no fact that was
acknowledged is lost, none is there twice, and none that was taken back has returned. Then its disk
is filled: it refuses facts with 507, answers questions, and goes on when there is room. Then it is
sent hostile requests (`tests/serve/fuzz.py`).

    python -m tests.serve.torture [--kills 200] [--fills 20] [--requests 10000] [--seed 0]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from dicgrl.store.run_folder import RunFolder
from tests.serve.fuzz import ask, ask_raw
from tests.serve.ledger import Writer, facts_of
from tests.serve.servers import TOKEN, Server, begin, launched, ready, serving
from tests.tiny import learner_of, taught

OFTEN = ("--learn-facts", "20", "--learn-seconds", "0.5")
_ROOM = 32 << 20  # bytes of a disk beyond what the run takes
_PATIENCE = 60.0


def kills(run: Path, count: int, seed: int = 0, longest: float = 4.0) -> list[Writer]:
    """Kill a server so many times while it is written to; who wrote.

    Args:
        run: The run, which is changed.
        count: How many times.
        seed: Of the moments.
        longest: Seconds that a server lives at most.

    Raises:
        AssertionError: Something was lost, or a server failed on its own.
    """
    chance = random.Random(seed)
    writers = [Writer(f"newcomer {name}", seed + at) for at, name in enumerate("ab")]
    for _ in range(count):
        process, log = launched(run, *OFTEN)
        early = chance.random() < 0.1
        if early:
            time.sleep(chance.uniform(0, 0.3))
        server = None if early else ready(process, log)
        if server is None:
            assert early, log.read_text()
            process.kill()
        else:
            _killed_under(server, writers, chance.uniform(0, longest), whole=chance.random() < 0.5)
        process.join()
        assert "Traceback" not in log.read_text(), log.read_text()
        there = facts_of(run)
        for writer in writers:
            writer.check(there)
    with serving(run, *OFTEN) as server:
        server.until_learned()
    there = facts_of(run)
    for writer in writers:
        writer.check(there)
    found = RunFolder(run).verify()
    assert found.clean and not RunFolder(run).pending().entries, found
    return writers


def _killed_under(server: Server, writers: list[Writer], after: float, *, whole: bool) -> None:
    address = server.client.base_url
    threads = [threading.Thread(target=each.write, args=(address,)) for each in writers]
    for thread in threads:
        thread.start()
    time.sleep(after)
    children = children_of(server.process.pid or 0) if whole else []
    server.process.kill()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    for thread in threads:
        thread.join()
    server.client.close()


def children_of(process: int) -> list[int]:
    """The processes that a process, or one of its threads, began; none where it is not told."""
    found = []
    for tasks in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in tasks.read_text().split()]
    return found


@contextlib.contextmanager
def small_disk(place: Path, size: int) -> Iterator[None]:
    """A file system of so many bytes at a folder.

    Raises:
        OSError: Not everybody may mount one.
    """
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(words, capture_output=True).returncode:
        raise OSError("no file system can be mounted here")
    try:
        yield
    finally:
        # What the server began may take a moment to end.
        subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True)


def fills(run: Path, place: Path, count: int, seed: int = 0) -> Counter[int]:
    """Fill the disk of a server so many times while it is written to.

    Args:
        run: A run, which is copied.
        place: An empty folder.
        count: How many times.
        seed: Of the moments.

    Returns:
        How often each status was answered to who wrote.

    Raises:
        AssertionError: Something was lost, or the server did not go on.
        OSError: No small disk can be had.
    """
    chance = random.Random(seed)
    size = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    writers = [Writer(f"newcomer {name}", seed + at, (200, 507)) for at, name in enumerate("ab")]
    with small_disk(place, size + _ROOM):
        shutil.copytree(run, place / "run")
        server = begin(place / "run", *OFTEN, log=place.with_name("filled.log"))
        try:
            for _ in range(count):
                _filled_under(server, writers, place / "filling", chance)
            server.until_learned()
            there = facts_of(place / "run")
            for writer in writers:
                writer.check(there)
                assert all(server.knows(*fact) for fact in sorted(writer.true)[:20])
            assert "Traceback" not in server.log.read_text(), server.log.read_text()
        finally:
            server.kill()
            server.client.close()
        for writer in writers:
            writer.check(facts_of(place / "run"))
        found = RunFolder(place / "run").verify()
        assert found.clean, found
    return sum((writer.statuses for writer in writers), Counter())


def _filled_under(server: Server, writers: list[Writer], file: Path, chance: random.Random) -> None:
    """Fill the disk under writes, ask, and make room again."""
    address = server.client.base_url
    for writer in writers:
        writer.ended.clear()
    threads = [threading.Thread(target=each.write, args=(address,)) for each in writers]
    for thread in threads:
        thread.start()
    time.sleep(chance.uniform(0, 1.0))
    fill(file, chance.choice((0, 0, 4096, 20_000)))
    before = [writer.statuses[507] for writer in writers]
    until = time.monotonic() + chance.uniform(0.2, 1.5)
    while time.monotonic() < until:
        assert server.best(head="e0", relation="plus 1")
        time.sleep(0.05)
    file.unlink()
    _until_taken(server)
    for writer in writers:
        writer.ended.set()
    for thread in threads:
        thread.join()
    for writer, often in zip(writers, before, strict=True):
        assert not writer.wrong, writer.wrong
        assert writer.statuses[507] >= often


def fill(file: Path, left: int) -> None:
    """Write a file until nothing fits any more, but for so many bytes."""
    with file.open("wb", buffering=0) as out, contextlib.suppress(OSError):
        while True:
            if not out.write(bytes(4096)):
                break
    if left:
        os.truncate(file, max(0, file.stat().st_size - left))


def _until_taken(server: Server) -> None:
    """There is room: facts are taken again."""
    until = time.monotonic() + _PATIENCE
    while server.add(("e0", "plus 1", "e1")).status_code != 200:  # which is known
        assert time.monotonic() < until, server.log.read_text()
        time.sleep(0.1)


def hostile(run: Path, count: int, seed: int = 0) -> Counter[int]:
    """Send hostile requests; how often each status came.

    Raises:
        AssertionError: The server failed, or told something.
    """
    with serving(run, "--learn-facts", "50", "--learn-seconds", "5") as server:
        secrets = (str(run), str(run.parent), TOKEN)
        found = ask(server, count, seed, secrets)
        assert ask_raw(server, secrets)
        assert server.client.get("/health").status_code == 200
        assert "Traceback" not in server.log.read_text(), server.log.read_text()[-3000:]
    return found


def main() -> None:
    """Print what the server went through."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--fills", type=int, default=20)
    options.add_argument("--requests", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        (place / "disk").mkdir()
        first = place / "first"
        taught(learner_of("links", "fresh"), evaluate=False).save(first)

        def copy(name: str) -> Path:
            shutil.copytree(first, place / name)
            return place / name

        if given.kills:
            writers = kills(copy("killed"), given.kills, given.seed)
            told = sum(writer.statuses.total() for writer in writers)
            facts = sum(len(writer.true) for writer in writers)
            print(f"{given.kills:,} kills under {told:,} answered writes: each of "
                  f"{facts:,} facts is there once", flush=True)  # fmt: skip
        if given.fills:
            try:
                found = fills(first, place / "disk", given.fills, given.seed)
                print(f"{given.fills:,} times a full disk: {shown(found)}", flush=True)
            except OSError as error:
                print(f"a full disk was not tried: {error}", file=sys.stderr)
        if given.requests:
            found = hostile(copy("asked"), given.requests, given.seed)
            print(f"{found.total():,} hostile requests, none failed: {shown(found)}", flush=True)


def shown(found: Counter[int]) -> str:
    return ", ".join(f"{count:,} times {status}" for status, count in sorted(found.items()))


if __name__ == "__main__":
    main()

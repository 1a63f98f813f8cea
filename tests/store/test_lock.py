"""Two processes and one folder: the second one is told, and nobody has to clean up."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dicgrl import Learner
from dicgrl.common.locks import locked
from dicgrl.errors import BusyError, UserError
from dicgrl.jobs.change import forget_facts
from dicgrl.jobs.learn import learn_facts
from dicgrl.research.cells import Cell, cell_path, load_cell, run_cell
from dicgrl.research.job import reproduce
from dicgrl.research.kinds import PartsTable
from dicgrl.research.rows import strategy_cells
from dicgrl.research.target import Options
from tests.children import ended, start
from tests.local_server import serving
from tests.tiny import learner_of, taught, write_ring

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and signals")

SMALL = ("--device", "cpu", "--set", "epochs=2", "--set", "dim=8", "--strategy", "lower")
RUN = ("run", "ring", *SMALL, "--out", "run")
FROZEN = ("--device", "cpu", "--set", "epochs=1", "--seeds", "1", "--only", "frozen")
HOLD = """
import sys, time
from pathlib import Path
from dicgrl.common.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""
COME_AND_GO = """
import sys, time
from pathlib import Path
from dicgrl.common.locks import locked
from dicgrl.errors import BusyError
entered, until = 0, time.monotonic() + 1.5
while time.monotonic() < until or not entered:
    try:
        with locked(Path(sys.argv[1])):
            Path(sys.argv[2]).touch(exist_ok=False)
            entered += 1
            Path(sys.argv[2]).unlink()
    except BusyError:
        pass
print(entered)
"""
Hold = Callable[[Path | str], "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DICGRL_DATA", raising=False)
    write_ring(Path("ring"))
    Path("facts.tsv").write_text("e1\tlikes\te2\n")


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Begin a process that has a folder until it is killed."""
    children: list[subprocess.Popen[str]] = []

    def begin(folder: Path | str) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", HOLD, str(folder)]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        children.append(child)
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        return child

    yield begin
    for child in children:
        child.kill()
        child.communicate()


def command(*words: str) -> tuple[int, str]:
    """Exit code and output of a command in a process of its own."""
    log = Path("log")
    log.unlink(missing_ok=True)
    return ended(start(log, *words)), log.read_text(encoding="utf-8")


WRITERS = {  # folder, command
    "run": ("run", (*RUN, "--resume")),
    "whole": ("other", ("run", "ring", *SMALL[:6], "--whole", "--out", "other")),
    "learn": ("run", ("learn", "run", "facts.tsv", "--device", "cpu")),
    "reproduce": ("again", ("reproduce", "films", *FROZEN, "--out", "again")),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_second_process_is_told_and_the_first_may_be_killed(hold: Hold, name: str) -> None:
    folder, words = WRITERS[name]
    assert command(*RUN)[0] == 0
    holder = hold(folder)
    before = {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    code, said = command(*words)
    assert code == 3 and said.count("\n") == 1
    assert said.startswith(f"error: {folder}: another process is writing here")
    assert before == {p: p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert command(*words)[0] == 0
    assert not list(Path(folder).glob(".*"))


def test_a_dataset_is_fetched_by_one_process(hold: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Path("cache").absolute()
    monkeypatch.setenv("DICGRL_CACHE", str(cache))
    hold(cache / ".cora.lock")
    with serving({}) as server:
        monkeypatch.setenv("DICGRL_SOURCE", server.address)
        fetch = [sys.executable, "-m", "dicgrl", "datasets", "fetch"]
        told = subprocess.run([*fetch, "cora"], capture_output=True, text=True)
        assert told.returncode == 3 and told.stderr.count("\n") == 1
        assert "cora" in told.stderr and "another process" in told.stderr
        other = subprocess.run([*fetch, "citeseer"], capture_output=True, text=True)
        assert other.returncode == 1 and "the server answered 404" in other.stderr


def test_of_two_runs_that_begin_together_one_is_written() -> None:
    logs = [Path("first"), Path("second")]
    children = [start(log, *RUN) for log in logs]
    assert sorted(ended(child) for child in children) in ([0, 2], [0, 3])
    assert len([log for log in logs if log.read_text().startswith("error: run: ")]) == 1
    assert command(*RUN, "--resume")[0] == 0


def test_processes_of_one_reproduction_do_not_keep_each_other_out() -> None:
    cells = strategy_cells("ring", "transe", strategies=["lower", "upper"])
    target = PartsTable("tiny", "Tiny", "Table 0", {"Ring": cells}, "hits@10")
    options = Options(seeds=1, changes=("epochs=1", "dim=4"))
    outcome, _ = reproduce([target], options, Path("again"), device="cpu", jobs=2)
    assert len(outcome.ran) == 2 and not outcome.failed


def test_a_cell_that_is_being_run_is_not_begun_anew(hold: Hold, tmp_path: Path) -> None:
    """Its process may have outlived the command that began it."""
    cell = Cell("ring", "transe", "lower", changes=("epochs=1", "dim=4"))
    place = cell_path(tmp_path, cell).with_suffix(".run")
    hold(place)
    (place / "mine").touch()
    with pytest.raises(BusyError):
        run_cell(tmp_path, cell, "cpu")
    assert (place / "mine").exists() and load_cell(tmp_path, cell) is None


def test_a_folder_that_stayed_empty_is_gone_again(tmp_path: Path) -> None:
    with locked(tmp_path / "a" / "b"):
        pass
    assert not (tmp_path / "a").exists()
    (tmp_path / "empty").mkdir()
    with locked(tmp_path / "empty" / "c"):
        (tmp_path / "empty" / "c" / "note").touch()
    with locked(tmp_path / "empty" / "c"):
        pass
    assert (tmp_path / "empty" / "c" / "note").exists()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="expected a folder"), locked(tmp_path / "file"):
        pass


def test_what_a_killed_process_left_is_in_nobodys_way(hold: Hold, tmp_path: Path) -> None:
    """The lock is gone with the process; its file goes with the next lock."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "note").touch()
    for name in ("run", "fresh"):
        holder = hold(tmp_path / name)
        with pytest.raises(BusyError):
            _ask(tmp_path / name)
        holder.kill()
        holder.wait()
        _ask(tmp_path / name)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["note"]
    assert not (tmp_path / "fresh").exists()


def test_of_processes_that_come_and_go_one_is_inside(tmp_path: Path) -> None:
    """Also while the lock's file, and the folder, are removed and made again all the time."""
    words = [sys.executable, "-c", COME_AND_GO, str(tmp_path / "run"), str(tmp_path / "inside")]
    children = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    entered = [int(child.communicate()[0]) for child in children]
    assert all(child.returncode == 0 for child in children) and all(entered)
    assert not list((tmp_path / "run").glob("*")) and not (tmp_path / "inside").exists()


def test_a_folder_that_cannot_be_written_to_can_be_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has nothing to write there needs no lock."""

    def refuse(*_: object, **__: object) -> None:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    monkeypatch.setattr("sqlite3.connect", refuse)
    with pytest.raises(OSError, match="cannot be locked"):
        _ask(tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)
    _ask(tmp_path)


def test_a_forked_process_does_not_keep_a_lock(tmp_path: Path) -> None:
    """It outlives the block that had the folder, as a worker of a data loader may."""
    with locked(tmp_path):
        child = os.fork()
        if not child:
            time.sleep(60)
            os._exit(0)
    try:
        words = [sys.executable, "-c", COME_AND_GO, str(tmp_path), str(tmp_path / "inside")]
        assert int(subprocess.run(words, capture_output=True, check=True, timeout=30).stdout)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_who_waits_gets_the_folder_when_it_is_free(hold: Hold, tmp_path: Path) -> None:
    holder = hold(tmp_path)
    threading.Timer(0.3, holder.kill).start()
    with pytest.raises(BusyError), locked(tmp_path, wait=0.05):
        pass
    with locked(tmp_path, wait=30):
        assert holder.wait() == -signal.SIGKILL


@pytest.mark.parametrize("wait", [float("inf"), 1e30, 3e6])
def test_who_would_wait_for_ever_waits(hold: Hold, tmp_path: Path, wait: float) -> None:
    holder = hold(tmp_path)
    threading.Timer(0.2, holder.kill).start()
    with locked(tmp_path, wait=wait):
        assert holder.wait() == -signal.SIGKILL


def test_a_thread_may_ask_again_and_others_may_not(tmp_path: Path) -> None:
    with locked(tmp_path), locked(tmp_path), ThreadPoolExecutor(1) as pool:
        assert isinstance(pool.submit(_ask, tmp_path).exception(), BusyError)
        with pytest.raises(BusyError):
            pool.submit(_ask, tmp_path).result()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_ask, tmp_path).result()


def _ask(folder: Path) -> None:
    with locked(folder):
        pass


def test_a_learner_is_not_saved_where_another_process_writes(hold: Hold, tmp_path: Path) -> None:
    learner = taught(learner_of("links"), 1)
    learner.save(tmp_path / "run")
    taught(learner, 2)
    holder = hold(tmp_path / "run")
    with pytest.raises(BusyError):
        learner.save(tmp_path / "run")
    holder.kill()
    holder.wait()
    learner.save(tmp_path / "run")
    assert Learner.load(tmp_path / "run").num_parts == 2


@pytest.mark.parametrize("change", ["learn", "forget"])
def test_nothing_is_learned_for_a_folder_that_cannot_be_written_to(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught(learner_of("links", "lower"), 1).save(tmp_path / "run")
    facts = tmp_path / "facts.tsv"
    facts.write_text("e1\tlikes\tnewcomer\n", encoding="utf-8")
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr(Learner, "undergo", None)  # it would be called to learn
    with pytest.raises(UserError, match="cannot be written to"):
        {"learn": learn_facts, "forget": forget_facts}[change](tmp_path / "run", facts)

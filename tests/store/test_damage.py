"""Only what the files of a run contain is called damaged, not what this machine lacks."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch

from dicgrl import DataError, Learner, UserError
from dicgrl.common import room
from dicgrl.common.optional import needed
from dicgrl.errors import BusyError, SetupError
from dicgrl.jobs.versions import verified
from dicgrl.models import KnowledgeModel
from dicgrl.settings import Settings
from dicgrl.store.checkpoint import load_model, save_model
from dicgrl.store.run_folder import RunFolder
from dicgrl.trainers.trainer import Trainer

FACTS = [(f"film {i}", "genre", f"genre {i % 3}") for i in range(9)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu")
    learner.learn(FACTS)
    learner.save(tmp_path / "run")
    return tmp_path / "run"


def missing_library(*_: Any) -> NoReturn:
    needed("no_such_library", "arrow", "this strategy")
    raise AssertionError


def raising(error: Exception) -> Callable[..., NoReturn]:
    def fail(*_: Any, **__: Any) -> NoReturn:
        raise error

    return fail


def denied() -> PermissionError:
    return PermissionError(errno.EACCES, os.strerror(errno.EACCES))


CASES = [
    (missing_library, SetupError, r"^this strategy needs no_such_library: pip install"),
    (raising(BusyError("somebody is writing")), BusyError, "^somebody is writing$"),
    (raising(MemoryError("too much")), MemoryError, "^too much$"),
    (raising(torch.OutOfMemoryError("CUDA out of memory")), torch.OutOfMemoryError, "^CUDA out"),
    (raising(RuntimeError("can't allocate memory")), RuntimeError, "^can't allocate"),
    (raising(OSError(errno.ENOSPC, "the disk is full")), OSError, "the disk is full$"),
]


@pytest.mark.parametrize("where", [(Trainer, "recall"), (Settings, "make_strategy")])
@pytest.mark.parametrize(("fail", "kind", "said"), CASES)
def test_what_is_lacking_here_is_no_damage(
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: tuple[type, str],
    fail: Callable[..., NoReturn],
    kind: type[Exception],
    said: str,
) -> None:
    monkeypatch.setattr(*where, fail)
    for work in (lambda: Learner.load(run, device="cpu"), lambda: verified(run)):
        with pytest.raises(kind, match=said) as caught:
            work()
        assert type(caught.value) is kind


@pytest.mark.parametrize(("fail", "kind", "said"), CASES)
def test_a_reader_is_as_it_was_when_it_could_not_catch_up(
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    fail: Callable[..., NoReturn],
    kind: type[Exception],
    said: str,
) -> None:
    reader, writer = (Learner.load(run, device="cpu") for _ in range(2))
    writer.learn([("film 10", "genre", "genre 0")])
    writer.save(run)
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "follow", fail)
        with pytest.raises(kind, match=said) as caught:
            reader.refresh()
    assert type(caught.value) is kind
    assert reader.num_parts == 1 and reader.predict(head="film 1", relation="genre", k=1)
    assert reader.refresh() and reader.num_parts == 2


def test_a_folder_for_large_arrays_that_cannot_be_written_is_no_damage(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(room.SPILL_VARIABLE, str(tmp_path))
    monkeypatch.setattr(room, "_LEAST", 1)
    monkeypatch.setattr(room.tempfile, "TemporaryFile", raising(denied()))
    with pytest.raises(SetupError, match=r"^DICGRL_SPILL=.*cannot be written there"):
        Learner.load(run, device="cpu")


def test_memory_that_lacks_while_tensors_are_read_is_no_damage(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks = raising(RuntimeError("unable to mmap 8 bytes: Cannot allocate memory (12)"))
    for place in ("records.combined", "tensors.safe_open", "reading.built_model"):
        with monkeypatch.context() as patched:
            patched.setattr(f"dicgrl.store.{place}", lacks)
            with pytest.raises(RuntimeError, match="unable to mmap"):
                Learner.load(run, device="cpu")
            with pytest.raises(RuntimeError, match="unable to mmap"):
                verified(run)


@pytest.mark.parametrize("readable", [False, True])
def test_a_database_that_may_not_be_read_is_no_damage(
    run: Path, monkeypatch: pytest.MonkeyPatch, readable: bool
) -> None:
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    monkeypatch.setattr("dicgrl.store.database._open", raising(error))
    monkeypatch.setattr("dicgrl.store.database.os.access", lambda *_: readable)
    with pytest.raises(DataError if readable else PermissionError, match="unable to open"):
        Learner.load(run, device="cpu")
    if readable:
        assert verified(run).damage
        return
    with pytest.raises(PermissionError):
        verified(run)


def test_tensors_that_may_not_be_read_are_no_damage(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dicgrl.store.tensors.checksum", raising(denied()))
    for work in (lambda: Learner.load(run, device="cpu"), lambda: verified(run)):
        with pytest.raises(PermissionError):
            work()


def test_a_checkpoint_that_may_not_be_read_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(KnowledgeModel("transe", 4), tmp_path, {})
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", raising(denied()))
        with pytest.raises(PermissionError):
            load_model(tmp_path)
    monkeypatch.setattr("dicgrl.store.checkpoint.load_file", raising(denied()))
    with pytest.raises(PermissionError):
        load_model(tmp_path)


@pytest.mark.parametrize("error", [UserError("it has entity id 7"), IndexError(), RuntimeError()])
def test_what_does_not_fit_together_is_damage(
    run: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(Trainer, "recall", raising(error))
    with pytest.raises(DataError, match=r"run: damaged run \("):
        Learner.load(run, device="cpu")
    assert "damaged run" in " ".join(verified(run).damage)
    assert RunFolder(run).verify().clean  # each file is

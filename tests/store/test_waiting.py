"""Readers do not wait for a writer, nor for whoever closes the database last."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dicgrl.errors import BusyError
from dicgrl.store import database
from dicgrl.store.database import Database, create, opened

ABOUT = {"identity": "of a test"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create(tmp_path / "store.sqlite", ABOUT)
    return tmp_path / "store.sqlite"


def tagged(path: Path, name: str) -> None:
    with opened(path, write=True) as stored:
        stored.config()
        with stored.transaction():
            stored.insert("tags", name=name, version=1)


def tags_of(reader: Database) -> list[str]:
    reader.config()
    return [row["name"] for row in reader.rows("tags")]


def without_log(path: Path) -> list[str]:
    """The tags that the database itself has, whatever is still in its log."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM tags")]


def test_a_writer_leaves_nothing_in_the_log_for_a_reader_to_write(path: Path) -> None:
    """Who closes last moves the log to the database, syncs it, and keeps everybody out."""
    with opened(path) as reader:
        assert tags_of(reader) == []
        reader.connection.execute("COMMIT")  # it is there, and reads nothing at this moment
        tagged(path, "new")
        assert without_log(path) == ["new"]


def test_a_writer_does_not_wait_for_who_reads_what_was_before(path: Path) -> None:
    with opened(path) as reader:
        assert tags_of(reader) == []
        tagged(path, "new")
        assert tags_of(reader) == []
    with opened(path) as reader:
        assert tags_of(reader) == ["new"]


def test_a_commit_counts_where_the_log_cannot_be_moved(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full may have room for the log, and none for the database."""

    class Full(sqlite3.Connection):
        def execute(self, sql: str, *given: object) -> sqlite3.Cursor:
            if "wal_checkpoint" in sql:
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(sql, *given)  # type: ignore[arg-type]

    connect = sqlite3.connect
    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", lambda *g, **n: connect(*g, **n, factory=Full))
        tagged(path, "new")
    with opened(path) as reader:
        assert tags_of(reader) == ["new"]


def test_whoever_comes_while_the_last_one_closes_looks_again_soon(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing_one = sqlite3.connect(path, isolation_level=None)
    closing_one.execute("PRAGMA locking_mode = EXCLUSIVE")  # as SQLite has it then
    closing_one.execute("SELECT * FROM tags").fetchall()
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 20:
            closing_one.close()

    monkeypatch.setattr(database.time, "sleep", sleep)
    with opened(path) as reader:
        assert reader.config()["identity"] == ABOUT["identity"]
    assert len(pauses) == 20 and max(pauses) <= 0.002


def test_nobody_waits_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PATIENCE", 0.02)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("SELECT * FROM tags").fetchall()
        with pytest.raises(BusyError, match="another process is writing"), opened(path):
            pass

"""Folders that one process has to itself: the lock is that of an empty SQLite database.

SQLite's lock is the process's own: the system releases it when the process ends, however it ends,
and a process that is forked meanwhile does not keep it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from dicgrl.errors import BusyError, UserError, shown_value

LOCK = ".lock"  # in the folder, while somebody has it
# Of a file system: SQLite has no other words for one that does not lock.
_NO_LOCKS = {
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_IOERR_LOCK,
    sqlite3.SQLITE_IOERR_RDLOCK,
    sqlite3.SQLITE_NOLFS,
}
_TRIES = 100
_LONGEST = 1e6  # seconds that anybody waits: SQLite counts milliseconds in 32 bits
_PAUSE = 0.001  # seconds between them: whoever removes and makes the folder has to come to an end
_held: dict[tuple[Path, int], sqlite3.Connection | None] = {}  # by folder and thread


@contextlib.contextmanager
def locked(folder: Path, wait: float = 0.0) -> Iterator[None]:
    """Have a folder to oneself among the processes that ask; it is made if it is not there.

    A killed process leaves an empty file `.lock` behind, which is in nobody's way; the next lock
    removes it. A folder that was made here and stays empty is removed again. A thread that has the
    folder may ask for it again.

    Nothing keeps processes apart on a file system without locks, or in a folder that cannot be
    written to anyway.

    Args:
        folder: The folder.
        wait: Seconds to wait for another process or thread to end.

    Raises:
        BusyError: Another process or thread has the folder.
        UserError: There is a file in place of the folder.
    """
    place = folder.resolve()
    holder = place, threading.get_ident()
    if holder in _held:
        yield
        return
    made = [each for each in (place, *place.parents) if not each.exists()]
    with contextlib.suppress(OSError):  # it may be removed at this moment
        if (place / LOCK).exists() and os.listdir(place) == [LOCK]:  # a killed process made it
            made = [place]
    if place.is_file():  # asked once: the folder may come and go
        raise UserError(f"{folder}: is a file; expected a folder")
    if not isinstance(wait, int | float):
        raise UserError(f"wait={shown_value(wait)}: expected a number of seconds")
    until = time.monotonic() + min(wait, _LONGEST)
    connection = _acquired(folder, place, until)
    _held[holder] = connection
    process = os.getpid()
    try:
        yield
    finally:
        _held.pop(holder, None)
        if os.getpid() == process:  # a forked process has nothing to release
            _release(connection, place)
            for each in made:
                with contextlib.suppress(OSError):  # there is something in it
                    each.rmdir()


def _acquired(folder: Path, place: Path, until: float) -> sqlite3.Connection | None:
    """The connection that holds the lock; None where there is nothing to lock."""
    tries = _TRIES
    while True:
        try:
            place.mkdir(parents=True, exist_ok=True)
            sqlite3.connect(place / LOCK).close()  # the file is there
            with _pinned(place / LOCK) as before:
                connection = _begun(place / LOCK, max(until - time.monotonic(), 0.0))
                if _as_named(place / LOCK) == before:
                    return connection
                connection.close()  # of a file that whoever had the folder has removed meanwhile
        except (FileExistsError, FileNotFoundError):
            # Whoever had made the folder left it empty and has just removed it.
            tries -= 1
            if not tries:
                raise
            time.sleep(_PAUSE)
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0)
            if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise BusyError(
                    f"{folder}: another process is writing here; wait until it has ended"
                ) from None
            if code in _NO_LOCKS or (place.is_dir() and not os.access(place, os.W_OK)):
                return None
            tries -= 1
            if not tries:
                raise OSError(f"{folder}: cannot be locked ({error})") from error
            time.sleep(_PAUSE)


def _begun(path: Path, wait: float) -> sqlite3.Connection:
    # Threads are kept apart by `_held`; a connection is closed in the child after a fork.
    connection = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = MEMORY")  # nothing is ever written
        connection.execute("BEGIN EXCLUSIVE")
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def _pinned(path: Path) -> Iterator[tuple[int, int, int] | None]:
    """Which file has the name, whose number is not used again before the block ends.

    Files may come and go within a tick of the clock. Unlike any other, a descriptor of a path alone
    (Linux) can be closed without giving up what locks the process has of the file.
    """
    if not hasattr(os, "O_PATH"):
        yield _as_named(path)
        return
    descriptor = os.open(path, os.O_PATH)
    try:
        yield _identity(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _as_named(path: Path) -> tuple[int, int, int] | None:
    """Which file has the name now: its number may be used again, its time is never that of then."""
    try:
        return _identity(path.stat())
    except FileNotFoundError:
        return None


def _identity(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _release(connection: sqlite3.Connection | None, place: Path) -> None:
    """Remove the lock's file and release it, if it is held at all."""
    if connection is None:
        return
    # POSIX removes the file while it is held: later it may be that of another process. Windows
    # removes no file that is open, so that one which another process has taken stays.
    if os.name == "posix":
        (place / LOCK).unlink(missing_ok=True)
    connection.close()
    if os.name != "posix":
        with contextlib.suppress(OSError):
            (place / LOCK).unlink(missing_ok=True)


def _forget() -> None:
    """In a forked process: the locks are the parent's."""
    for connection in _held.values():
        if connection is not None:
            connection.close()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

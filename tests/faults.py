"""Faults where a process writes: it is killed, or the disk is full or broken, at the n-th step.

A process is killed right at a step, or a moment later, wherever it is then.

A step is what can leave something by half: a sync, a new name, a removal, a file of tensors, a
text, a statement that changes the database, and the moments before and after a commit of SQLite.
"""

from __future__ import annotations

import errno
import os
import random
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

KINDS = ("kill", "moment", "enospc", "eio")
ENDS = {"kill": (-signal.SIGKILL,), "moment": (-signal.SIGALRM, 0), "enospc": (0, 1), "eio": (0, 1)}
"""How a process may end; a step of clearing up may fail when all is there."""
_LATEST = 4e-3  # seconds after a step at which a process is killed at a moment
_CODES = {"enospc": errno.ENOSPC, "eio": errno.EIO}
_SQLITE = {"enospc": sqlite3.SQLITE_FULL, "eio": sqlite3.SQLITE_IOERR}


class Fault(NamedTuple):
    """What goes wrong.

    Attributes:
        kind: One of `KINDS`.
        at: At which step, counted from 1; at none of them for 0.
        count: A file that gets the number of steps there were; none for an empty name.
    """

    kind: str
    at: int
    count: str = ""


class _Steps:
    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.steps = 0

    def reached(self) -> bool:
        """Whether this is the step at which something goes wrong."""
        self.steps += 1
        if self.fault.count:
            Path(self.fault.count).write_bytes(b"." * self.steps)
        if self.steps != self.fault.at:
            return False
        if self.fault.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault.kind == "moment":  # wherever it is then, in SQLite's writes and syncs, too
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, _LATEST))
            return False
        return True

    def error(self) -> OSError:
        code = _CODES[self.fault.kind]
        return OSError(code, os.strerror(code))

    def of_sqlite(self) -> sqlite3.OperationalError:
        error = sqlite3.OperationalError(f"injected: {self.fault.kind}")
        error.sqlite_errorcode = _SQLITE[self.fault.kind]
        return error


def inject(fault: Fault) -> None:
    """Let something go wrong in this process from now on."""
    steps = _Steps(fault)
    for name in ("fsync", "replace", "rename", "unlink"):
        setattr(os, name, _failing(getattr(os, name), steps))
    from dicgrl.common import tensors

    tensors.save_file = _by_half(tensors.save_file, steps)  # type: ignore[attr-defined]
    Path.write_text = _failing(Path.write_text, steps)  # type: ignore[method-assign]
    connect = sqlite3.connect

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
            if sql.startswith(("SELECT", "PRAGMA", "ROLLBACK", "BEGIN")):
                return super().execute(sql, *given)
            if steps.reached():
                raise steps.of_sqlite()
            found = super().execute(sql, *given)
            if sql.startswith("COMMIT") and fault.kind in ("kill", "moment"):
                steps.reached()
            return found

    def connected(*given: Any, **named: Any) -> sqlite3.Connection:
        return connect(*given, **(named | {"factory": Connection}))

    sqlite3.connect = connected  # type: ignore[assignment]


def _failing(function: Callable[..., Any], steps: _Steps) -> Callable[..., Any]:
    def failing(*given: Any, **named: Any) -> Any:
        if steps.reached():
            raise steps.error()
        return function(*given, **named)

    return failing


def _by_half(save: Callable[..., Any], steps: _Steps) -> Callable[..., Any]:
    """A file of tensors is written by half when something goes wrong."""

    def saving(tensors: Any, path: Path, *more: Any) -> None:
        save(tensors, path, *more)
        if steps.steps + 1 == steps.fault.at and steps.fault.kind != "moment":  # that goes on
            os.truncate(path, path.stat().st_size // 2)
        if steps.reached():
            raise steps.error()

    return saving

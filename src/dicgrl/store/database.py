"""The SQLite database of a run, `store.sqlite`.

Every row carries a checksum over its values and the identity of the run, so that neither damaged
rows nor rows of another run are used. A database that does not have exactly our tables is refused.
Readers and a writer do not disturb each other: a reader sees the database as it was when it opened
it (SQLite's write-ahead log), and a commit is on the disk before it is visible.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dicgrl.errors import BusyError, DataError
from dicgrl.store.damage import damaged_run

FORMAT = "dicgrl-store-1"
PIECE = 1 << 26  # bytes of an array in one row
_LONGEST = 1 << 28  # bytes of a value that is read at all
_FAILURES = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
}
_PATIENCE = 30.0  # seconds that a commit of somebody else may take
_PAUSE = 0.001  # seconds between tries to reach a database that is being closed
_TIDYING = 100  # milliseconds that a writer waits for readers of what was before
TABLES = {
    "about": "config TEXT NOT NULL",
    "versions": (
        "number INTEGER PRIMARY KEY, parent INTEGER NOT NULL, kind TEXT NOT NULL, "
        "time TEXT NOT NULL, message TEXT NOT NULL, content TEXT NOT NULL, report TEXT NOT NULL, "
        "tests TEXT NOT NULL, results TEXT"
    ),
    "arrays": (
        "version INTEGER NOT NULL, name TEXT NOT NULL, piece INTEGER NOT NULL, data BLOB NOT NULL"
    ),
    "names": "version INTEGER NOT NULL, names TEXT NOT NULL",
    "models": "version INTEGER PRIMARY KEY, source INTEGER NOT NULL, configuration TEXT NOT NULL",
    "files": (
        "name TEXT PRIMARY KEY, version INTEGER NOT NULL, parent INTEGER NOT NULL, "
        "bytes INTEGER NOT NULL, content TEXT NOT NULL"
    ),
    "tags": "name TEXT PRIMARY KEY, version INTEGER NOT NULL",
    "trace": "version INTEGER PRIMARY KEY, epochs TEXT NOT NULL",
}
ADDED = {
    "pending": (
        "number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, facts TEXT NOT NULL"
    ),
    "settled": "number INTEGER PRIMARY KEY",
    "maps": "version INTEGER PRIMARY KEY, about TEXT NOT NULL, data BLOB NOT NULL",
    "nights": (
        "number INTEGER PRIMARY KEY, version INTEGER NOT NULL, time TEXT NOT NULL, "
        "report TEXT NOT NULL"
    ),
}
"""Tables that came later: a store may lack them, and is then read as if they were empty."""


def _statement(name: str, columns: str) -> str:
    return f"CREATE TABLE {name} ({columns}, sha256 TEXT NOT NULL)"


_SCHEMA = [_statement(name, columns) for name, columns in TABLES.items()]
_SCHEMA.append("CREATE INDEX arrays_of ON arrays (version, name, piece)")
_ADDED_SCHEMA = {name: _statement(name, columns) for name, columns in ADDED.items()}


class Database:
    """An open connection to the database; `opened` gives one.

    Args:
        path: The file.
        connection: The connection.
        identity: The identity of the run, which is part of every checksum; empty until `config` or
            `set_config` was called.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, identity: str = "") -> None:
        self.path = path
        self.connection = connection
        self.identity = identity

    def insert(self, table: str, **values: Any) -> None:
        """Add a row with its checksum; one of the same key is replaced."""
        columns = ", ".join([*values, "sha256"])
        places = ", ".join("?" * (len(values) + 1))
        row = [*values.values(), self._checksum(table, values)]
        self.connection.execute(
            f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({places})", row
        )

    def rows(
        self, table: str, rest: str = "", given: tuple[Any, ...] = ()
    ) -> Iterator[dict[str, Any]]:
        """Rows as dictionaries, each checked.

        Raises:
            DataError: A row is damaged or of another run.
        """
        if table in ADDED and not self.has(table):
            return
        found = self.connection.execute(f"SELECT * FROM {table} {rest}", given)
        columns = [column[0] for column in found.description]
        for values in found:
            row = dict(zip(columns, values, strict=True))
            expected = row.pop("sha256")
            if self._checksum(table, row) != expected:
                raise self.damaged(f"a row of {table} has another checksum than was written")
            yield row

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return int(self.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    def has(self, table: str) -> bool:
        """Whether there is such a table."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self.connection.execute(query, (table,)).fetchone() is not None

    def add_tables(self) -> None:
        """Make the tables that a store of an earlier version lacks."""
        missing = [name for name in ADDED if not self.has(name)]
        if missing:
            with self.transaction():
                for name in missing:
                    if not self.has(name):  # another process may have been first
                        self.connection.execute(_ADDED_SCHEMA[name])

    def config(self) -> dict[str, Any]:
        """What the run is; from then on the rows of other runs are refused.

        Raises:
            DataError: It is missing, damaged or of a version that is not known.
        """
        found = self.connection.execute("SELECT config FROM about").fetchall()
        if len(found) != 1:
            raise self.damaged("it does not say what run it is of")
        try:
            config = parsed(found[0][0])
        except ValueError as error:
            raise self.damaged(error) from error
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            raise DataError(self.path, f"not a run of this version (expected format {FORMAT!r})")
        self.identity = str(config.get("identity"))
        for _ in self.rows("about"):
            pass
        return config

    def set_config(self, config: Mapping[str, Any]) -> None:
        """Replace what the run is."""
        self.identity = str(config["identity"])
        self.connection.execute("DELETE FROM about")
        self.insert("about", config=as_text(config))

    def change_config(self, **changes: Any) -> None:
        """Replace some values of what the run is."""
        self.set_config({**self.config(), **changes})

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside is there afterwards, or nothing of it."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            raise

    def damaged(self, what: object) -> DataError:
        """The error for a database that does not say what it should."""
        return damaged_run(self.path, what)

    def _checksum(self, table: str, values: Mapping[str, Any]) -> str:
        digest = hashlib.sha256(f"{self.identity} {table}".encode())
        for name, value in values.items():
            content = value if isinstance(value, bytes) else repr(value).encode()
            digest.update(f" {name} {type(value).__name__} {len(content)} ".encode())
            digest.update(content)
        return digest.hexdigest()


def as_text(content: Any) -> str:
    """JSON in one line."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def parsed(text: Any) -> Any:
    """What `as_text` wrote.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return json.loads(text)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from error


def create(path: Path, config: Mapping[str, Any]) -> None:
    """Make a database without versions; the file must not be there."""
    with _failures(path, write=True), contextlib.closing(_connected(path, "rwc")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        database = Database(path, connection)
        with database.transaction():
            # Those that may stay empty first: then a file that was cut off lacks something.
            for statement in (*_ADDED_SCHEMA.values(), *_SCHEMA):
                connection.execute(statement)
            database.set_config({**config, "format": FORMAT, "versions": 0})


@contextlib.contextmanager
def opened(path: Path, *, write: bool = False) -> Iterator[Database]:
    """Open a database; reading sees it as it is now until the block ends.

    Raises:
        DataError: It is missing, damaged or not a database of ours.
    """
    check_regular(path)
    with _failures(path, write=write), contextlib.ExitStack() as stack:
        connection = stack.enter_context(contextlib.closing(_open(path, write, stack)))
        _check_schema(path, connection)
        database = Database(path, connection)
        if write:
            connection.execute("PRAGMA synchronous = FULL")
            database.add_tables()
        else:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
        yield database
        if write:
            _clear_log(connection)


def _clear_log(connection: sqlite3.Connection) -> None:
    """Move what was committed from the log to the database, without keeping readers out.

    The last connection to close does so too, and whoever opens the database meanwhile waits for the
    disk: that must find nothing left to do.
    """
    with contextlib.suppress(sqlite3.Error):  # the log holds it all
        connection.execute(f"PRAGMA busy_timeout = {_TIDYING}")
        connection.execute("PRAGMA wal_checkpoint(FULL)")


def writing_failures(path: Path) -> contextlib.AbstractContextManager[None]:
    """Errors of a database that stays open, in our words; `opened` does it for its block."""
    return _failures(path, write=True)


@contextlib.contextmanager
def _failures(path: Path, *, write: bool) -> Iterator[None]:
    """Translate an error of SQLite."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_BUSY:
            raise BusyError(f"{path.parent}: another process is writing here") from error
        denied = code == sqlite3.SQLITE_CANTOPEN and not os.access(path, os.R_OK)
        if code in _FAILURES and (write or denied):  # nobody's mistake: a disk is full or broken
            raise OSError(_FAILURES[code], str(error), str(path)) from error
        raise DataError(path, f"damaged run ({error})") from error


def _open(path: Path, write: bool, stack: contextlib.ExitStack) -> sqlite3.Connection:
    """A connection that works, also in a folder that cannot be written to."""
    try:
        # Readers open it for writing, too: then the last one to go clears the log away.
        connection = _connected(path, "rw")
        try:
            _reach(connection)
        except BaseException:
            connection.close()
            raise
        return connection
    except sqlite3.OperationalError:
        if write or os.access(path.parent, os.W_OK):
            raise
    log = path.with_name(path.name + "-wal")
    if not log.exists():
        return _connected(path, "ro&immutable=1")
    place = Path(stack.enter_context(tempfile.TemporaryDirectory()))  # with its log, to be read
    for file in (path, log):
        shutil.copyfile(file, place / file.name)
    return _connected(place / path.name, "rw")


def _reach(connection: sqlite3.Connection) -> None:
    """Have a connection read once, which it cannot while the last one before it closes.

    That takes a moment; SQLite's own pauses would grow to a tenth of a second.
    """
    until = time.monotonic() + _PATIENCE
    connection.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            break
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * _PATIENCE)}")


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _check_schema(path: Path, connection: sqlite3.Connection) -> None:
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    if sorted({sql for (sql,) in found} - set(_ADDED_SCHEMA.values())) != sorted(_SCHEMA):
        raise DataError(path, "not a run of this version (it has other tables)")


def check_regular(path: Path) -> None:
    """Refuse what is no plain file: a link, a pipe, a device.

    Raises:
        DataError: It is missing or something else.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise DataError(path, "damaged run: this file is missing") from None
    if not stat.S_ISREG(found.st_mode):
        raise DataError(path, "damaged run: expected a plain file")

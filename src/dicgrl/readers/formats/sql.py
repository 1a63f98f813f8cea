"""SQLite files: the results of an SQL query."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from dicgrl.errors import DataError, UserError, shown
from dicgrl.graph.labels import as_label, check_labels
from dicgrl.readers.formats import TRIPLE, Format
from dicgrl.readers.reading import find_columns
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import Rows

_BATCH = 1 << 16  # rows at a time
_LISTED = 20  # tables in a message


class Sqlite(Format):
    """The rows of a query. Columns are found by name, as in other tables; nothing is written."""

    endings: ClassVar = (".sqlite", ".sqlite3", ".db")
    heeds: ClassVar = ("columns", "query")

    @override
    def rows(self, file: SourceFile, width: int, exact: bool) -> Iterator[Rows]:
        first = 1
        with _opened(file) as database:
            query = file.reading.query or _only_table(file, database)
            try:
                answers = database.execute(query)
                names = [column[0] for column in answers.description or ()]
                if not names:
                    raise DataError(file.label, f"expected a query that answers: {shown(query)}")
                chosen = find_columns(file.label, names, file.reading, width)
                while rows := answers.fetchmany(_BATCH):
                    columns = [[row[at] for row in rows] for at in chosen]
                    labels = [as_column(file, column, first) for column in columns[:TRIPLE]]
                    times = [
                        ["" if value is None else str(value) for value in column]
                        for column in columns[TRIPLE:]
                    ]
                    yield Rows(first, [*labels, *times])
                    first += len(rows)
            except (sqlite3.Error, sqlite3.Warning) as error:
                raise DataError(file.label, f"{error}; the query was {shown(query)}") from error
        if first == 1:
            raise DataError(file.label, f"the query has no answers: {shown(query)}")

    @override
    def says_times(self, file: SourceFile) -> bool:
        if file.reading.named:
            return super().says_times(file)
        with contextlib.suppress(DataError):
            for _ in self.rows(file, TRIPLE + 1, exact=False):
                return True
        return False


@contextlib.contextmanager
def _opened(file: SourceFile) -> Iterator[sqlite3.Connection]:
    path = Path(file.label)
    if not path.is_file():  # a member of an archive, or compressed
        raise DataError(file.label, "a database is read from a file of its own")
    try:
        database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise DataError(file.label, f"cannot be opened ({error})") from error
    with contextlib.closing(database):
        database.execute("PRAGMA query_only = ON")
        yield database


def _only_table(file: SourceFile, database: sqlite3.Connection) -> str:
    """The query for all rows of the only table."""
    try:
        found = database.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite_%' ORDER BY name"
        ).fetchall()
    except sqlite3.DatabaseError as error:
        raise DataError(file.label, f"no SQLite database ({error})") from error
    return which_table(file.label, [name for (name,) in found], quoted)


def quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def which_table(label: str, tables: Sequence[str], quote: Callable[[str], str]) -> str:
    """The query for all rows of the only table there is.

    Raises:
        DataError: There are several, or none.
    """
    if len(tables) == 1:
        return f"SELECT * FROM {quote(tables[0])}"
    held = ", ".join(map(shown, tables[:_LISTED])) or "none"
    raise DataError(
        label,
        f"it has the tables {held}; say what to read, as in "
        "--query 'SELECT head, relation, tail FROM ...'",
    )


def as_column(file: SourceFile, values: list[Any], first: int) -> list[str]:
    """A column of answers as labels.

    Raises:
        DataError: A value is none; `first` is the number of the first row.
    """
    for row, value in enumerate(values, start=first):
        if value is None or value == "":
            if file.may_lack:
                values[row - first] = ""
                continue
            raise DataError(file.label, "a value is empty", row)
        try:
            label = as_label(value)
            check_labels([label])
        except UserError as error:
            raise DataError(file.label, str(error), row) from None
        values[row - first] = label
    return values

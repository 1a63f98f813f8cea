"""Reads the results of an SQL query from a database, given its URL, through SQLAlchemy.

Nothing is committed to the database. SQLAlchemy is optional: `pip install 'dicgrl[sql]'`. The
database's own driver is needed, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from dicgrl.common.optional import needed
from dicgrl.errors import DataError, FailureError, UserError, shown
from dicgrl.readers.formats import Format
from dicgrl.readers.formats.sql import as_column, which_table
from dicgrl.readers.reading import find_columns
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import Rows

_BATCH = 1 << 16  # rows at a time
_PACKAGES = {"MySQLdb": "mysqlclient"}  # of drivers that are called otherwise


class Database(Format):
    """Rows of a query to a database behind a URL.

    Args:
        url: The address, such as postgresql://host/name.
    """

    endings: ClassVar[tuple[str, ...]] = ()

    def __init__(self, url: str) -> None:
        self.url = url

    @override
    def rows(self, file: SourceFile, width: int, exact: bool) -> Iterator[Rows]:
        library = needed("sqlalchemy", "sql", "a database's URL")
        first = 1
        with self._connected(library, file) as connection:
            query = file.reading.query or _only_table(library, connection, file)
            try:
                answers = connection.exec_driver_sql(query)
                if not answers.returns_rows:
                    raise DataError(file.label, f"expected a query that answers: {shown(query)}")
                chosen = find_columns(file.label, list(answers.keys()), file.reading, width)
                for rows in answers.partitions(_BATCH):
                    columns = [[row[at] for row in rows] for at in chosen]
                    yield Rows(first, [as_column(file, column, first) for column in columns])
                    first += len(rows)
            except library.exc.SQLAlchemyError as error:
                raise DataError(
                    file.label, f"{_said(error)}; the query was {shown(query)}"
                ) from error
        if first == 1:
            raise DataError(file.label, f"the query has no answers: {shown(query)}")

    @contextlib.contextmanager
    def _connected(self, library: Any, file: SourceFile) -> Iterator[Any]:
        errors = library.exc
        try:
            url = library.engine.make_url(self.url)
            if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
                raise UserError(f"{url.database}: no such file")  # else it would be made
            engine = library.create_engine(url)
        except errors.NoSuchModuleError as error:
            raise UserError(f"{file.label}: SQLAlchemy knows no such database") from error
        except ImportError as error:
            package = _PACKAGES.get(error.name or "", error.name)
            raise UserError(f"{file.label}: its driver is missing: pip install {package}") from None
        except (errors.ArgumentError, ValueError) as error:
            raise UserError(f"{file.label}: not the URL of a database ({_said(error)})") from error
        try:
            connection = engine.connect().execution_options(stream_results=True)
        except errors.SQLAlchemyError as error:
            raise FailureError(f"{file.label}: cannot be reached ({_said(error)})") from error
        try:
            yield connection
        finally:
            connection.rollback()
            connection.close()
            engine.dispose()


def _only_table(library: Any, connection: Any, file: SourceFile) -> str:
    tables = library.inspect(connection).get_table_names()
    return which_table(file.label, tables, connection.dialect.identifier_preparer.quote)


def _said(error: Exception) -> str:
    """The first line of a message, without the address of its page."""
    said = str(getattr(error, "orig", None) or error).strip()
    return said.splitlines()[0] if said else type(error).__name__

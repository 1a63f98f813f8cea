"""Reads the results of an SQL query from a database through ADBC, as Arrow batches.

Nothing is committed to the database. ADBC is optional: `pip install 'dicgrl[adbc]'`. Each database
also needs its driver, such as adbc-driver-postgresql; the one for SQLite is included.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from dicgrl.common.optional import needed
from dicgrl.errors import DataError, FailureError, UserError, shown
from dicgrl.readers.formats import Format
from dicgrl.readers.formats.columnar import chosen_names, coded_rows
from dicgrl.readers.formats.sql import quoted, which_table
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import Rows

_FORM = re.compile(r"adbc\+(?P<driver>[a-z0-9_]+)(?:\+(?P<scheme>[a-z0-9+.-]+))?://(?P<rest>.*)")
PREFIX = "adbc+"


class Adbc(Format):
    """Rows of a query to a database that has an ADBC driver.

    Args:
        url: `adbc+DRIVER://...`. If the driver's own addresses begin with another word than its
            name, `adbc+DRIVER+WORD://...`, as in adbc+flightsql+grpc://host:8815.
    """

    endings: ClassVar[tuple[str, ...]] = ()

    def __init__(self, url: str) -> None:
        self.url = url

    @override
    def rows(self, file: SourceFile, width: int, exact: bool) -> Iterator[Rows]:
        errors = needed("adbc_driver_manager.dbapi", "adbc", "an ADBC source")
        with self._connected(errors, file) as connection:
            query = file.reading.query
            try:
                query = query or which_table(file.label, _tables(connection), quoted)
                with connection.cursor() as cursor:
                    cursor.execute(query)
                    if not cursor.description:
                        expected = f"expected a query that answers: {shown(query)}"
                        raise DataError(file.label, expected)
                    reader = cursor.fetch_record_batch()
                    names = chosen_names(file.label, reader.schema.names, file.reading, width)
                    none = f"the query has no answers: {shown(query)}"
                    yield from coded_rows(file.label, names, reader, none)
            except (errors.Error, OSError) as error:
                asked = f"; the query was {shown(query)}" if query else ""
                raise DataError(file.label, f"{_said(error)}{asked}") from error

    @contextlib.contextmanager
    def _connected(self, errors: Any, file: SourceFile) -> Iterator[Any]:
        match = _FORM.fullmatch(self.url)
        if match is None:
            raise UserError(
                f"{file.label}: expected adbc+DRIVER://..., as in adbc+sqlite:///facts.db"
            )
        driver, rest = match["driver"], match["rest"]
        package = f"adbc-driver-{driver.replace('_', '-')}"
        try:
            library = importlib.import_module(f"adbc_driver_{driver}.dbapi")
        except ImportError:
            raise UserError(f"{file.label}: its driver is missing: pip install {package}") from None
        address = _address(driver, match["scheme"], rest)
        try:
            connection = library.connect(address)
        except errors.Error as error:
            said = _said(error).replace(address, file.label)  # it may have a password
            raise FailureError(f"{file.label}: cannot be reached ({said})") from error
        try:
            yield connection
        finally:
            with contextlib.suppress(errors.Error):  # some drivers commit each statement anyway
                connection.rollback()
            connection.close()


def _address(driver: str, scheme: str | None, rest: str) -> str:
    """The name of the database for the driver; a SQLite file is opened read-only."""
    if driver != "sqlite":
        return f"{scheme or driver}://{rest}"
    path = Path(rest.removeprefix("/"))
    if not path.is_file():
        raise UserError(f"{path}: no such file")  # else it would be made
    return f"{path.resolve().as_uri()}?mode=ro"


def _tables(connection: Any) -> list[str]:
    found = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
    schemas = [schema for catalog in found for schema in catalog["catalog_db_schemas"] or ()]
    tables = [table for schema in schemas for table in schema["db_schema_tables"] or ()]
    named = [table["table_name"] for table in tables if table["table_type"] in ("table", "view")]
    return sorted(name for name in named if not name.startswith("sqlite_"))


def _said(error: Exception) -> str:
    """The first line of a message."""
    said = str(error).strip()
    return said.splitlines()[0] if said else type(error).__name__

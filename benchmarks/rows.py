"""A table whose rows come one after the other, and are on disk as soon as they are there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table


class Rows:
    """Rows of text under headings; the first column names them.

    Args:
        title: Of the table.
        headings: Of the columns.
        path: Where the rows are written, as JSON, whenever one was added; nowhere for None.
    """

    def __init__(self, title: str, headings: Sequence[str], path: Path | None) -> None:
        self._headings, self._path = headings, path
        self._rows: list[dict[str, str]] = []
        self._table = Table(title=title)
        for number, heading in enumerate(headings):
            self._table.add_column(heading, justify="right" if number else "left")

    def add(self, *row: str) -> None:
        """Add a row."""
        self._table.add_row(*row)
        self._rows.append(dict(zip(self._headings, row, strict=True)))
        if self._path:
            self._path.write_text(json.dumps(self._rows, indent=1) + "\n", encoding="utf-8")

    def show(self) -> None:
        """Print the table."""
        Console().print(self._table)

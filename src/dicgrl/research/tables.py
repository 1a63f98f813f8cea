"""Tables of a reproduction: ours, the paper's and the difference, for people and for programs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table as RichTable


@dataclass(frozen=True, slots=True)
class Compared:
    """A number of ours beside the paper's, in per cent.

    Attributes:
        values: One for each seed.
        paper: The paper's; None where it has none.
        digits: Digits that are shown.

    Example:
        >>> Compared([40.0, 42.0], 40.9).cells()
        ['41.0 ± 1.4', '40.9', '+0.1']
        >>> Compared([40.0]).cells()
        ['40.0', '', '']
    """

    values: Sequence[float]
    paper: float | None = None
    digits: int = 1

    @property
    def mean(self) -> float | None:
        """Mean over seeds; None without any."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def std(self) -> float | None:
        """Sample standard deviation over seeds; None for fewer than two."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours as it is shown, minus the paper's."""
        if self.mean is None or self.paper is None:
            return None
        return round(round(self.mean, self.digits) - self.paper, self.digits)

    def shown(self) -> str:
        """Mean and standard deviation."""
        if self.mean is None:
            return ""
        text = f"{self.mean:,.{self.digits}f}"
        return text if self.std is None else f"{text} ± {self.std:,.{self.digits}f}"

    def cells(self) -> list[str]:
        """Ours, the paper's, the difference."""
        paper = "" if self.paper is None else f"{self.paper:,.{self.digits}f}"
        apart = self.difference
        return [self.shown(), paper, "" if apart is None else f"{apart:+.{self.digits}f}"]

    def data(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {
            "values": list(self.values),
            "mean": self.mean,
            "std": self.std,
            "paper": self.paper,
            "difference": self.difference,
        }


@dataclass(slots=True)
class Table:
    """A table with the numbers behind its cells.

    Attributes:
        title: What it shows.
        header: Headings of the columns.
        labels: How many of the first columns are words, not numbers.
        cells: The rows as they are shown.
        data: The rows as numbers, ready for JSON.
    """

    title: str
    header: list[str]
    labels: int = 1
    cells: list[list[str]] = field(default_factory=list)
    data: list[dict[str, Any]] = field(default_factory=list)

    def add(self, cells: Iterable[str], data: dict[str, Any]) -> None:
        """Add a row."""
        row = list(cells)
        if len(row) != len(self.header):
            raise ValueError(f"{len(row)} cells for {len(self.header)} columns")
        self.cells.append(row)
        self.data.append(data)

    def rich(self) -> RichTable:
        """For the terminal."""
        table = RichTable(title=self.title, title_justify="left", min_width=len(self.title))
        for column, heading in enumerate(self.header):
            table.add_column(heading, justify="left" if column < self.labels else "right")
        for row in self.cells:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        """For a page."""
        rule = ["---" if column < self.labels else "---:" for column in range(len(self.header))]
        lines = [self.header, rule, *self.cells]
        return "\n".join(f"| {' | '.join(map(_escaped, line))} |" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")

"""What users can say about files of facts that do not describe themselves."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dicgrl.errors import DataError, DataWarning, UserError, shown, shown_value, unknown_name
from dicgrl.graph.labels import TIME_WORDS, named_columns
from dicgrl.graph.times import UNITS

ROLES = ("head", "relation", "tail", "time", "weight")
LITERALS = ("drop", "keep")
_WHICH = (
    "expected those of head, relation and tail; a fourth holds times, and a fifth weights, which "
    "are not read; of edges, the two ends"
)


@dataclass(frozen=True, slots=True)
class Reading:
    r"""A user's description of files of facts.

    Attributes:
        columns: The columns that hold head, relation, tail and, optionally, time and weight (which
            is ignored); for edges of a network, the two ends. They are given by name or by number
            (from 1), as a list or as text with commas. For a table without a header, list the words
            head, relation, tail, time and weight in the order of its columns. If not given, the
            header of the file tells.
        sep: The character between the fields of text files. The default is a TAB, and a comma in
            `.csv` files.
        format: The format, such as csv or nt, if the ending of the files does not say it.
        query: For databases, the SQL or SPARQL query that returns the facts.
        time_format: How times are written, as in %d.%m.%Y, if this cannot be detected; or, for
            numbers that count from 1970, their unit: s, ms, us or ns.
        literals: What to do with literals in RDF: leave them out ("drop"), or make them entities
            ("keep").

    Example:
        >>> Reading(columns="person,verb,thing").columns
        ('person', 'verb', 'thing')
        >>> Reading(sep=r"\t").sep
        '\t'
    """

    columns: str | Sequence[str | int] = ()
    sep: str = ""
    format: str = ""
    query: str = ""
    literals: str = "drop"
    time_format: str = ""

    def __post_init__(self) -> None:
        """Bring what is written in several ways into one form, and refuse what cannot be meant."""
        for name in ("sep", "format", "query", "literals", "time_format"):
            if not isinstance(value := getattr(self, name), str):
                raise UserError(f"{name}={value!r}: expected text")
        columns = _checked_columns(self.columns)
        object.__setattr__(self, "columns", columns)
        if len(columns) == len(ROLES):
            said = f"{shown(columns[-1])}: facts have no weights, and the column is not read"
            warnings.warn(DataWarning("columns", said), stacklevel=3)
        object.__setattr__(self, "sep", _checked_separator(self.sep))
        object.__setattr__(self, "format", self.format.lower().removeprefix("."))
        _check_time_format(self.time_format)
        if self.literals not in LITERALS:
            raise unknown_name("literals", self.literals, LITERALS)

    @property
    def named(self) -> tuple[str, ...]:
        """The columns, as they are kept."""
        assert isinstance(self.columns, tuple)
        return self.columns

    @property
    def says_numbers(self) -> bool:
        """Whether the columns are numbers, from 1."""
        return bool(self.named) and all(name.isdecimal() for name in self.named)

    @property
    def says_roles(self) -> bool:
        """Whether the columns are words for what they hold, rather than names of a header."""
        return bool(self.named) and set(self.named) <= set(ROLES)


def _checked_columns(columns: str | Sequence[str | int]) -> tuple[str, ...]:
    """Names or numbers of columns, each once; empty where none are given."""
    if not isinstance(columns, (str, Sequence)):
        raise UserError(f"columns={columns!r}: expected names or numbers of columns")
    given = columns.split(",") if isinstance(columns, str) else columns
    found = tuple(str(name).strip() for name in given) if columns else ()
    if found and not 2 <= len(found) <= len(ROLES):
        raise UserError(f"columns {','.join(found)}: {_WHICH}")
    if "" in found:
        raise UserError(f"columns {','.join(found)}: the name of one is missing")
    for name in found:
        if found.count(name) > 1:
            raise UserError(f"columns {','.join(found)}: {shown(name)} is given twice")
    return found


def _checked_separator(said: str) -> str:
    r"""The character that is meant, which may be written as \t, tab or space."""
    sep = {r"\t": "\t", "tab": "\t", "space": " "}.get(said.lower(), said)
    if len(sep) > 1 or sep in ('"', "\n", "\r"):
        raise UserError(f"sep {shown(said)}: expected one character, such as ; or \\t")
    return sep


def _check_time_format(said: str) -> None:
    if said and "%" not in said and said not in UNITS:
        raise UserError(
            f"time_format {shown(said)}: expected one such as %d.%m.%Y, or a unit: "
            f"{', '.join(UNITS)}"
        )


def as_reading(given: Reading | None) -> Reading:
    """What is said of files, the usual if nothing is.

    Raises:
        UserError: It is no `Reading`.

    Example:
        >>> as_reading("tsv")
        Traceback (most recent call last):
        dicgrl.errors.UserError: reading='tsv': expected a Reading, as in Reading(format='csv')
    """
    if given is None or isinstance(given, Reading):
        return given or Reading()
    said = shown_value(given)
    raise UserError(f"reading={said}: expected a Reading, as in Reading(format='csv')")


def as_lines(path: object, reading: Reading | None) -> Reading:
    """How facts at a path are read: standard input, `-`, as text unless a format is told."""
    reading = as_reading(reading)
    return replace(reading, format="tsv") if str(path) == "-" and not reading.format else reading


def find_columns(
    label: str, names: Sequence[str], reading: Reading, width: int, *, facts: bool = False
) -> list[int]:
    """Where head, relation, tail and, of four, the time stand in a table with a header.

    Other columns may be there, and are not read. Numbers are places, all of them, unless the table
    has columns that are called like that.

    Args:
        label: How messages call the table.
        names: The names of its columns.
        reading: What the user says.
        width: 3, or 4 with the time; 2 for the ends of an edge.
        facts: Whether the names may be a fact, whose ids are no names of columns.

    Raises:
        DataError: A column that was asked for is not there, or is there twice, or the names do not
            tell which is what.
    """
    there = f"the columns are {', '.join(map(shown, names))}"
    if reading.named:
        check_number(label, reading, width)
        numbers = reading.says_numbers and (facts or not set(reading.named[:width]) <= set(names))
        find = _numbered if numbers else _find
        return [find(label, names, name, there) for name in reading.named[:width]]
    order = named_columns(names, width)
    if order is None:
        which = "the ends of edges" if width == 2 else "head, relation and tail"
        letters = "a,b" if width == 2 else "a,b,c"
        raise DataError(label, f"{there}; say which hold {which}, as in --columns {letters}")
    if width < 4:
        return order
    times = [i for i, name in enumerate(names) if name.strip().lower() in TIME_WORDS]
    times = [i for i in times if i not in order]
    if len(times) != 1:
        raise DataError(label, f"{there}; name the one of times, as the fourth of --columns")
    return [*order, times[0]]


def check_number(label: str, reading: Reading, width: int) -> None:
    """Refuse columns that are too few, or those of facts where there are edges.

    Raises:
        DataError: They are.
    """
    named = reading.named
    if width == 4 and len(named) == 3:
        raise DataError(label, "name the column of times, too, as the fourth of --columns")
    if len(named) < width or (width == 2 and len(named) > 2):
        expected = "those of the two ends of an edge" if width == 2 else _WHICH
        raise DataError(label, f"--columns {','.join(named)}: {expected}")


def _find(label: str, names: Sequence[str], wanted: str, there: str) -> int:
    alike = [i for i, name in enumerate(names) if name == wanted]
    alike = alike or [i for i, name in enumerate(names) if name.strip().lower() == wanted.lower()]
    if len(alike) > 1:
        raise DataError(label, f"two columns are called {shown(wanted)}; {there}")
    return alike[0] if alike else _numbered(label, names, wanted, there)


def _numbered(label: str, names: Sequence[str], wanted: str, there: str) -> int:
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    raise DataError(label, f"there is no column {shown(wanted)}; {there}")

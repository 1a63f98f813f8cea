"""Reads files of triples: head, relation, tail and, where it is asked for, a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import DataError, DataWarning, shown
from dicgrl.graph import KnowledgeStream, KnowledgeStreamBuilder
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.labels import header_words, named_columns
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import Rows, read_rows
from dicgrl.readers.times import TIME_WORDS, is_time, odd_time, parse_times

_TIME_HINT = "; `dicgrl datasets split FILE --by time` reads a fourth column, of times"


def read_triples(
    file: SourceFile,
    builder: KnowledgeStreamBuilder,
    times: list[str] | None = None,
    exact: bool = False,
) -> IntArray:
    """Triples of a file as ids, [n, 3]; unseen labels are added to the builder.

    With `times` given, the file has a fourth column, which is appended to that list; for `exact`
    see `triple_rows`.
    """
    blocks = []
    for rows in triple_rows(file, 3 if times is None else 4, exact):
        if not exact and rows.first_line == 1:  # that line was no header
            _warn_of_header(file, rows.columns[:3])
        blocks.append(builder.rows(*rows.columns[:3]))
        if times is not None:
            times.extend(rows.columns[3])
    return np.concatenate(blocks)


def triple_rows(file: SourceFile, width: int = 3, exact: bool = False) -> Iterator[Rows]:
    """Labelled triples of a file, as every command reads them.

    A first line such as `head,relation,tail` is a header: it is skipped, and the columns are given
    in this order (and the time last), wherever they stand. Spaces around a field do not count. With
    `exact` there is no header, and spaces count.

    Raises:
        DataError: See `read_rows`; or there is nothing but a header.
    """
    empty = True
    order = None
    for rows in read_rows(file, width, _other_columns if width == 3 else None, not exact):
        first_line, columns = rows.first_line, rows.columns
        if not exact and first_line == 1:
            order = _header([column[0] for column in columns])
            if order:
                first_line, columns = 2, [column[1:] for column in columns]
        if columns[0]:
            empty = False
            yield Rows(first_line, [columns[i] for i in order] if order else columns)
    if empty:
        raise DataError(file.label, "the file holds a header and no triples")


def _warn_of_header(file: SourceFile, columns: list[list[str]]) -> None:
    """Warn of a first line that is taken for a fact, but may be a header in other words.

    A word such as `type` may well be a relation: then it stands in other lines as well.
    """
    if len(columns[0]) == 1:
        return
    fields = [column[0] for column in columns]
    words = [fields[i] for i in header_words(fields) if columns[i].count(fields[i]) == 1]
    if max(map(len, words), default=0) > 1:  # a letter may be anything
        warnings.warn(
            DataWarning(
                file.label,
                f"{shown(' '.join(fields))} is taken for a fact; if it is a header, name the "
                "columns head, relation, tail",
                1,
            ),
            stacklevel=2,
        )


def _other_columns(fields: list[str]) -> str:
    """What to do about a first line that has more than head, relation and tail."""
    order = named_columns(fields)
    others = [field for i, field in enumerate(fields) if i not in (order or range(3))]
    if len(others) == 1 and _names_time(others[0]):
        return _TIME_HINT
    return f"; leave out what is not of a triple: {', '.join(map(shown, others))}" if order else ""


def _names_time(field: str) -> bool:
    """Whether a field is a time, or what a column of times is called."""
    return field.strip().lower() in TIME_WORDS or is_time(field.strip())


def _header(fields: list[str]) -> list[int] | None:
    """Where head, relation, tail and, of four, the time stand; None if the line is no header."""
    order = named_columns(fields)
    if order and len(fields) == 4:
        (rest,) = {0, 1, 2, 3}.difference(order)
        # The last one may have any name but a time: such a line is a fact.
        other = rest == 3 and not is_time(fields[3])
        return [*order, rest] if other or fields[rest].strip().lower() in TIME_WORDS else None
    return order


def read_timed_triples(file: SourceFile, name: str) -> tuple[KnowledgeStream, npt.NDArray[Any]]:
    """A static graph from a file with a time as fourth column, and the times.

    Times are numbers (years, seconds) or ISO dates, one kind throughout the file. A date with a
    time zone is given as UTC, and one without is taken to be that.
    """
    builder = KnowledgeStreamBuilder(name)
    times: list[str] = []
    builder.add(read_triples(file, builder, times))
    parsed = parse_times(times)
    if parsed is None:
        raise _bad_time(file, times)
    return builder.build(), parsed


def _bad_time(file: SourceFile, times: list[str]) -> DataError:
    """The error for the first time that is not of the kind that most are."""
    value = odd_time(times)
    for rows in triple_rows(file, 4):
        if value in rows.columns[3]:
            line = rows.first_line + rows.columns[3].index(value)
            break
    return DataError(
        file.label, f"time {shown(value)}: the times must be all numbers or all ISO dates", line
    )

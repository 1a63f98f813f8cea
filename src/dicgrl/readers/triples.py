"""Reads files of triples: head, relation, tail and, where it is asked for, a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import DataError, DataWarning, shown
from dicgrl.graph import Graph, KnowledgeStream, KnowledgeStreamBuilder
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.times import is_too_far, moments, odd_time, parse_times, parse_written
from dicgrl.readers.formats import columnar, delimited, format_of, jsonlines, rdf, sql
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import Rows

FORMATS = (delimited, jsonlines, columnar, rdf, sql)  # importing them makes them known


def read_triples(
    file: SourceFile,
    builder: KnowledgeStreamBuilder,
    times: list[str] | None = None,
    exact: bool = False,
    graph: Graph | None = None,
) -> IntArray:
    """Triples of a file as ids, [n, 3]; unseen labels and names are added to the builder.

    With `times` given, the file has a column of times, which is appended to that list; for `exact`
    see `triple_rows`. The `graph` in which they arrive, if there is one, helps to tell a header
    from a fact.
    """
    blocks = []
    told = [builder.entities, builder.relations]
    told += [] if graph is None else graph.vocabularies().values()
    hides = format_of(file).may_hide_a_header and not exact and not file.reading.named
    for rows in triple_rows(file, 3 if times is None else 4, exact):
        if rows.first_line == 1 and hides:  # it was no header in the usual words
            delimited.refuse_header(
                file, rows.columns[:3], lambda label: any(label in labels for labels in told)
            )
        blocks.append(builder.rows(*rows.columns[:3]))
        builder.names.update(rows.names)
        if times is not None:
            times.extend(rows.columns[3])
    return np.concatenate(blocks)


def read_facts(
    file: SourceFile,
    builder: KnowledgeStreamBuilder,
    exact: bool = False,
    graph: Graph | None = None,
) -> tuple[IntArray, IntArray]:
    """As `read_triples`, and the times of a column that is told to hold them; none without one."""
    written = "" if exact else file.reading.time_format
    if exact or not says_times(file):
        if written:
            said = "--time-format is told, but no column holds times: name it as the fourth of"
            raise DataError(file.label, f"{said} --columns, or time in a header")
        return read_triples(file, builder, exact=exact, graph=graph), np.empty(0, np.int64)
    times: list[str] = []
    rows = read_triples(file, builder, times, graph=graph)
    found = moments(times, written)
    if found is None and (file.reading.named or written or any(map(is_too_far, times))):
        raise _bad_time(file, [time for time in times if time], written)
    if found is None:  # a column that is only called so
        odd = shown(odd_time([time for time in times if time], written))
        said = f"{odd} in the column of times is no time: none is kept; see --time-format"
        warnings.warn(DataWarning(file.label, said), stacklevel=2)
        return rows, np.empty(0, np.int64)
    return rows, found


def says_times(file: SourceFile) -> bool:
    """Whether a file of triples says which of its columns holds times."""
    return format_of(file).says_times(file)


def triple_rows(file: SourceFile, width: int = 3, exact: bool = False) -> Iterator[Rows]:
    """Labelled triples of a file of any format, as every command reads them.

    A first line such as `head,relation,tail` is a header: it is skipped, and the columns are given
    in this order (and the time last), wherever they stand. Spaces around a field do not count. With
    `exact` there is no header, and spaces count.

    Raises:
        DataError: The file is not of its format, a field is empty, or there are no triples.
    """
    return format_of(file).rows(file, width, exact)


def read_timed_triples(file: SourceFile, name: str) -> tuple[KnowledgeStream, npt.NDArray[Any]]:
    """A static graph from a file with a column of times, and the times.

    Times are of one kind throughout the file, as `parse_times` reads them.
    """
    builder = KnowledgeStreamBuilder(name)
    times: list[str] = []
    builder.add(read_triples(file, builder, times))
    written = file.reading.time_format
    parsed = parse_written(times, written) if written else parse_times(times)
    if parsed is None:
        raise _bad_time(file, times, written)
    return builder.build(), parsed


def _bad_time(file: SourceFile, times: list[str], written: str) -> DataError:
    """The error for the first time that is not of the kind that most are."""
    value = next(filter(is_too_far, times), None) or odd_time(times, written)
    expected = (
        "years from -290,000 to 290,000 can be kept"
        if is_too_far(value)
        else f"expected it as in --time-format {written}"
        if written
        else "the times must be numbers, or dates that are written in one way; or say "
        "--time-format, as in %d.%m.%Y or ms"
    )
    for rows in triple_rows(file, 4):
        if value in rows.columns[3]:
            line = rows.first_line + rows.columns[3].index(value)
            break
    return DataError(file.label, f"time {shown(value)}: {expected}", line)

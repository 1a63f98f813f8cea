"""Reads the times of facts from a file beside the triples: one time for each of their lines."""

from __future__ import annotations

from dicgrl.errors import DataError, shown
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.times import moments, odd_time
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import read_rows

TIMES = "train-times"  # the file's name, without its ending
UNKNOWN = "-"  # of a triple of which no time is known


def read_times(file: SourceFile, triples: int) -> IntArray:
    """Moments of so many triples.

    Raises:
        DataError: There are more or fewer, or one is no time.
    """
    times = [time for rows in read_rows(file, 1) for time in rows.columns[0]]
    if len(times) != triples:
        raise DataError(file.label, f"{len(times):,} times for {triples:,} triples")
    known = ["" if time == UNKNOWN else time for time in times]
    found = moments(known, file.reading.time_format)
    if found is None:
        odd = odd_time([time for time in known if time], file.reading.time_format)
        raise DataError(file.label, f"{shown(odd)} is no time", times.index(odd) + 1)
    return found

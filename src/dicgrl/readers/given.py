"""Facts that a program passes, with a `Reading` that describes their columns and times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dicgrl.errors import UserError, shown
from dicgrl.graph.frames import Frame
from dicgrl.graph.times import moments, odd_time, told
from dicgrl.readers.reading import Reading, as_reading, find_columns

_OF_FILES = ("sep", "format", "query", "literals")
_ROLES = {2: ("head", "tail"), 3: ("head", "relation", "tail")}
_WITH_TIME = ("head", "relation", "tail", "time")


def as_read(given: Any, reading: Reading | None) -> Any:
    """Facts by the columns that a reading names, which are then called head, relation, tail, time.

    Args:
        given: A data frame, dicts, or rows, whose columns are called 1, 2, 3, ...
        reading: What the user says of them; without it they stay as they are.

    Raises:
        UserError: The reading is about files, or these are no facts; a column is not there; or a
            time is not written as it says.

    Example:
        >>> facts = [{"who": "Alien", "how": "genre", "what": "horror", "note": "?"}]
        >>> as_read(facts, Reading(columns="who,how,what")).columns()
        [['Alien'], ['genre'], ['horror']]
    """
    usual, reading = Reading(), as_reading(reading)
    if reading == usual:
        return given
    if others := [name for name in _OF_FILES if getattr(reading, name) != getattr(usual, name)]:
        raise UserError(f"reading: {others[0]} is about files; these facts are not in one")
    frame = Frame.of(given) or _of_rows(given)
    if reading.named:
        roles = _ROLES.get(len(reading.named), _WITH_TIME)
        frame = _called(frame, roles, reading)
    named = len(reading.named) > len(_ROLES[3])
    return _dated(frame, reading.time_format) if reading.time_format or named else frame


def reading_of(given: Any, reading: Reading | None, *, beside: Any) -> Reading | None:
    """The part of a reading that applies to facts, without what only applies to files."""
    in_file = [isinstance(each, str | Path) for each in (given, beside)]
    return None if in_file == [False, True] else reading


def _called(frame: Frame, roles: tuple[str, ...], reading: Reading) -> Frame:
    places = find_columns("data frame", list(map(str, frame.names)), reading, len(roles))
    return Frame(list(roles), lambda at: frame.column(places[at]))


def _of_rows(given: Any) -> Frame:
    """Dicts as a frame, the keys of the first one counting for all of them; or tuples and lists."""
    rows = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
    if rows and all(isinstance(row, tuple | list | np.ndarray) for row in rows):
        return _of_tuples(rows)
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise UserError("reading: these are no facts in a file, a data frame, dicts or tuples")
    keys = list(rows[0])

    def column(at: int) -> list[Any]:
        lacking = next((i for i, row in enumerate(rows) if keys[at] not in row), None)
        if lacking is not None:
            raise UserError(f"triples[{lacking}]: there is no {shown(str(keys[at]))}")
        return [row[keys[at]] for row in rows]

    return Frame(keys, column)


def _of_tuples(rows: list[Any]) -> Frame:
    width = len(rows[0])
    odd = next((i for i, row in enumerate(rows) if len(row) != width), None)
    if odd is not None:
        raise UserError(f"triples[{odd}]: {len(rows[odd])} values, where the first has {width}")
    names = list(_WITH_TIME[:width]) if width <= len(_WITH_TIME) else list(map(str, range(width)))
    return Frame(names, lambda at: [row[at] for row in rows])


def _dated(frame: Frame, written: str) -> Frame:
    """The same facts, with times converted to ISO dates."""
    *triples, times = frame.columns(timed=True)
    if len(triples) < 3:
        raise UserError("reading: time_format is told, but no column is called time or date")
    texts = ["" if time is None else str(time).strip() for time in times]
    found = moments(texts, written)
    if found is None:
        odd = shown(odd_time([text for text in texts if text], written))
        expected = f"it as in time_format={written!r}" if written else "a date; see time_format"
        raise UserError(f"time {odd}: expected {expected}")
    columns = [*triples, list(map(told, found.tolist()))]
    return Frame(list(_WITH_TIME), lambda at: columns[at])

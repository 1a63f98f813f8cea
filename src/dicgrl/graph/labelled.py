"""Labelled triples as a program gives them: lists, iterators, arrays, dicts, data frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import UserError, shown
from dicgrl.graph.frames import Frame
from dicgrl.graph.labels import FORBIDDEN, as_label, check_labels, named_columns, time_column

Triples = Iterable[Sequence[str | int]] | npt.NDArray[Any]
_PLAIN = {str, int}  # types of values that are labels as they stand, or as they are written


def as_columns(triples: Triples, times: list[str] | None = None) -> list[Sequence[str]]:
    """Heads, relations and tails from a list, an array, a data frame (pandas, polars), or the like.

    The columns of a data frame are head, relation and tail, in this order unless their names tell
    another one (`named_columns`); then there may be others, which are not read. So it is with the
    keys of dicts.

    Args:
        triples: The triples.
        times: Gets when each of them was so, as text: of four values the fourth, of a data frame
            or a dict what is called time or date; "" where nothing is told. It stays empty where
            no triple has any.

    Raises:
        UserError: There is something else among them; the message says where.

    Example:
        >>> as_columns([("Alien", "year", 1979), ("Brazil", "year", 1985)])
        [['Alien', 'Brazil'], ['year', 'year'], ['1979', '1985']]
    """
    frame = Frame.of(triples)
    if frame is not None:
        whole = frame.columns(timed=times is not None)
        rows: Any = zip(*whole, strict=True)
    else:
        rows = _listed(triples)
        whole = list(map(list, zip(*rows, strict=True))) if _is_even(rows) else []
    labels = [column for column in map(_as_plain, whole[:3]) if column is not None]
    if len(labels) < 3:  # something is odd: row by row, to say where
        return _checked(rows, times)
    if times is not None and len(whole) > 3:
        times.extend(map(_as_time, whole[3]))
    return list(labels)


def has_names(triples: Triples) -> bool:
    """Whether columns have names: those of a data frame, or the keys of dicts."""
    first = triples[0] if isinstance(triples, list) and triples else None
    return Frame.of(triples) is not None or isinstance(first, Mapping)


def as_labels(triples: Triples) -> list[tuple[str, str, str]]:
    """Labelled triples as rows.

    Example:
        >>> as_labels([("Alien", "year", 1979)])
        [('Alien', 'year', '1979')]
    """
    heads, relations, tails = as_columns(triples)
    return list(zip(heads, relations, tails, strict=True))


def _listed(triples: Any) -> list[Any]:
    scalar = isinstance(triples, np.ndarray) and not triples.ndim
    if scalar or isinstance(triples, str | bytes | Mapping) or not isinstance(triples, Iterable):
        raise UserError(f"expected triples (head, relation, tail), found {shown(str(triples))}")
    if isinstance(triples, np.ndarray) and triples.ndim == 2 and triples.dtype.kind in "OU":
        return list(triples.tolist())
    return list(triples)


def _is_even(rows: list[Any]) -> bool:
    """Whether all rows are tuples or lists of three."""
    return bool(rows) and set(map(type, rows)) <= {tuple, list} and set(map(len, rows)) == {3}


def _as_plain(values: list[Any]) -> list[str] | None:
    """Labels of a column; None if a value is not a plain label and has to be checked."""
    kinds = set(map(type, values))
    if not kinds <= _PLAIN:
        return None
    labels: list[str] = list(map(str, values)) if int in kinds else values
    different = set(labels)
    return None if "" in different or FORBIDDEN.search("".join(different)) else labels


def _checked(rows: Iterable[Any], times: list[str] | None) -> list[Sequence[str]]:
    found: list[tuple[str, str, str]] = []
    for triple in rows:
        try:
            labels = _as_triple(triple, times)
            check_labels(labels)
        except UserError as error:
            raise UserError(f"triples[{len(found)}]: {error}") from None
        found.append(labels)
    return list(map(list, zip(*found, strict=True))) or [[], [], []]


def _as_triple(triple: Any, times: list[str] | None) -> tuple[str, str, str]:
    if isinstance(triple, Mapping):
        keys = list(triple)
        order, time = named_columns(keys), time_column(keys) if times is not None else None
        if order:
            triple = [triple[keys[at]] for at in (order if time is None else [*order, time])]
    apart = isinstance(triple, Iterable) and not isinstance(
        triple, str | bytes | Mapping | AbstractSet
    )
    values = tuple(triple) if apart else ()
    labels = tuple(map(as_label, values if times is None else values[:3]))
    if times is not None:
        if len(values) > 4:
            raise UserError(f"expected (head, relation, tail, time), found {shown(str(triple))}")
        times.append(_as_time(values[3]) if len(values) == 4 else "")
    if len(labels) != 3 or "" in labels:
        raise UserError(f"expected (head, relation, tail), found {shown(str(triple))}")
    return labels


def _as_time(value: Any) -> str:
    return "" if value is None else str(value).strip()

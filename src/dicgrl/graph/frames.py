"""Data frames of pandas, polars and pyarrow, and dicts of columns, all as columns.

None of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from dicgrl.errors import UserError, shown_value
from dicgrl.graph.labels import named_columns, time_column

_THREE = "three of them head, relation and tail"


@dataclass(frozen=True, slots=True)
class Frame:
    """A data frame of any supported library, or a dict with a list for each column.

    Attributes:
        names: The names of its columns.
        column: Returns the values of a column by its position.

    Example:
        >>> import pandas
        >>> frame = Frame.of(pandas.DataFrame({"t": ["horror"], "h": ["Alien"], "r": ["genre"]}))
        >>> frame.columns()
        [['Alien'], ['genre'], ['horror']]
    """

    names: list[Any]
    column: Callable[[int], list[Any]]

    @classmethod
    def of(cls, given: Any) -> Frame | None:
        """Wrap a data frame or a dict of columns; None if it is neither.

        Raises:
            UserError: The columns of a dict are of different lengths.
        """
        if isinstance(given, Frame):
            return given
        if hasattr(given, "collect_schema") and hasattr(given, "collect"):  # a polars LazyFrame
            given = given.collect()
        if hasattr(given, "itertuples"):  # pandas
            return cls(list(given.columns), lambda at: list(given.iloc[:, at].tolist()))
        if hasattr(given, "iter_rows"):  # polars
            return cls(list(given.columns), lambda at: list(given.to_series(at).to_list()))
        if hasattr(given, "to_pylist") and hasattr(given, "schema"):  # pyarrow
            return cls(list(given.schema.names), lambda at: list(given.column(at).to_pylist()))
        if isinstance(given, Mapping) and given and all(map(_is_column, given.values())):
            return cls._of_columns(given)
        return None

    @classmethod
    def _of_columns(cls, given: Mapping[Any, Any]) -> Frame:
        lengths = {str(name): len(column) for name, column in given.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise UserError(f"a dict with columns of different lengths: {told}")
        columns = [
            list(column.tolist() if hasattr(column, "tolist") else column)
            for column in given.values()
        ]
        return cls(list(given), lambda at: columns[at])

    def columns(self, width: int = 3, *, timed: bool = False) -> list[list[Any]]:
        """The columns of triples: head, relation and tail; for a `width` of 2, the ends of edges.

        They are in this order unless their names say otherwise; then there may be further columns.
        A column of times comes last, if requested.

        Raises:
            UserError: There are too many or too few, and their names do not identify them.
        """
        order = named_columns(self.names, width)
        if order is None and len(self.names) != width:
            wanted = "two of them source and target" if width == 2 else _THREE
            raise UserError(
                f"a data frame with the columns {', '.join(map(str, self.names))}: call {wanted}"
            )
        order = list(range(width)) if order is None else order
        time = time_column(self.names) if timed else None
        return [self.column(at) for at in (order if time is None else [*order, time])]


def _is_column(value: Any) -> bool:
    """Whether a value of a dict is a column, rather than a label or other single value."""
    single = isinstance(value, str | bytes | Mapping | AbstractSet)
    return isinstance(value, Collection) and not single


def only_column(given: Any, name: str) -> list[Any]:
    """The column of a data frame with a given name, or its only one; anything else as a list.

    Raises:
        UserError: There are several columns, and none has that name.
    """
    frame = Frame.of(given)
    if frame is None:
        return listed(given, f"a list, or a data frame with a column {name}")
    if name not in frame.names and len(frame.names) != 1:
        columns = ", ".join(map(str, frame.names))
        raise UserError(f"a data frame with the columns {columns}: call one of them {name}")
    return frame.column(frame.names.index(name) if name in frame.names else 0)


def listed(given: Any, expected: str) -> list[Any]:
    """What somebody lists.

    Raises:
        UserError: It is no list, or anything else that gives one thing after the other.
    """
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return list(given)
    raise UserError(f"{shown_value(given)}: expected {expected}")


def frame_rows(given: Any, width: int = 3) -> Any:
    """The rows of a data frame with the columns of `Frame.columns`; anything else as it is.

    Raises:
        UserError: See `Frame.columns`.
    """
    frame = Frame.of(given)
    return given if frame is None else _rows(frame.columns(width))


def _rows(columns: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    return zip(*columns, strict=True)

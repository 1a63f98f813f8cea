"""Parts that end with a day, week, month or year, or at given dates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import UserError, shown
from dicgrl.graph.split import PERIODS, Shares, part_shares
from dicgrl.graph.times import YEARS

_UNITS = {"day": "D", "month": "M", "year": "Y"}
_MONDAY = 3  # days from 1970-01-01, a Thursday, back to the Monday before


def timed_shares(
    by: str, times: npt.ArrayLike | None, first: float | None, cuts: Sequence[object] | None
) -> Shares:
    """Share of each part, [parts], of a split by periods or at given times.

    Args:
        by: day, week, month or year; or time, with `cuts`.
        times: One for each thing that arrives: dates, or numbers, which may be years.
        first: The first part has as many whole periods as make up this share, at least.
        cuts: Every part but the first begins at one of these.

    Raises:
        UserError: Times are missing or of the wrong kind, or a part would be empty.

    Example:
        >>> days = np.array(["2020-01-30", "2020-01-31", "2020-02-01"], "datetime64[D]")
        >>> timed_shares("month", days, None, None).round(2)
        array([0.67, 0.33])
    """
    if times is None:
        raise UserError(f"by={by!r}: times are needed")
    values = np.sort(np.asarray(times))
    if not len(values):
        raise UserError(f"by={by!r}: there is nothing to split")
    if cuts is not None:
        ends = np.searchsorted(values, _as_times(cuts, values.dtype), side="left")
    else:
        period = _periods(values, by)
        ends = np.flatnonzero(np.diff(period)) + 1
    if first is not None:
        if not 0 < first < 1:
            raise UserError(f"first={first}: the share of the first part must lie between 0 and 1")
        ends = ends[ends >= first * len(values)]
    sizes = np.diff(ends, prepend=0, append=len(values))
    if (sizes <= 0).any():
        raise UserError(
            f"part {int(np.argmax(sizes <= 0))} would be empty: times go from {values[0]} to "
            f"{values[-1]}, and cuts must increase"
        )
    return sizes / len(values)


def chosen_shares(
    by: str,
    ratios: Sequence[float] | None,
    parts: int | None,
    first: float | None,
    times: npt.ArrayLike | None,
    cuts: Sequence[object] | None,
) -> tuple[str, Shares]:
    """The way to split and the share of each part; arguments as of `Stream.split`.

    Raises:
        UserError: They contradict each other or are out of range.
    """
    if by not in PERIODS and cuts is None:
        return by, part_shares(by, ratios, parts, first)
    if cuts is not None and by != "time":
        raise UserError(f"by={by!r}: cuts are for 'time'")
    if ratios is not None or parts is not None or (cuts is not None and first is not None):
        raise UserError("parts end where a period or a cut says: leave out ratios and parts")
    return "time", timed_shares(by, times, first, cuts)


def _periods(values: npt.NDArray[Any], by: str) -> npt.NDArray[np.int64]:
    """The number of the period of each time."""
    if values.dtype.kind != "M":
        if by == "year" and np.abs(values[-1]) < YEARS:  # 1979, 1979.5
            return np.floor(values.astype(np.float64)).astype(np.int64)
        said = f"by={by!r}: needs dates; these times are numbers, as {values[0]}"
        raise UserError(f"{said}; a time format of s, ms, us or ns makes them dates")
    if by == "week":
        return (values.astype("datetime64[D]").astype(np.int64) + _MONDAY) // 7
    return values.astype(f"datetime64[{_UNITS[by]}]").astype(np.int64)


def _as_times(cuts: Sequence[object], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    found = []
    for cut in cuts:
        try:
            found.append(np.array(cut, dtype="float64" if kind.kind != "M" else kind))
        except ValueError:
            expected = "a date" if kind.kind == "M" else "a number, as the times are"
            raise UserError(f"cut {shown(str(cut))}: expected {expected}") from None
    return np.array(found)

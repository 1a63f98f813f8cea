"""Times as they are written (numbers or ISO dates), and moments as they are stored."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.graph.arrays import IntArray

#: What times may be, as NumPy calls it.
TIME_TYPES = ("float64", "datetime64[us]")
#: The moment of what has no time.
NEVER = int(np.iinfo(np.int64).min)
_LATEST = 1e12  # seconds; larger numbers are not dates
_BASIC = re.compile(r"(?:1[89]|2[01])[0-9]{6}")  # ISO dates without their hyphens
#: Whole numbers below are years, other numbers seconds since 1970.
YEARS = 10_000
#: Seconds that a number counts by, as `--time-format` calls them.
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
#: Dates that are read without being told how, as they can mean one thing alone.
_DATES = ("%Y/%m/%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y",
          "%d-%b-%Y", "%a, %d %b %Y")  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S %Z", " %H:%M:%S %z")
_OTHERS = [
    *(date + clock for date in _DATES for clock in _CLOCKS),
    *(f"%Y-%m-%d{clock}" for clock in _CLOCKS if "%Z" in clock),
    *("%Y%m%dT%H%M%S", "%Y%m%dT%H%M%S%z", "%a %b %d %H:%M:%S %Y"),
]
_FAR = 290_000  # years: beyond, microseconds since 1970 do not fit into 64 bits
_LONG_YEAR = re.compile(r"[+-]?[0-9]{6,}(?=-)")
_SAMPLE = 1000  # times to determine the most common format from
_NOTHING = ("", "NaT", "nan", "None", "<NA>")
_ZONED = re.compile(r"([^T ]*[T ][0-9:.]+)([^0-9:.].*)")
_ZONE = re.compile(r" ?(?:[Zz]|([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9]))?)")


def parse_times(times: Sequence[str]) -> npt.NDArray[Any] | None:
    """Times of one kind throughout, [n]; None if they are not.

    They are numbers or dates: ISO dates, or others that can mean one thing alone, as 2024/01/31 and
    31 Jan 2024. A date with a time zone is given as UTC, and one without is taken to be that. Where
    all are dates of eight digits, as in 20240131, they are no numbers.

    Example:
        >>> parse_times(["1979", "1986"])
        array([1979., 1986.])
        >>> parse_times(["1979-05-25T20:00+02:00"])
        array(['1979-05-25T18:00:00.000000'], dtype='datetime64[us]')
        >>> parse_times(["19790525"]).tolist()
        [datetime.datetime(1979, 5, 25, 0, 0)]
    """
    if times and all(map(_BASIC.fullmatch, times)):
        basic = parse_written(times, "%Y%m%d")
        if basic is not None:
            return basic
    ways = [partial(parse_as, times, kind) for kind in TIME_TYPES]
    ways += [partial(parse_written, times, written) for written in _OTHERS]
    return next((parsed for way in ways if (parsed := way()) is not None), None)


def parse_as(times: Sequence[str], kind: str) -> npt.NDArray[Any] | None:
    """Times of one of `TIME_TYPES`, [n]; None if one of them is not."""
    try:
        parsed = np.array(times, dtype=kind) if kind == TIME_TYPES[0] else _utc(times, kind)
    except ValueError:
        return None
    return None if np.isnan(parsed).any() else parsed  # NaT counts as well


def parse_written(times: Sequence[str], written: str) -> npt.NDArray[Any] | None:
    """Times that all have the same format, [n]; None if any has not.

    Args:
        times: The times.
        written: The way, as `strptime` describes it; or one of `UNITS`, in which they are counted
            since 1970.

    Example:
        >>> parse_written(["25.05.1979"], "%d.%m.%Y")
        array(['1979-05-25T00:00:00.000000'], dtype='datetime64[us]')
    """
    if written in UNITS:
        return _counted(times, UNITS[written])
    found: dict[str, datetime] = {}  # few are different
    try:
        for time in times:
            if time not in found:
                read = datetime.strptime(time, written)
                if "%Z" in written and time.split(" ")[-1] not in ("UTC", "GMT"):
                    return None  # of others it is not known how far they are from UTC
                zone = read.tzinfo
                found[time] = read.astimezone(UTC).replace(tzinfo=None) if zone else read
    except (ValueError, OverflowError):
        return None
    return np.array([found[time] for time in times], dtype=TIME_TYPES[1])


def _counted(times: Sequence[str], unit: float) -> npt.NDArray[Any] | None:
    """Times in a unit since 1970, in seconds."""
    numbers = parse_as(times, TIME_TYPES[0])
    if numbers is None or (np.abs(numbers * unit) >= _LATEST).any():
        return None
    return np.round(numbers * (unit * 1e6)).astype(np.int64).view(TIME_TYPES[1])


def moments(times: Sequence[str], written: str = "") -> IntArray | None:
    """Times as microseconds since 1970 in UTC, `NEVER` for none, [n]; None if one cannot be read.

    Whole numbers below 10,000 are years, other numbers are seconds since 1970 (up to the year
    33,658: milliseconds are told from them).

    Args:
        times: The times, of one kind throughout; "" where there is none.
        written: As of `parse_written`, where they are neither numbers nor ISO dates.

    Example:
        >>> moments(["1970-01-02", "", "1970-01-01T00:00:01"]).tolist()[::2]
        [86400000000, 1000000]
        >>> told(moments(["1979"])[0])
        '1979-01-01'
    """
    kinds, at = np.unique(np.asarray(times, dtype=np.str_), return_inverse=True)
    there = ~np.isin(kinds, _NOTHING)
    found = np.full(len(kinds), NEVER)
    different = kinds[there].tolist()
    parsed = parse_written(different, written) if written else parse_times(different)
    if parsed is None:
        return None
    if parsed.dtype.kind == "f":
        if not (np.abs(parsed) < _LATEST).all():
            return None
        years = (np.abs(parsed) < YEARS) & (parsed == np.trunc(parsed))
        since = np.where(years, parsed - 1970, 0).astype("timedelta64[Y]")
        of_years = (np.datetime64(0, "Y") + since).astype("datetime64[us]").astype(np.int64)
        seconds = np.where(years, 0, parsed)
        found[there] = np.where(years, of_years, np.round(seconds * 1e6).astype(np.int64))
    else:
        found[there] = parsed.astype(np.int64)
    return found[at.reshape(-1)]


def told(moment: int) -> str:
    """A moment as an ISO date, with the time of day unless it is midnight; "" for `NEVER`.

    Example:
        >>> told(86_400_000_000), told(90_000_000_000)
        ('1970-01-02', '1970-01-02T01:00:00')
    """
    if moment == NEVER:
        return ""
    text = str(np.datetime64(int(moment), "us"))
    return text.removesuffix("T00:00:00.000000").removesuffix(".000000")


def is_time(field: str) -> bool:
    """Whether a field is a time.

    Example:
        >>> is_time("1979-05-25"), is_time("25 May 1979"), is_time("horror")
        (True, True, False)
    """
    return parse_times([field]) is not None


def is_too_far(time: str) -> bool:
    """Whether an ISO date is of a year that cannot be kept.

    Example:
        >>> is_too_far("300000-01-01"), is_too_far("290000-01-01"), is_too_far("2024-01-01")
        (True, False, False)
    """
    year = _LONG_YEAR.match(time)
    return year is not None and (len(year[0]) > 7 or abs(int(year[0])) > _FAR)


def odd_time(times: Sequence[str], written: str = "") -> str:
    """The first time that is of another kind than most, or malformed."""
    if written:
        return next(time for time in times if parse_written([time], written) is None)
    ways = [partial(parse_as, kind=kind) for kind in TIME_TYPES]
    ways += [partial(parse_written, written=each) for each in _OTHERS]
    some = list(dict.fromkeys(times))[:_SAMPLE]
    usual = max(ways, key=lambda way: sum(way([time]) is not None for time in some))
    for time in times:
        if usual([time]) is None:
            return time
    if parse_as(times, TIME_TYPES[0]) is not None:  # numbers, one of them too large
        return max(times, key=lambda time: abs(float(time)))
    alone = range(1, len(times) + 1)  # each is one, but they are not together
    return times[bisect_left(alone, True, key=lambda end: usual(times[:end]) is None) - 1]


def _utc(times: Sequence[str], kind: str) -> npt.NDArray[Any]:
    """ISO dates converted to UTC without time zones, which NumPy does not support.

    Raises:
        ValueError: One is not a date, or too far away to be kept.
    """
    local = list(times)
    offsets = np.zeros(len(times), dtype="timedelta64[m]")
    for number, time in enumerate(times):
        if is_too_far(time):  # NumPy would give another year
            raise ValueError(f"{time}: too far away")
        if zoned := _ZONED.fullmatch(time):
            zone = _ZONE.fullmatch(zoned[2])
            if not zone:
                raise ValueError(f"{time}: no such time zone")
            local[number] = zoned[1]
            if zone[1]:
                offsets[number] = int(zone[1] + "1") * (60 * int(zone[2]) + int(zone[3] or 0))
    return np.array(local, dtype=kind) - offsets

"""Parts that end with a period or at given times."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicgrl import KnowledgeStream, UserError
from dicgrl.graph.periods import PERIODS, timed_shares
from dicgrl.graph.times import moments, odd_time, parse_times, parse_written, told

DAYS = st.lists(st.dates(date(1960, 1, 1), date(2030, 1, 1)), min_size=1, max_size=40)


def key(day: date, by: str) -> tuple[int, ...]:
    """The period of a day, found the slow way."""
    if by == "week":
        monday = day - timedelta(days=day.weekday())
        return monday.year, monday.month, monday.day
    return {"day": (day.year, day.month, day.day), "month": (day.year, day.month),
            "year": (day.year,)}[by]  # fmt: skip


@pytest.mark.parametrize("by", PERIODS)
@settings(max_examples=40, deadline=None)
@given(days=DAYS)
def test_a_part_is_a_period(by: str, days: list[date]) -> None:
    stream = KnowledgeStream.from_labels("x", [[(f"e{i}", "r", "x") for i in range(len(days))]])
    parts = stream.split(by, times=np.array(days, "datetime64[D]"))
    expected: dict[tuple[int, ...], set[str]] = {}
    for number, day in sorted(enumerate(days), key=lambda pair: pair[1]):
        expected.setdefault(key(day, by), set()).add(f"e{number}")
    found = [set(part.entities.labels(part.train[:, 0])) for part in parts]
    assert found == list(expected.values())


@settings(max_examples=40, deadline=None)
@given(days=DAYS, first=st.floats(0.05, 0.95))
def test_the_first_part_has_its_share_of_whole_periods(days: list[date], first: float) -> None:
    times = np.array(days, "datetime64[D]")
    every = np.cumsum(timed_shares("month", times, None, None))
    shares = timed_shares("month", times, first, None)
    assert shares[0] >= first - 1e-9
    assert np.isclose(shares[0], every[every >= first - 1e-9][0])
    assert np.allclose(np.cumsum(shares), every[-len(shares) :])


def test_cuts_and_years() -> None:
    times = np.array([1979.5, 1979.0, 1985.0, 1986.0])
    assert timed_shares("year", times, None, None).tolist() == [0.5, 0.25, 0.25]
    assert timed_shares("time", times, None, ["1980", 1986]).tolist() == [0.5, 0.25, 0.25]
    dates = np.array(["2020-01-31", "2020-02-01"], "datetime64[us]")
    assert timed_shares("time", dates, None, ["2020-02-01"]).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"by": "month", "times": [1.0, 2.0]}, "needs dates; these times are numbers"),
        ({"by": "month"}, "times are needed"),
        ({"by": "month", "times": [1.0], "ratios": [1.0]}, "leave out ratios and parts"),
        ({"by": "order", "cuts": ["1"]}, "cuts are for 'time'"),
        ({"by": "time", "times": [1.0, 2.0], "cuts": ["soon"]}, "cut 'soon': expected a number"),
        ({"by": "time", "times": [1.0, 2.0], "cuts": ["0.5"]}, "part 0 would be empty"),
        ({"by": "time", "times": [1.0, 2.0], "cuts": ["2", "1"]}, "cuts must increase"),
        ({"by": "year", "times": [1.0, 2.0], "first": 2.0}, "must lie between 0 and 1"),
        ({"by": "order", "ratios": [80, 20]}, "these are per cent: divide them by 100"),
    ],
)
def test_what_cannot_be_meant(asked: dict[str, object], said: str) -> None:
    stream = KnowledgeStream.from_labels("x", [[("a", "r", "b"), ("b", "r", "c")]])
    with pytest.raises(UserError, match=said):
        stream.split(**asked)  # type: ignore[arg-type]


def test_ratios_that_nearly_sum_to_one() -> None:
    stream = KnowledgeStream.from_labels("x", [[(f"e{i}", "r", "x") for i in range(99)]])
    assert [len(part.train) for part in stream.split("order", [0.33, 0.33, 0.33])] == [33, 33, 33]


@settings(max_examples=40, deadline=None)
@given(days=DAYS)
def test_times_in_a_form_of_their_own(days: list[date]) -> None:
    written = [day.strftime("%d.%m.%Y") for day in days]
    found = parse_written(written, "%d.%m.%Y")
    assert found is not None
    assert found.tolist() == parse_times([day.isoformat() for day in days]).tolist()  # type: ignore[union-attr]
    assert parse_written([*written, "soon"], "%d.%m.%Y") is None


def test_dates_without_hyphens_are_no_numbers() -> None:
    days = ["20240131", "19791231", "20240229"]
    hyphens = [f"{day[:4]}-{day[4:6]}-{day[6:]}" for day in days]
    assert (parse_times(days) == parse_times(hyphens)).all()
    for numbers in (["20240131", "7"], ["20240230", "20240131"], ["12345678", "20240131"]):
        parsed = parse_times(numbers)
        assert parsed is not None and parsed.tolist() == list(map(float, numbers))


@pytest.mark.parametrize(
    "written",
    ["2024/01/31", "31 Jan 2024", "January 31, 2024", "Jan 31 2024", "31-Jan-2024", "20240131",
     "Wed, 31 Jan 2024 00:00:00 GMT", "2024-01-31 00:00:00 UTC", "20240131T000000Z",
     "2024/01/31 02:00:00 +0200", "Wed Jan 31 00:00:00 2024"],
)  # fmt: skip
def test_dates_that_can_mean_one_thing_alone(written: str) -> None:
    """As pandas reads them."""
    pandas = pytest.importorskip("pandas")
    (found,) = moments([written])  # type: ignore[misc]
    assert told(found) == "2024-01-31"
    theirs = pandas.to_datetime([written], utc=True)
    assert theirs[0] == pandas.Timestamp(told(found), tz="UTC")


@pytest.mark.parametrize(
    "written", ["31/01/2024", "2024-01-31 10:00:00 EST", "2024-13-31", "12:30"]
)
def test_what_can_mean_several_things_or_nothing(written: str) -> None:
    assert parse_times([written]) is None


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_numbers_of_a_unit(unit: str) -> None:
    moment = np.datetime64("2024-01-31T10:00:00.123456")
    count = str(moment.astype(f"datetime64[{unit}]").astype(np.int64))
    (found,) = moments([count], unit)  # type: ignore[misc]
    assert abs(int(found) - int(moment.astype(np.int64))) < (10**6 if unit == "s" else 1000)


def test_the_odd_one_is_named() -> None:
    assert odd_time(["2024/01/30", "2024/01/31", "Jan 31, 2024"]) == "Jan 31, 2024"
    assert odd_time(["1706659200000", "5"]) == "1706659200000"  # no moment, though a number


def test_seconds_are_no_years() -> None:
    stream = KnowledgeStream.from_labels("x", [[(f"e{i}", "r", "x") for i in range(3)]])
    with pytest.raises(UserError, match="a time format of s, ms"):
        stream.split("year", times=np.array([1.7e9, 1.71e9, 1.72e9]))

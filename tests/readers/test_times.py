"""Times as the fourth column of triples."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from dicgrl import DataError, DataWarning, Learner, UserError, read_stream
from dicgrl.graph.times import told
from dicgrl.readers import Reading, read_timed
from tests.readers.small_graph import (
    put,
)
from tests.streams import labelled


class TestTimes:
    def test_numbers_and_dates(self, tmp_path: Path) -> None:
        put(tmp_path / "x.tsv", "a\tr\tb\t2001\nb\tr\tc\t1999.5\n")
        stream, times = read_timed(tmp_path / "x.tsv")
        assert times.tolist() == [2001, 1999.5]
        assert len(stream) == 1 and stream.name == "x"
        put(tmp_path / "y.csv", "head,relation,tail,time\na,r,b,2001-05-06\nb,r,c,1999-01-01\n")
        stream, times = read_timed(tmp_path / "y.csv")
        assert (times[0] - times[1]) / np.timedelta64(1, "D") == 856
        parts = labelled(stream.split("time", [0.5, 0.5], times=times))
        assert [part["train"] for part in parts] == [[("b", "r", "c")], [("a", "r", "b")]]

    @pytest.mark.parametrize("header", ["", "head\trelation\ttail\twhen\n"])
    @pytest.mark.parametrize(
        ("times", "bad"),
        [
            (["1999", "2000", "soon", "2001"], 2),
            (["1999-01-01", "2000-01-01", "12.5"], 2),
            (["nan", "1", "2"], 0),
            (["2000-01-01", "2000-13-01", "2000-01-01"], 1),
        ],
    )
    def test_a_bad_one_is_named(
        self, tmp_path: Path, header: str, times: list[str], bad: int
    ) -> None:
        put(tmp_path / "x.tsv", header + "".join(f"a\tr\tb\t{time}\n" for time in times))
        line = bad + 1 + bool(header)
        with pytest.raises(DataError, match=rf"x\.tsv:{line}: time '{times[bad]}'"):
            read_timed(tmp_path / "x.tsv")

    @pytest.mark.parametrize(
        ("header", "row"),
        [
            ("Timestamp,source,target,type", "{1},{0[0]},{0[2]},{0[1]}"),
            ("tail,year,head,relation", "{0[2]},{1},{0[0]},{0[1]}"),
            ("tail,relation,head,when", "{0[2]},{0[1]},{0[0]},{1}"),
        ],
    )
    def test_a_header_names_the_columns(self, tmp_path: Path, header: str, row: str) -> None:
        triples = [("a", "r", "b"), ("c", "q", "d")]
        rows = [row.format(t, time) for t, time in zip(triples, (3, 1), strict=True)]
        put(tmp_path / "x.csv", "\n".join([header, *rows]))
        stream, times = read_timed(tmp_path / "x.csv")
        assert labelled(stream)[0]["train"] == triples
        assert times.tolist() == [3, 1]
        put(tmp_path / "x.csv", "\n".join([header, *rows, row.format("123", "soon")]))
        with pytest.raises(DataError, match=r"x\.csv:4: time 'soon'"):
            read_timed(tmp_path / "x.csv")

    def test_a_first_line_with_a_time_is_a_fact(self, tmp_path: Path) -> None:
        put(tmp_path / "x.tsv", "s\tp\to\t2001\nb\tr\tc\t1999\n")
        assert read_timed(tmp_path / "x.tsv")[1].tolist() == [2001, 1999]

    def test_time_zones_count(self, tmp_path: Path) -> None:
        times = {
            "2024-01-01T00:00:00Z": "2024-01-01T00:00",
            "2024-01-01T01:00:00+02:00": "2023-12-31T23:00",
            "2023-12-31T20:00:00.5-0530": "2024-01-01T01:30:00.5",
            "2024-01-01 01:00 +01": "2024-01-01T00:00",
            "2024-01-01T00:30": "2024-01-01T00:30",
            "2023-12-31": "2023-12-31",
        }
        put(tmp_path / "x.tsv", "".join(f"{i}\tr\tb\t{t}\n" for i, t in enumerate(times)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            stream, found = read_timed(tmp_path / "x.tsv")
        assert found.tolist() == np.array([*times.values()], "datetime64[us]").tolist()
        parts = labelled(stream.split("time", [0.3, 0.7], times=found))
        assert [[t[0] for t in p["train"]] for p in parts] == [["1", "5"], ["0", "2", "3", "4"]]

    @pytest.mark.parametrize("zone", ["+24:00", "+02:60", "+2", "Z+02:00", "-", " CET"])
    def test_a_time_zone_that_is_none(self, tmp_path: Path, zone: str) -> None:
        time = f"2024-01-01T00:00{zone}"
        put(tmp_path / "x.tsv", f"a\tr\tb\t2024-01-01T00:00Z\na\tr\tb\t{time}\n")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(DataError, match=rf"x\.tsv:2: time '{re.escape(time)}'"):
                read_timed(tmp_path / "x.tsv")

    @pytest.mark.parametrize("name", ["x.tsv", "x.csv"])
    def test_a_fourth_column_has_its_command(self, tmp_path: Path, name: str) -> None:
        hint = "`dicgrl datasets split FILE --by time` reads a fourth column"
        comma = "," if name == "x.csv" else "\t"
        for content, said in (
            ("a r b 2001\n", True),
            ("a r b\na r b c\n", False),
            ("a r b c\n", False),
            ("a r b c d\n", False),
            ("a r b \n", False),
        ):
            put(tmp_path / name, content.replace(" ", comma))
            with pytest.raises(DataError, match="expected 3 fields") as caught:
                read_stream(tmp_path / name)
            assert (hint in str(caught.value)) == said

    @pytest.mark.parametrize("name", ["x.tsv", "x.csv"])
    @pytest.mark.parametrize(
        "header",
        [" head relation tail", " head relation tail year", "subject n predicate object weight"],
    )
    def test_columns_that_are_not_needed_are_not_read(
        self, tmp_path: Path, name: str, header: str
    ) -> None:
        names = header.split(" ")
        values = {"head": "a", "subject": "a", "relation": "r", "predicate": "r", "weight": ""}
        row = [values.get(word, "b" if word in ("tail", "object") else "7") for word in names]
        comma = "," if name == "x.csv" else "\t"
        put(tmp_path / name, f"{comma.join(names)}\n{comma.join(row)}\n")
        assert labelled(read_stream(tmp_path / name))[0]["train"] == [("a", "r", "b")]

    def test_missing_file_and_column(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="no such file"):
            read_timed(tmp_path / "x.tsv")
        put(tmp_path / "x.tsv", "a\tr\tb\n")
        with pytest.raises(DataError, match=r"x\.tsv:1: expected 4 fields.*found 3"):
            read_timed(tmp_path / "x.tsv")


class TestTimesOfFacts:
    """Of a column that is called time, date or year, when facts are learned."""

    def test_milliseconds(self, tmp_path: Path) -> None:
        put(tmp_path / "x.csv", "head,relation,tail,time\na,r,b,1706659200000\n")
        with pytest.warns(DataWarning, match=r"'1706659200000' in the column of times is no time"):
            assert not len(read_stream(tmp_path / "x.csv")[0].times)
        part = read_stream(tmp_path / "x.csv", reading=Reading(time_format="ms"))[0]
        assert told(part.times[0]) == "2024-01-31"

    def test_a_format_that_does_not_fit_is_refused(self, tmp_path: Path) -> None:
        """Whoever says how times are written wants them."""
        put(tmp_path / "x.csv", "head,relation,tail,time\na,r,b,31.01.2024\n")
        with pytest.raises(DataError, match=r"x\.csv:2: time '31\.01\.2024': expected it as"):
            read_stream(tmp_path / "x.csv", reading=Reading(time_format="%d-%m-%Y"))
        put(tmp_path / "y.csv", "a,r,b\n")
        with pytest.raises(DataError, match=r"y\.csv: .*no column holds times"):
            read_stream(tmp_path / "y.csv", reading=Reading(time_format="%d-%m-%Y"))
        with pytest.raises(UserError, match="time_format 'h': expected"):
            Reading(time_format="h")


@pytest.mark.parametrize("far", ["300000-01-01", "-292300-12-31T10:00", "9" * 5000 + "-01-01"])
class TestTimesThatCannotBeKept:
    """Years whose microseconds are more than 64 bits hold: NumPy makes other years of them."""

    def test_in_a_column(self, tmp_path: Path, far: str) -> None:
        put(tmp_path / "x.csv", f"head,relation,tail,time\na,r,b,2001-01-01\nb,r,c,{far}\n")
        said = r"x\.csv:3: time '.*: years from -290,000 to 290,000 can be kept$"
        for read in (read_stream, read_timed):
            with pytest.raises(DataError, match=said):
                read(tmp_path / "x.csv")

    def test_in_a_program(self, far: str) -> None:
        learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu")
        with pytest.raises(UserError, match="is not a time"):
            learner.learn([("a", "r", "b", "2001-01-01"), ("b", "r", "c", far)])
        facts = [{"h": "a", "r": "r", "t": "b", "date": far}]
        with pytest.raises(UserError, match="expected a date"):
            learner.learn(facts, reading=Reading("h,r,t,date"))
        with pytest.raises(UserError, match="is not a time"):
            learner.learn(facts)


def test_the_farthest_times_that_are_kept(tmp_path: Path) -> None:
    put(tmp_path / "x.csv", "head,relation,tail,time\na,r,b,-290000-01-01\nb,r,c,290000-12-31\n")
    kept = [told(time) for time in read_stream(tmp_path / "x.csv")[0].times.tolist()]
    assert kept == ["-290000-01-01", "290000-12-31"]

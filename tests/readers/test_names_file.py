"""Readable names beside the data."""

from __future__ import annotations

from pathlib import Path

import pytest

from dicgrl import DataWarning, UserError, read_stream
from dicgrl.readers import read_timed
from tests.readers.small_graph import (
    put,
    read_knowledge,
)
from tests.streams import labelled


@pytest.mark.parametrize("packed", ["labels.tsv", "labels.tsv.gz"])
@pytest.mark.parametrize("layout", ["0/train.txt", "0.tsv"])
def test_readable_names_beside_the_data(tmp_path: Path, packed: str, layout: str) -> None:
    put(tmp_path / layout, "/m/1\tr\t/m/2\n")
    put(tmp_path / packed, "/m/1\tAlien\n/m/1\tsecond\n/m/9\tunused\n")
    assert read_stream(tmp_path).names == {"/m/1": "Alien", "/m/9": "unused"}


class TestNamesBesideAFile:
    @pytest.fixture(autouse=True)
    def _facts(self, tmp_path: Path) -> None:
        put(tmp_path / "facts.tsv", "/m/1\tr\t/m/2\n")
        put(tmp_path / "more.csv", "/m/1,r,/m/3\n")

    @pytest.mark.parametrize("packed", ["labels.tsv", "labels.tsv.gz"])
    def test_they_are_read(
        self, tmp_path: Path, packed: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(tmp_path / packed, "/m/1\tAlien\n/m/9\tunused\n")
        names = {"/m/1": "Alien", "/m/9": "unused"}
        assert read_stream(tmp_path / "facts.tsv").names == names
        assert read_stream([tmp_path / "facts.tsv", tmp_path / "more.csv"]).names == names
        put(tmp_path / "timed.tsv", "/m/1\tr\t/m/2\t1979\n")
        assert read_timed(tmp_path / "timed.tsv")[0].names == names
        monkeypatch.chdir(tmp_path)
        assert read_stream("facts.tsv").names == names

    def test_those_that_are_given_count_before(self, tmp_path: Path) -> None:
        put(tmp_path / "labels.tsv", "not\tnames\tat all\n")
        put(tmp_path / "chosen.tsv", "/m/2\tBrazil\n")
        for path in (tmp_path / "facts.tsv", [tmp_path / "facts.tsv"]):
            stream = read_stream(path, labels=str(tmp_path / "chosen.tsv"))
            assert stream.names == {"/m/2": "Brazil"}
        with pytest.raises(UserError, match=r"no\.tsv: no such file of readable names"):
            read_stream(tmp_path / "facts.tsv", labels=tmp_path / "no.tsv")

    @pytest.mark.filterwarnings("error::dicgrl.DataWarning")
    def test_those_of_something_else_are_not(self, tmp_path: Path) -> None:
        put(tmp_path / "labels.tsv", "cat\tKatze\n")
        assert read_stream(tmp_path / "facts.tsv").names == {}
        put(tmp_path / "elsewhere" / "0.tsv", "/m/1\tr\t/m/2\n")
        put(tmp_path / "labels.tsv", "/m/1\tAlien\n")
        assert read_stream([tmp_path / "facts.tsv", tmp_path / "elsewhere" / "0.tsv"]).names == {}

    def test_a_file_of_something_else_is_no_reason_to_refuse(self, tmp_path: Path) -> None:
        put(tmp_path / "labels.tsv", "cat\t0\t1\n")
        said = r"facts\.tsv: read without the readable names beside it: .*labels\.tsv:1: expected 2"
        with pytest.warns(DataWarning, match=said):
            assert read_stream(tmp_path / "facts.tsv").names == {}

    @pytest.mark.filterwarnings("error::dicgrl.DataWarning")
    def test_facts_that_are_called_so(self, tmp_path: Path) -> None:
        put(tmp_path / "labels.tsv", "a\tr\tb\n")
        assert labelled(read_knowledge(tmp_path / "labels.tsv"))[0]["train"] == [("a", "r", "b")]

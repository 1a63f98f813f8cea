from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import DataError
from dicgrl.readers import text
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import csv_rows, read_fields, read_matrix, read_rows
from tests.streams import line_text

Table = list[list[str]]
ENDS = st.sampled_from(["\n", "\r\n"])


def source(content: bytes, name: str = "t.txt") -> SourceFile:
    from io import BytesIO

    return SourceFile(name, lambda: BytesIO(content))


def rows_of(file: SourceFile, columns: int, strip: bool = True) -> Table:
    return [
        list(row)
        for rows in read_rows(file, columns, strip=strip)
        for row in zip(*rows.columns, strict=True)
    ]


def lines_of(file: SourceFile, columns: int) -> list[int]:
    return [
        line
        for rows in read_rows(file, columns)
        for line in range(rows.first_line, rows.first_line + len(rows.columns[0]))
    ]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    width = draw(st.integers(1, 4))
    row = st.lists(line_text, min_size=width, max_size=width)
    return draw(st.lists(row, min_size=1, max_size=8))


@given(tables(), ENDS, st.booleans(), st.integers(0, 3), st.integers(1, 40))
def test_tab_separated(table: Table, end: str, mark: bool, blanks: int, block: int) -> None:
    content = end.join("\t".join(row) for row in table) + end * blanks
    file = source(content.encode("utf-8-sig" if mark else "utf-8"))
    assert rows_of(file, len(table[0]), strip=False) == table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_BLOCK_BYTES", block)  # the size of a block does not show
        assert rows_of(file, len(table[0]), strip=False) == table
        if all(field.strip(" ") for row in table for field in row):
            assert lines_of(file, len(table[0])) == list(range(1, len(table) + 1))


@given(tables(), ENDS, st.sampled_from(["t.txt", "t.csv"]), st.integers(1, 40), st.data())
def test_spaces_around_a_field_do_not_count(
    table: Table, end: str, name: str, block: int, data: st.DataObject
) -> None:
    space = st.sampled_from(["", "", " ", "   "])

    def padded(field: str) -> str:
        return data.draw(space) + field + data.draw(space)

    bare = [[re.sub('[",]', "", field).strip(" ") or "x" for field in row] for row in table]
    comma = "," if name == "t.csv" else "\t"
    content = end.join(comma.join(map(padded, row)) for row in bare)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_BLOCK_BYTES", block)
        assert rows_of(source(content.encode(), name), len(table[0])) == bare
    if name == "t.csv":  # what stands in quotes is kept as it is
        content = end.join(comma.join(padded(quoted(field)) for field in row) for row in table)
        assert rows_of(source(content.encode(), name), len(table[0])) == table


def test_spaces_are_no_field() -> None:
    for name, content in (("t.txt", b"a\t  \tc\n"), ("t.csv", b"a,  ,c\n"), ("t.csv", b"a,b, \n")):
        with pytest.raises(DataError, match=rf"^{name}:1: field [23] of 3 is empty"):
            rows_of(source(content, name), 3)


def quoted(field: str) -> str:
    return '"' + field.replace('"', '""') + '"'


@given(tables(), ENDS, st.booleans(), st.integers(0, 3), st.integers(1, 5))
def test_csv(table: Table, end: str, mark: bool, blanks: int, block: int) -> None:
    content = end.join(",".join(map(quoted, row)) for row in table) + end * blanks
    file = source(content.encode("utf-8-sig" if mark else "utf-8"), "t.csv")
    assert rows_of(file, len(table[0])) == table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_CSV_ROWS", block)
        assert rows_of(file, len(table[0])) == table
        assert lines_of(file, len(table[0])) == list(range(1, len(table) + 1))


def test_csv_quotes_protect_commas_and_quotes() -> None:
    file = source(b'"Crosby, Stills",x,"say ""hi"""\r\n', "t.csv")
    assert rows_of(file, 3) == [["Crosby, Stills", "x", 'say "hi"']]


def test_csv_quotes_inside_a_field_are_text() -> None:
    file = source(b'5" disk ,7" disk , x \n', "t.csv")
    assert rows_of(file, 3) == [['5" disk', '7" disk', "x"]]


@pytest.mark.parametrize("sign", ["\t", "\n", "\r", "\r\n", "\x1f", "\x85", "\u2029"])
def test_control_characters_in_a_label_are_refused_with_their_line(sign: str) -> None:
    csv = f'a,b,c\nd,e,f\ng,h,"i{sign}i"\nj,k,l\n'.encode()
    with pytest.raises(DataError, match=r"^t\.csv:3: 'i.*i': a label cannot contain") as caught:
        rows_of(source(csv, "t.csv"), 3)
    assert caught.value.line == 3
    if sign not in ("\t", "\n", "\r\n"):  # which end a field
        tabs = f"a\tb\tc\nd\te\tf\ng\th\ti{sign}i\nj\tk\tl\n".encode()
        with pytest.raises(DataError, match=r"^t\.txt:3: 'i.*i': a label cannot contain"):
            rows_of(source(tabs), 3)


def test_tab_files_quote_nothing() -> None:
    assert rows_of(source(b"\"a\tb,c\t'd\n"), 3) == [['"a', "b,c", "'d"]]


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
@pytest.mark.parametrize("bad_line", [1, 2, 30])
@pytest.mark.parametrize("ending", [".txt", ".csv"])
class TestLineOfAnError:
    @pytest.fixture(autouse=True)
    def _blocks(self, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
        monkeypatch.setattr(text, "_BLOCK_BYTES", block)
        monkeypatch.setattr(text, "_CSV_ROWS", block)

    def read(self, bad: bytes, bad_line: int, ending: str) -> DataError:
        comma = ending == ".csv"
        lines = [b"a,b,c" if comma else b"a\tb\tc"] * 30
        lines[bad_line - 1] = bad.replace(b"\t", b",") if comma else bad
        with pytest.raises(DataError) as caught:
            rows_of(source(b"\r\n".join(lines) + b"\r\n", f"t{ending}"), 3)
        assert caught.value.line == bad_line
        assert str(caught.value).startswith(f"t{ending}:{bad_line}: ")
        return caught.value

    def test_encoding(self, bad_line: int, ending: str) -> None:
        error = self.read("a\té\tc".encode("latin-1"), bad_line, ending)
        assert "not UTF-8 text: byte 0xe9" in str(error)

    def test_number_of_fields(self, bad_line: int, ending: str) -> None:
        for bad, found in ((b"x\ty", 2), (b"x\ty\tz\tw", 4)):
            error = self.read(bad, bad_line, ending)
            assert "expected 3 fields separated by " in str(error)
            assert f"found {found}: 'x" in str(error)

    def test_empty_field(self, bad_line: int, ending: str) -> None:
        assert "field 2 of 3 is empty" in str(self.read(b"x\t\tz", bad_line, ending))

    def test_blank_line_inside(self, bad_line: int, ending: str) -> None:
        if bad_line < 30:  # the last one is the end of the file
            assert "expected 3 fields" in str(self.read(b"", bad_line, ending))


@given(st.integers(1, 4), st.integers(1, 3), st.sampled_from([b"x\ty", b"\xe9\tb"]), st.data())
def test_blank_lines_inside_count_wherever_a_block_ends(
    before: int, blanks: int, after: bytes, data: st.DataObject
) -> None:
    content = b"a\tb\n" * before + b"\n" * blanks + after
    expected = before + 1
    block = data.draw(st.integers(1, len(content) + 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_BLOCK_BYTES", block)
        with pytest.raises(DataError) as caught:
            rows_of(source(content), 2)
    if "not UTF-8" in str(caught.value):
        expected += blanks
    assert caught.value.line == expected


@pytest.mark.parametrize("name", ["t.txt", "t.csv"])
@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n\r\n", b"\xef\xbb\xbf"])
def test_empty_file(name: str, content: bytes) -> None:
    with pytest.raises(DataError, match=rf"^{name}: the file is empty"):
        rows_of(source(content, name), 3)


def test_damaged_csv_names_the_line() -> None:
    with pytest.raises(DataError, match=r"^t.csv:2: not valid CSV"):
        rows_of(source(b'a,b\n"c"d,e\n', "t.csv"), 2)
    with pytest.raises(DataError, match=r"^t.csv:3: not valid CSV"):
        rows_of(source(b'a,b\nc,d\n"e,f\n', "t.csv"), 2)


def test_csv_width_is_that_of_the_first_row() -> None:
    rows = list(csv_rows(source(b"a,b\nc,d\n", "t.csv")))
    assert [r.columns for r in rows] == [[["a", "c"], ["b", "d"]]]
    with pytest.raises(DataError, match=r"^t.csv:2: expected 2 fields separated by comma, found 3"):
        list(csv_rows(source(b"a,b\nc,d,e\n", "t.csv")))


def test_gzip_is_read_like_plain(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tb\nc\td"))
    assert rows_of(SourceFile.on_disk(path), 2) == [["a", "b"], ["c", "d"]]


def test_fields_separated_by_blanks() -> None:
    found = list(read_fields(source(b"1 x\n2\ty\r\n 3  z \n\n"), 2))
    assert found == [(1, ["1", "x"]), (2, ["2", "y"]), (3, ["3", "z"])]
    with pytest.raises(DataError, match=r"^t.txt:2: expected 2 fields.*found 1: '2'"):
        list(read_fields(source(b"1 x\n2\n"), 2))
    with pytest.raises(DataError, match=r"^t.txt: the file is empty"):
        list(read_fields(source(b"\n"), 2))


values = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.lists(st.tuples(values, values), min_size=1), ENDS, st.sampled_from([" ", "\t", "  "]))
def test_matrix(rows: list[tuple[float, float]], end: str, blank: str) -> None:
    content = end.join(f"n{i}{blank}{a!r}{blank}{b!r}" for i, (a, b) in enumerate(rows))
    labels, matrix = read_matrix(source(content.encode()))
    assert labels == [f"n{i}" for i in range(len(rows))]
    np.testing.assert_array_equal(matrix, np.array(rows, dtype=np.float32))
    assert matrix.dtype == np.float32


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("b 1 2", "node 'b' has 2 features; expected 3"),
        ("b 1 2 3 4", "node 'b' has 4 features; expected 3"),
        ("b", "node 'b' has 0 features; expected 3"),
        ("b 1 2 blue", "a feature is not a number.*'blue'"),
        ("b 1 nan 2", "feature 'nan' is not a finite number"),
        ("b 1 2 -inf", "feature '-inf' is not a finite number"),
        ("b 1 2 1e99", "feature '1e99' is not a finite number"),
    ],
)
@pytest.mark.parametrize("block", [3, 1 << 20])
def test_bad_feature_row(
    line: str, message: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_BLOCK_BYTES", block)
    with pytest.raises(DataError, match=rf"^t.txt:2: {message}"):
        read_matrix(source(f"a 1 2 3\n{line}\nc 1 2 3\n".encode()))


def test_long_lines_are_shortened_in_messages() -> None:
    with pytest.raises(DataError) as caught:
        rows_of(source(b"x" * 10_000), 2)
    assert len(str(caught.value)) < 200

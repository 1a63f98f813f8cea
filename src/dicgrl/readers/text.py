"""Reads tables of text in blocks, so that large files need little memory."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from dicgrl.errors import DataError, shown
from dicgrl.graph.arrays import FloatArray
from dicgrl.graph.labels import FORBIDDEN, FORBIDDEN_IN_LINES, forbidden
from dicgrl.readers.sources import SourceFile

_BLOCK_BYTES = 8 << 20
_LONGEST = 16 << 20  # bytes of a line
_BLANK = 1 << 20  # lines; nobody counts further where so many are blank
_COLUMNS = 1_000_000
_CSV_ROWS = 100_000
_BOM = b"\xef\xbb\xbf"
#: How other files begin that are taken for text.
_OTHERS = {
    b"\xff\xfe": "it is UTF-16; save the file as UTF-8",
    b"\xfe\xff": "it is UTF-16; save the file as UTF-8",
    b"\x1f\x8b": "it is compressed by gzip; give it a name that ends with .gz",
    b"BZh": "it is compressed by bzip2; unpack it first",
    b"\xfd7zXZ": "it is compressed by xz; unpack it first",
    b"\x28\xb5\x2f\xfd": "it is compressed by zstd; unpack it first",
    b"PK\x03\x04": "it is a zip archive, or a spreadsheet; unpack it, or save it as CSV",
    b"PAR1": "it is Parquet; say --format parquet",
    b"SQLite format 3": "it is a SQLite database; say --format sqlite",
}
_LONGEST_FIRST = 1 << 20  # bytes of a first line that are looked at
_SIGNS = {",": "comma", " ": "space"}
#: Spaces before a comma or the end of a line; a field in quotes is the group, which is kept.
_TRAILING = re.compile(r'((?:^|(?<=,)) *"(?:[^"]|"")*")|(?<! ) ++(?=,|\r?\n?\Z)')
_INDEX_HINT = (
    "; the first column has no name: if pandas numbered the rows, write them with "
    "to_csv(..., index=False)"
)
#: What may be wrong with the fields of a first line that has too many of them.
Hint = Callable[[list[str]], str]


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive rows of a table.

    Attributes:
        first_line: Number of the first row's line, from 1.
        columns: The fields, column by column.
        names: Readable names of labels, from formats that have them.
    """

    first_line: int
    columns: Sequence[Sequence[str]]
    names: Mapping[str, str] = field(default_factory=dict)


def read_rows(
    file: SourceFile,
    columns: int,
    hint: Hint | None = None,
    strip: bool = True,
    sep: str = "",
    filled: Sequence[int] | None = None,
) -> Iterator[Rows]:
    """Rows of a table with a fixed number of columns.

    `.csv` files have comma-separated fields that may be quoted; in all others a TAB separates the
    fields and nothing is quoted.

    Args:
        file: The table.
        columns: How many fields a line has.
        hint: What is said of a first line with more fields than that.
        strip: Whether spaces around a field do not count; those inside quotes always do.
        sep: What separates the fields, where it is neither of these; they may be quoted then.
        filled: Columns that must not be empty; all of them unless given.

    Raises:
        DataError: The file is empty, is not UTF-8, or has a line with the wrong number of fields,
            an empty field or a control character.
    """
    empty = True
    if _has_tabs(file, sep):
        blocks = _tab_rows(file, columns, hint, strip)
    else:
        blocks = csv_rows(file, columns, hint, strip, sep or ",")
    for rows in blocks:
        empty = False
        for number, column in enumerate(rows.columns):
            if "" in column and (filled is None or number in filled):
                line = rows.first_line + column.index("")
                raise DataError(file.label, f"field {number + 1} of {columns} is empty", line)
        yield rows
    if empty:
        raise DataError(file.label, "the file is empty")


def first_fields(file: SourceFile, sep: str = "") -> list[str]:
    """Fields of the first line, without spaces around them; none of a file that has no text there.

    Whatever is wrong with the line is found when it is read.
    """
    with file.open() as stream:
        line = stream.readline(_LONGEST_FIRST).removeprefix(_BOM).decode("utf-8", "replace")
    text = line.rstrip("\r\n")
    if _has_tabs(file, sep):
        return [part.strip(" ") for part in text.split("\t")] if text else []
    try:
        fields = next(csv.reader([text], delimiter=sep or ",", skipinitialspace=True), [])
    except csv.Error:
        return []
    return [part.strip(" ") for part in fields]


def _has_tabs(file: SourceFile, sep: str) -> bool:
    is_csv = file.reading.format == "csv" or (not file.reading.format and file.ending == ".csv")
    return sep == "\t" or (not sep and not is_csv)


def _tab_rows(file: SourceFile, columns: int, hint: Hint | None, strip: bool) -> Iterator[Rows]:
    for first_line, text in text_blocks(file):
        _check_widths(file, first_line, text, columns, hint)
        joined = text.replace("\n", "\t")
        fields = joined.split("\t")
        # Most files have no such spaces, and then no field is looked at.
        if strip and (" \t" in joined or "\t " in joined or " " in (joined[0], joined[-1])):
            fields = [field.strip(" ") for field in fields]
        yield Rows(first_line, [fields[column::columns] for column in range(columns)])


def _check_widths(
    file: SourceFile, first_line: int, text: str, columns: int, hint: Hint | None
) -> None:
    for number, line in enumerate(text.split("\n")):
        if line.count("\t") != columns - 1:
            found = line.count("\t") + 1
            at = first_line + number
            raise DataError(
                file.label,
                f"expected {columns} fields separated by TAB, found {found}: {shown(line)}"
                + (_said(hint, line.split("\t"), columns) if at == 1 else ""),
                at,
            )


def _said(hint: Hint | None, fields: list[str], columns: int) -> str:
    if len(fields) <= columns:
        return ""
    if not fields[0].strip():
        return _INDEX_HINT
    return hint(fields) if hint else ""


def csv_rows(
    file: SourceFile,
    columns: int | None = None,
    hint: Hint | None = None,
    strip: bool = True,
    sep: str = ",",
) -> Iterator[Rows]:
    """Rows of a CSV file; without `columns`, the first row says how many there are.

    For `hint`, `strip` and `sep` see `read_rows`.
    """
    with file.open() as stream:
        lines = _decoded_lines(file, stream)
        if strip and sep == ",":
            lines = map(_without_trailing_spaces, lines)
        reader = csv.reader(lines, delimiter=sep, strict=True, skipinitialspace=strip)
        rows: list[list[str]] = []
        first_line = 1
        for line, row in _csv_lines(file, reader, columns, hint, sep):
            rows.append([part.strip(" ") for part in row] if strip and sep != "," else row)
            if len(rows) == _CSV_ROWS:
                yield _by_column(first_line, rows)
                first_line, rows = line + 1, []
        if rows:
            yield _by_column(first_line, rows)


def _csv_lines(
    file: SourceFile, reader: Any, columns: int | None, hint: Hint | None, sep: str
) -> Iterator[tuple[int, list[str]]]:
    """Rows of as many fields each, with the numbers of the lines that they end in.

    Blank lines may only be the end of the file.
    """
    blank = 0  # the first blank line
    try:
        for row in reader:
            line = reader.line_num
            if not row:
                blank = blank or line
                continue
            columns = columns or len(row)
            if columns > _COLUMNS:
                raise DataError(file.label, f"more than {_COLUMNS:,} columns", line)
            if blank:
                raise _other_fields(file, columns, sep, "a blank line", blank)
            if len(row) != columns:
                found = f"{len(row)}: {shown(sep.join(row))}"
                found += _said(hint, row, columns) if line == 1 else ""
                raise _other_fields(file, columns, sep, found, line)
            _check_labels(file, row, line)
            yield line, row
    except csv.Error as error:
        raise DataError(file.label, f"not valid CSV ({error})", reader.line_num) from error


def _other_fields(file: SourceFile, columns: int, sep: str, found: str, line: int) -> DataError:
    sign = _SIGNS.get(sep, repr(sep))
    expected = f"expected {columns} fields separated by {sign}"
    return DataError(file.label, f"{expected}, found {found}", line)


def _check_labels(file: SourceFile, row: list[str], line: int) -> None:
    """Refuse a row with a character that no label may have; it names the line that it begins in."""
    if FORBIDDEN.search("".join(row)):
        wrong = next(filter(FORBIDDEN.search, row))
        raise DataError(file.label, forbidden(wrong), line - sum(f.count("\n") for f in row))


def _by_column(first_line: int, rows: list[list[str]]) -> Rows:
    return Rows(first_line, [list(column) for column in zip(*rows, strict=True)])


def _without_trailing_spaces(line: str) -> str:
    """A line of CSV without the spaces that follow its fields; the reader skips those before."""
    if " ," in line or line.endswith((" ", " \n", " \r\n")):
        return _TRAILING.sub(lambda found: found[1] or "", line)
    return line


def _decoded_lines(file: SourceFile, stream: BinaryIO) -> Iterator[str]:
    # Not `for line in stream`: a line may be as long as the file.
    for number, line in enumerate(iter(partial(stream.readline, _LONGEST + 1), b""), start=1):
        if len(line) > _LONGEST:
            raise _too_long(file, number)
        try:
            yield (line.removeprefix(_BOM) if number == 1 else line).decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(file.label, _not_utf8(error, number), number) from error


def text_blocks(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Blocks of whole lines with the number of their first line; blank lines at the end are cut.

    Line ends are LF or CRLF; a byte order mark is skipped.
    """
    first_line = 1
    rest = b""
    held = ""  # line ends that may turn out to be the end of the file
    with file.open() as stream:
        while True:
            block = stream.read(_BLOCK_BYTES)
            data = rest + block
            if len(data) > _LONGEST and _first_length(data) > _LONGEST:
                raise _too_long(file, first_line + len(held))
            cut = data.rfind(b"\n") + 1 if block else len(data)
            data, rest = data[:cut], data[cut:]
            if first_line == 1:
                data = data.removeprefix(_BOM)
            try:
                text = held + data.decode("utf-8").replace("\r\n", "\n")
            except UnicodeDecodeError as error:
                line = first_line + len(held) + data[: error.start].count(b"\n")
                raise DataError(file.label, _not_utf8(error, line), line) from error
            body = text.rstrip("\n")
            if wrong := FORBIDDEN_IN_LINES.search(body):
                line = body.count("\n", 0, wrong.start())
                fields = body.split("\n")[line].split("\t")
                label = next(filter(FORBIDDEN_IN_LINES.search, fields))
                raise DataError(file.label, forbidden(label), first_line + line)
            if body:
                yield first_line, body
                first_line += body.count("\n") + 1
                held = text[len(body) + 1 :][:_BLANK]
            else:
                held = text[:_BLANK]
            if not block:
                return


def _too_long(file: SourceFile, line: int) -> DataError:
    return DataError(file.label, f"the line is longer than {_LONGEST >> 20} MiB", line)


def _first_length(data: bytes) -> int:
    """Bytes of the first line; no other one can be longer than a block."""
    end = data.find(b"\n")
    return len(data) if end < 0 else end


def _not_utf8(error: UnicodeDecodeError, line: int) -> str:
    kind = next((kind for magic, kind in _OTHERS.items() if error.object.startswith(magic)), "")
    if kind and line == 1:
        return f"not UTF-8 text: {kind}"
    return f"not UTF-8 text: byte 0x{error.object[error.start]:02x}; save the file as UTF-8"


def read_fields(file: SourceFile, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Lines of a small file whose fields are separated by blanks, each with its line number."""
    empty = True
    for first_line, text in text_blocks(file):
        for line, content in enumerate(text.split("\n"), start=first_line):
            fields = content.split()
            if len(fields) != columns:
                raise DataError(
                    file.label,
                    f"expected {columns} fields separated by blanks, found {len(fields)}: "
                    f"{shown(content)}",
                    line,
                )
            empty = False
            yield line, fields
    if empty:
        raise DataError(file.label, "the file is empty")


def read_matrix(file: SourceFile) -> tuple[list[str], FloatArray]:
    """Lines `label value value ...`, separated by blanks: the labels and a float32 matrix."""
    labels: list[str] = []
    blocks: list[FloatArray] = []
    width = 0
    for first_line, text in text_blocks(file):
        lines = text.split("\n")
        for line, content in enumerate(lines, start=first_line):
            label, *values = content.split() or [""]
            width = width or len(values)
            if len(values) != width or not values:
                raise DataError(
                    file.label,
                    f"node {shown(label)} has {len(values)} features; expected {width or 'some'}",
                    line,
                )
            labels.append(label)
            blocks.append(_floats(file, values, line))
    if not labels:
        raise DataError(file.label, "the file is empty")
    return labels, np.stack(blocks)


def _floats(file: SourceFile, fields: list[str], line: int) -> FloatArray:
    try:
        with np.errstate(over="ignore"):  # too large for float32 is infinite, found below
            values = np.array(fields, dtype=np.float32)
    except ValueError as error:
        raise DataError(file.label, f"a feature is not a number ({error})", line) from error
    finite = np.isfinite(values)
    if not finite.all():
        value = fields[int(np.argmin(finite))]
        raise DataError(file.label, f"feature {shown(value)} is not a finite number", line)
    return values

"""Tables of text, read in blocks so that memory does not follow the size of the file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from dicgrl.errors import DataError, shown
from dicgrl.graph.arrays import FloatArray
from dicgrl.readers.files import SourceFile

_BLOCK_BYTES = 8 << 20
_CSV_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive rows of a table.

    Attributes:
        first_line: Line of the first row, counted from 1.
        columns: One list of fields for each column.
    """

    first_line: int
    columns: list[list[str]]


def read_rows(file: SourceFile, columns: int) -> Iterator[Rows]:
    """Rows of a table with a fixed number of columns.

    `.csv` files have comma-separated fields that may be quoted; in all others a TAB separates the
    fields and nothing is quoted.

    Raises:
        DataError: The file is empty, is not UTF-8, or has a line with the wrong number of fields
            or an empty field.
    """
    blocks = csv_rows(file, columns) if file.ending == ".csv" else _tab_rows(file, columns)
    empty = True
    for rows in blocks:
        empty = False
        for number, column in enumerate(rows.columns):
            if "" in column:
                line = rows.first_line + column.index("")
                raise DataError(file.label, f"field {number + 1} of {columns} is empty", line)
        yield rows
    if empty:
        raise DataError(file.label, "the file is empty")


def _tab_rows(file: SourceFile, columns: int) -> Iterator[Rows]:
    for first_line, text in text_blocks(file):
        _check_widths(file, first_line, text, columns)
        fields = text.replace("\n", "\t").split("\t")
        yield Rows(first_line, [fields[column::columns] for column in range(columns)])


def _check_widths(file: SourceFile, first_line: int, text: str, columns: int) -> None:
    for number, line in enumerate(text.split("\n")):
        if line.count("\t") != columns - 1:
            found = line.count("\t") + 1
            raise DataError(
                file.label,
                f"expected {columns} fields separated by TAB, found {found}: {shown(line)}",
                first_line + number,
            )


def csv_rows(file: SourceFile, columns: int | None = None) -> Iterator[Rows]:
    """Rows of a CSV file; without `columns`, the first row says how many there are."""
    with file.open() as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        reader = csv.reader(text, strict=True)
        first_line = 1
        try:
            while rows := list(islice(reader, _CSV_ROWS)):
                columns = columns or len(rows[0])
                for number, row in enumerate(rows):
                    if len(row) != columns:
                        raise DataError(
                            file.label,
                            f"expected {columns} fields separated by comma, found {len(row)}: "
                            f"{shown(','.join(row))}",
                            first_line + number,
                        )
                yield Rows(first_line, [list(column) for column in zip(*rows, strict=True)])
                first_line += len(rows)
        except UnicodeDecodeError as error:
            raise DataError(file.label, _not_utf8(error), reader.line_num + 1) from error
        except csv.Error as error:
            raise DataError(file.label, f"not valid CSV ({error})", reader.line_num) from error


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
            cut = data.rfind(b"\n") + 1 if block else len(data)
            data, rest = data[:cut], data[cut:]
            if first_line == 1:
                data = data.removeprefix(b"\xef\xbb\xbf")
            try:
                text = held + data.decode("utf-8").replace("\r\n", "\n")
            except UnicodeDecodeError as error:
                line = first_line + len(held) + data[: error.start].count(b"\n")
                raise DataError(file.label, _not_utf8(error), line) from error
            body = text.rstrip("\n")
            if body:
                yield first_line, body
                first_line += body.count("\n") + 1
                held = text[len(body) + 1 :]
            else:
                held = text
            if not block:
                return


def _not_utf8(error: UnicodeDecodeError) -> str:
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
            label, _, values = content.partition(" ")
            width = width or values.count(" ") + 1
            if values.count(" ") + 1 != width or not values:
                found = len(values.split())
                raise DataError(
                    file.label,
                    f"node {shown(label)} has {found} features; expected {width}",
                    line,
                )
            labels.append(label)
            blocks.append(_floats(file, values, line))
    if not labels:
        raise DataError(file.label, "the file is empty")
    return labels, np.stack(blocks)


def _floats(file: SourceFile, text: str, line: int) -> FloatArray:
    try:
        values = np.array(text.split(" "), dtype=np.float32)
    except ValueError as error:
        raise DataError(file.label, f"a feature is not a number ({error})", line) from error
    if not np.isfinite(values).all():
        raise DataError(file.label, "a feature is not finite", line)
    return values

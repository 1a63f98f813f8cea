"""Text in columns, separated by TAB, comma or another character, with or without a header."""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from dicgrl.errors import DataError, DataWarning, shown
from dicgrl.graph.labels import TIME_WORDS, header_words, named_columns, time_column
from dicgrl.graph.times import is_time
from dicgrl.readers.formats import TRIPLE, Format, Triple
from dicgrl.readers.reading import ROLES, Reading, check_number, find_columns
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import Rows, first_fields, read_rows

_TIME_HINT = "; `dicgrl datasets split FILE --by time` reads a fourth column, of times"
#: Words that name a column and hardly anything else.
_SURE = re.compile(r"(?:head|relation|tail|subject|predicate|object)(?:_.*)?")
#: What a column may be called: a word or some, and no number, IRI or code.
_WORD = re.compile(r"(?![A-Za-z]{1,2}[0-9]+$)[^\W\d_][\w -]{1,30}")
_SIGNS = "\t;,|"  # separators to try if the usual one does not occur


class Delimited(Format):
    """Tables of text. If the first line names the columns, the table may have further columns."""

    endings: ClassVar = (".tsv", ".txt", ".csv")
    may_hide_a_header: ClassVar = True
    heeds: ClassVar = ("columns", "sep")

    @override
    def rows(self, file: SourceFile, width: int, exact: bool) -> Iterator[Rows]:
        chosen = None if exact else _chosen(file, width)
        total, positions, skip = chosen or (width, list(range(width)), 0)
        hint = _other_columns if width == 3 else None
        empty = True
        filled = [] if file.may_lack else positions[:TRIPLE]
        for block in read_rows(file, total, hint, not exact, file.reading.sep, filled):
            first, columns = block.first_line, [block.columns[at] for at in positions]
            if skip and first == 1:
                first, columns = 2, [column[1:] for column in columns]
            if len(columns[0]):
                empty = False
                yield Rows(first, columns)
        if empty:
            raise DataError(file.label, "the file holds a header and no triples")

    @override
    def says_times(self, file: SourceFile) -> bool:
        if file.reading.named:
            return super().says_times(file)
        return time_column(first_fields(file, file.reading.sep)) is not None and (
            _header(first_fields(file, file.reading.sep), TRIPLE) is not None
        )

    @override
    def write(self, path: Path, triples: Iterable[Sequence[Triple]]) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            if path.suffix == ".csv":
                writer = csv.writer(file, lineterminator="\n")
                for block in triples:
                    writer.writerows(block)
            else:
                for block in triples:
                    file.writelines(f"{h}\t{r}\t{t}\n" for h, r, t in block)


def _chosen(file: SourceFile, width: int) -> tuple[int, list[int], int] | None:
    """How many columns there are, which are read, and whether the first line is a header.

    None where the first line says nothing: then there are as many columns as are read.
    """
    fields = first_fields(file, file.reading.sep)
    if not fields:
        return None
    if file.reading.named:
        return _as_asked(file, fields, file.reading, width)
    order = _header(fields, width)
    if order is not None:
        return len(fields), order, 1
    if len(fields) == 1 and (sign := _separates(fields[0], width)):
        said = sign if sign != "\t" else r"\t"
        raise DataError(
            file.label, f"the fields seem to be separated by '{said}': say --sep '{said}'", 1
        )
    return None


def _as_asked(
    file: SourceFile, fields: list[str], reading: Reading, width: int
) -> tuple[int, list[int], int]:
    """The same if the user names the columns."""
    known = {field.lower() for field in fields}
    named = all(name.lower() in known for name in reading.named)
    check_number(file.label, reading, width)
    if reading.says_roles and not named and width > 2:
        if missing := [role for role in ROLES[:width] if role not in reading.named]:
            raise DataError(file.label, f"--columns does not say which is the {missing[0]}")
        if len(fields) < len(reading.named):
            raise DataError(
                file.label, f"expected {len(reading.named)} fields, found {len(fields)}", 1
            )
        return len(fields), [reading.named.index(role) for role in ROLES[:width]], 0
    places = find_columns(file.label, fields, reading, width, facts=True)
    chosen = (fields, [fields[at] for at in places])
    header = not reading.says_numbers or any(named_columns(each, width) for each in chosen)
    return len(fields), places, int(header)


def _header(fields: list[str], width: int) -> list[int] | None:
    """Positions of head, relation, tail and, of four, the time; None if the line is no header."""
    order = named_columns(fields, width)
    if order is None or width < 4:
        return order
    rest = [i for i in range(len(fields)) if i not in order]
    times = [i for i in rest if fields[i].strip().lower() in TIME_WORDS]
    if len(times) == 1:
        return [*order, times[0]]
    # The last one may have any name but a time: such a line is a fact.
    if rest == [3] and not is_time(fields[3]):
        return [*order, 3]
    return None


def _separates(line: str, width: int) -> str:
    """The separator of a line in which the usual one does not occur; "" if none is found."""
    return next((sign for sign in _SIGNS if line.count(sign) == width - 1), "")


def refuse_header(
    file: SourceFile, columns: Sequence[Sequence[str]], known: Callable[[str], bool]
) -> None:
    """Refuse a first line that would be learned as a fact, but looks like a header.

    It is one where it has words for columns of triples; a word such as `type` may well be a
    relation: it counts for little, and for nothing where it stands in other lines as well. It is
    one, too, where it alone says nothing of anything: its three words stand in no other line and
    are not known, and every other line has one that does, or is.

    Args:
        file: The file.
        columns: Heads, relations and tails of its first lines.
        known: Whether a label was there before this file.

    Raises:
        DataError: It is a header.
    """
    if len(columns[0]) == 1:
        return
    fields = [column[0] for column in columns]
    words = [fields[i] for i in header_words(fields) if list(columns[i]).count(fields[i]) == 1]
    sure = len(words) > 1 or (words and _SURE.fullmatch(words[0].strip().lower()))
    long = max(map(len, words), default=0) > 1  # a letter may be anything
    line = shown(" ".join(fields))
    if (sure and long) or _is_apart(fields, columns, known):
        raise DataError(
            file.label,
            f"{line} looks like a header; say which columns hold head, relation and tail, as in "
            f"--columns {','.join(fields)}, or --columns 1,2,3 where it is a fact",
            1,
        )
    if long:
        said = (
            f"{line} is taken for a fact; if it is a header, name the columns head, relation, tail"
        )
        warnings.warn(DataWarning(file.label, said, 1), stacklevel=2)


def _is_apart(
    fields: list[str], columns: Sequence[Sequence[str]], known: Callable[[str], bool]
) -> bool:
    """Whether only the first line has no label that is known or occurs in another line."""
    if not all(map(_WORD.fullmatch, fields)) or any(map(known, fields)):
        return False
    if any(field in column[1:] for field in fields for column in columns):
        return False
    ends, relations = Counter(chain(columns[0], columns[2])), Counter(columns[1])
    return all(
        ends[head] > 1
        or relations[relation] > 1
        or ends[tail] > 1
        or any(map(known, (head, relation, tail)))
        for head, relation, tail in islice(zip(*columns, strict=True), 1, None)
    )


def _other_columns(fields: list[str]) -> str:
    """What to do about a first line that has more than head, relation and tail."""
    if len(fields) == 4 and _names_time(fields[3]):
        return _TIME_HINT
    names = ",".join(fields[:3])
    return (
        "; say which of them hold head, relation and tail, as in --columns 1,2,3, or, where this "
        f"line is a header, --columns {names}"
    )


def _names_time(field: str) -> bool:
    """Whether a field is a time, or what a column of times is called."""
    return field.strip().lower() in TIME_WORDS or is_time(field.strip())

"""Reads knowledge-graph streams: the authors' layout, numbered folders, numbered files.

- Numbered folders `0`, `1`, ... each hold `train`, `valid` and `test` (`.txt`, `.tsv`, `.csv`,
  plain or `.gz`; valid and test may be left out). In the authors' layout each also holds
  `entity2id.txt` and `relation2id.txt`, which list everything known by that part; without them an
  entity arrives when it is first mentioned.
- Numbered files `0.tsv`, `1.tsv`, ... are one part each.
- A folder that itself holds `train`, `valid` and `test`, as most public graphs come, is one part.

What else lies in these folders is the matter of `readers/strays.py`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import DataError, DataWarning, shown
from dicgrl.graph import SPLITS, KnowledgeStream, KnowledgeStreamBuilder, Vocabulary
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.labels import header_words, named_columns
from dicgrl.readers.hold_out import NOTHING, SetAside
from dicgrl.readers.names_file import NAMES_FILE, read_names
from dicgrl.readers.sources import Folder, SourceFile, numbered
from dicgrl.readers.strays import strays_beside_parts, strays_of_part, warn_of_strays
from dicgrl.readers.text import Rows, read_rows

ENDINGS = (".txt", ".tsv", ".csv")
_TIMES = ("float64", "datetime64[us]")
_TIME_WORDS = ("time", "timestamp", "date", "year")
_TIME_HINT = "; `dicgrl datasets split FILE --by time` reads a fourth column, of times"
_ZONED = re.compile(r"([^T ]*[T ][0-9:.]+)([^0-9:.].*)")
_ZONE = re.compile(r" ?(?:[Zz]|([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9]))?)")
_NUMBERED_FILE = re.compile(r"([0-9]+)\.(?:tsv|csv|txt)(?:\.gz)?", re.IGNORECASE)


def read_numbered_folders(folder: Folder, name: str, aside: SetAside = NOTHING) -> KnowledgeStream:
    """A stream from sub-folders `0`, `1`, ...; see the module's text for what they hold."""
    children = numbered(folder, part_folders(folder), "sub-folder")
    strays = strays_beside_parts(folder, [*children, *_names_beside(folder)])
    parts = []
    for child in children:
        inner = folder.folder(child)
        if inner is None:
            raise DataError(f"{folder.label}/{child}", "the folder is empty")
        parts.append(_PartFiles.find(inner))
        strays += [f"{child}/{stray}" for stray in parts[-1].strays]
    return _read_parts(folder, parts, name, aside, strays)


def read_folder(folder: Folder, name: str, aside: SetAside = NOTHING) -> KnowledgeStream:
    """A stream of one part from a folder that itself holds `train`, `valid` and `test`."""
    part = _PartFiles.find(folder, _names_beside(folder))
    return _read_parts(folder, [part], name, aside, part.strays)


def _read_parts(
    folder: Folder, parts: Sequence[_PartFiles], name: str, aside: SetAside, strays: list[str]
) -> KnowledgeStream:
    warn_of_strays(folder, strays)
    aside.warn_if_unused(name, [("valid" in p.sets, "test" in p.sets) for p in parts])
    builder = KnowledgeStreamBuilder(name)
    for part in parts:
        _read_part(part, builder, aside)
    return builder.build(read_names(folder, strip=not any(part.exact for part in parts)))


def read_numbered_files(folder: Folder, name: str, aside: SetAside = NOTHING) -> KnowledgeStream:
    """A stream from the files `0.tsv`, `1.tsv`, ... of a folder."""
    children = numbered(folder, part_files(folder), "file")
    warn_of_strays(folder, strays_beside_parts(folder, [*children, *_names_beside(folder)]))
    files = [file for child in children if (file := folder.file(child))]
    return replace(read_files(files, name, aside), names=read_names(folder))


def read_files(
    files: Sequence[SourceFile], name: str, aside: SetAside = NOTHING
) -> KnowledgeStream:
    """A stream from files of triples, one part each."""
    builder = KnowledgeStreamBuilder(name)
    for file in files:
        rows = read_triples(file, builder)
        builder.add_held_out(rows, aside.valid, aside.test, aside.generator(len(builder)))
    return builder.build()


def read_timed_triples(file: SourceFile, name: str) -> tuple[KnowledgeStream, npt.NDArray[Any]]:
    """A static graph from a file with a time as fourth column, and the times.

    Times are numbers (years, seconds) or ISO dates, one kind throughout the file. A date with a
    time zone is given as UTC, and one without is taken to be that.
    """
    builder = KnowledgeStreamBuilder(name)
    times: list[str] = []
    builder.add(read_triples(file, builder, times))
    for kind in _TIMES:
        parsed = _parsed(times, kind)
        if parsed is not None:
            return builder.build(), parsed
    raise _bad_time(file, times)


def _parsed(times: list[str], kind: str) -> npt.NDArray[Any] | None:
    try:
        parsed = np.array(times, dtype=kind) if kind == _TIMES[0] else _utc(times, kind)
    except ValueError:
        return None
    return None if np.isnan(parsed).any() else parsed  # NaT counts as well


def _utc(times: list[str], kind: str) -> npt.NDArray[Any]:
    """ISO dates without their time zones, moved to UTC; NumPy knows none."""
    local = list(times)
    offsets = np.zeros(len(times), dtype="timedelta64[m]")
    for number, time in enumerate(times):
        if zoned := _ZONED.fullmatch(time):
            zone = _ZONE.fullmatch(zoned[2])
            if not zone:
                raise ValueError(f"{time}: no such time zone")
            local[number] = zoned[1]
            if zone[1]:
                offsets[number] = int(zone[1] + "1") * (60 * int(zone[2]) + int(zone[3] or 0))
    return np.array(local, dtype=kind) - offsets


def _bad_time(file: SourceFile, times: list[str]) -> DataError:
    """The error for the first time that is not of the kind that most are."""
    wrong = [[time for time in times if _parsed([time], kind) is None] for kind in _TIMES]
    value = min(wrong, key=len)[0]
    for rows in triple_rows(file, 4):
        if value in rows.columns[3]:
            line = rows.first_line + rows.columns[3].index(value)
            break
    return DataError(
        file.label, f"time {shown(value)}: the times must be all numbers or all ISO dates", line
    )


def part_folders(folder: Folder) -> dict[int, str]:
    """Sub-folders whose name is a number."""
    return _by_number(folder, re.compile(r"([0-9]+)"))


def part_files(folder: Folder) -> dict[int, str]:
    """Files `0.tsv`, `1.csv.gz`, ... by number."""
    return _by_number(folder, _NUMBERED_FILE)


def _by_number(folder: Folder, pattern: re.Pattern[str]) -> dict[int, str]:
    found: dict[int, str] = {}
    for name in folder.names():
        match = pattern.fullmatch(name)
        if match and found.setdefault(int(match[1]), name) != name:
            raise DataError(
                folder.label, f"{found[int(match[1])]} and {name} are both part {match[1]}"
            )
    return found


def split_file(folder: Folder, split: str) -> SourceFile | None:
    """The file of one split inside a part's folder."""
    found = [file for ending in ENDINGS if (file := folder.file(split + ending))]
    if len(found) > 1:
        raise DataError(folder.label, f"{' and '.join(file.label for file in found)} clash")
    return found[0] if found else None


def _names_beside(folder: Folder) -> list[str]:
    file = folder.file(NAMES_FILE)
    return [file.name] if file else []


@dataclass(frozen=True, slots=True)
class _PartFiles:
    """The files of one part, in a folder of its own.

    Attributes:
        entities: Lists the entities that are known by this part.
        relations: Lists the relations likewise.
        sets: The files of train, valid and test that are there; train is.
        strays: Names of what is not read.
    """

    entities: SourceFile | None
    relations: SourceFile | None
    sets: dict[str, SourceFile]
    strays: list[str]

    @classmethod
    def find(cls, folder: Folder, beside: Sequence[str] = ()) -> _PartFiles:
        """Find them; `beside` are names that somebody else reads."""
        ids = [folder.file(name) for name in ("entity2id.txt", "relation2id.txt")]
        sets = {split: file for split in SPLITS if (file := split_file(folder, split))}
        read = [file.name for file in (*ids, *sets.values()) if file]
        strays = strays_of_part(folder, [*read, *beside], sets)
        if "train" not in sets:
            raise DataError(folder.label, "no train.txt (or .tsv, .csv, with or without .gz)")
        return cls(ids[0], ids[1], sets, strays)

    @property
    def exact(self) -> bool:
        """Whether every label counts as it is written, as files of ids list it."""
        return self.entities is not None or self.relations is not None


def _read_part(part: _PartFiles, builder: KnowledgeStreamBuilder, aside: SetAside) -> None:
    if part.entities:
        _add_ids(part.entities, builder.entities)
    if part.relations:
        _add_ids(part.relations, builder.relations)
    listed = (
        len(builder.entities) if part.entities else None,
        len(builder.relations) if part.relations else None,
    )
    rows = {split: np.empty((0, 3), np.int64) for split in SPLITS}
    for split, file in part.sets.items():
        # Beside files of ids there are no headers: `h r t` may then be a fact.
        rows[split] = read_triples(file, builder, exact=part.exact)
        _check_listed(file, rows[split], listed, builder)
    shares = aside.where_missing("valid" in part.sets, "test" in part.sets)
    builder.add_held_out(
        rows["train"],
        shares.valid,
        shares.test,
        shares.generator(len(builder)),
        held=(rows["valid"], rows["test"]),
    )


def read_triples(
    file: SourceFile,
    builder: KnowledgeStreamBuilder,
    times: list[str] | None = None,
    exact: bool = False,
) -> IntArray:
    """Triples of a file as ids, [n, 3]; unseen labels are added to the builder.

    With `times` given, the file has a fourth column, which is appended to that list; for `exact`
    see `triple_rows`.
    """
    blocks = []
    for rows in triple_rows(file, 3 if times is None else 4, exact):
        if not exact and rows.first_line == 1:  # that line was no header
            _warn_of_header(file, rows.columns[:3])
        blocks.append(builder.rows(*rows.columns[:3]))
        if times is not None:
            times.extend(rows.columns[3])
    return np.concatenate(blocks)


def triple_rows(file: SourceFile, width: int = 3, exact: bool = False) -> Iterator[Rows]:
    """Labelled triples of a file, as every command reads them.

    A first line such as `head,relation,tail` is a header: it is skipped, and the columns are given
    in this order (and the time last), wherever they stand. Spaces around a field do not count. With
    `exact` there is no header, and spaces count.

    Raises:
        DataError: See `read_rows`; or there is nothing but a header.
    """
    empty = True
    order = None
    for rows in read_rows(file, width, _other_columns if width == 3 else None, not exact):
        first_line, columns = rows.first_line, rows.columns
        if not exact and first_line == 1:
            order = _header([column[0] for column in columns])
            if order:
                first_line, columns = 2, [column[1:] for column in columns]
        if columns[0]:
            empty = False
            yield Rows(first_line, [columns[i] for i in order] if order else columns)
    if empty:
        raise DataError(file.label, "the file holds a header and no triples")


def _warn_of_header(file: SourceFile, columns: list[list[str]]) -> None:
    """Warn of a first line that is taken for a fact, but may be a header in other words.

    A word such as `type` may well be a relation: then it stands in other lines as well.
    """
    if len(columns[0]) == 1:
        return
    fields = [column[0] for column in columns]
    words = [fields[i] for i in header_words(fields) if columns[i].count(fields[i]) == 1]
    if max(map(len, words), default=0) > 1:  # a letter may be anything
        warnings.warn(
            DataWarning(
                file.label,
                f"{shown(' '.join(fields))} is taken for a fact; if it is a header, name the "
                "columns head, relation, tail",
                1,
            ),
            stacklevel=2,
        )


def _other_columns(fields: list[str]) -> str:
    """What to do about a first line that has more than head, relation and tail."""
    order = named_columns(fields)
    others = [field for i, field in enumerate(fields) if i not in (order or range(3))]
    if len(others) == 1 and _is_time(others[0]):
        return _TIME_HINT
    return f"; leave out what is not of a triple: {', '.join(map(shown, others))}" if order else ""


def _is_time(field: str) -> bool:
    """Whether a field is a time, or what a column of times is called."""
    return field.strip().lower() in _TIME_WORDS or any(
        _parsed([field.strip()], kind) is not None for kind in _TIMES
    )


def _header(fields: list[str]) -> list[int] | None:
    """Where head, relation, tail and, of four, the time stand; None if the line is no header."""
    order = named_columns(fields)
    if order and len(fields) == 4:
        (rest,) = {0, 1, 2, 3}.difference(order)
        # The last one may have any name but a time: such a line is a fact.
        other = rest == 3 and all(_parsed([fields[3]], kind) is None for kind in _TIMES)
        return [*order, rest] if other or fields[rest].strip().lower() in _TIME_WORDS else None
    return order


def _add_ids(file: SourceFile, vocabulary: Vocabulary) -> None:
    seen_labels: dict[str, int] = {}
    seen_ids: dict[str, int] = {}
    for rows in read_rows(file, 2, strip=False):
        for line, (label, number) in enumerate(
            zip(*rows.columns, strict=True), start=rows.first_line
        ):
            if not number.isdecimal():
                raise DataError(file.label, f"{shown(number)} is not an id (0, 1, 2, ...)", line)
            for seen, value in ((seen_labels, label), (seen_ids, number)):
                if seen.setdefault(value, line) != line:
                    raise DataError(
                        file.label, f"duplicate {shown(value)}, first in line {seen[value]}", line
                    )
    vocabulary.add(seen_labels)


def _check_listed(
    file: SourceFile,
    rows: IntArray,
    listed: tuple[int | None, int | None],
    builder: KnowledgeStreamBuilder,
) -> None:
    """Refuse a triple whose entity or relation the part's id files do not list."""
    for known, columns, vocabulary in (
        (listed[0], (0, 2), builder.entities),
        (listed[1], (1,), builder.relations),
    ):
        if known is None or len(vocabulary) == known:
            continue
        unlisted = rows[:, columns] >= known
        line, column = np.argwhere(unlisted)[0]
        label = vocabulary.labels([rows[line, columns[column]]])[0]
        kind = vocabulary.kind
        raise DataError(
            file.label, f"unknown {kind} {shown(label)}: {kind}2id.txt does not list it", line + 1
        )

"""JSON lines: an object, or a list of three, in each line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from dicgrl.errors import DataError, UserError, shown
from dicgrl.graph.labels import as_label, check_labels, role_of, time_column
from dicgrl.readers.formats import TRIPLE, Format, Triple
from dicgrl.readers.reading import ROLES, find_columns
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import Rows, text_blocks


class JsonLines(Format):
    """Objects, whose keys are column names, or lists; all lines must look like the first one."""

    endings: ClassVar = (".jsonl", ".ndjson")

    @override
    def rows(self, file: SourceFile, width: int, exact: bool) -> Iterator[Rows]:
        keys: Sequence[Any] | None = None
        for first, text in text_blocks(file):
            lines = text.split("\n")
            found = _parsed(file, lines, first)
            if keys is None:
                keys = _keys(file, found[0], width)
            yield Rows(first, _columns(file, found, keys, first))
        if keys is None:
            raise DataError(file.label, "the file is empty")

    @override
    def says_times(self, file: SourceFile) -> bool:
        if file.reading.named:
            return super().says_times(file)
        first, text = next(text_blocks(file), (1, "[]"))
        (value,) = _parsed(file, text.split("\n")[:1], first)
        return isinstance(value, dict) and time_column(list(value)) is not None

    @override
    def write(self, path: Path, triples: Iterable[Sequence[Triple]]) -> None:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for block in triples:
                file.writelines(
                    json.dumps({"head": h, "relation": r, "tail": t}, ensure_ascii=False) + "\n"
                    for h, r, t in block
                )


def _parsed(file: SourceFile, lines: list[str], first: int) -> list[Any]:
    """The values of lines; those of a block are parsed at once, unless one is wrong."""
    try:
        found = json.loads(f"[{','.join(lines)}]", object_pairs_hook=_object)
        if len(found) == len(lines):
            return list(found)
    except (UserError, ValueError, RecursionError):
        pass
    for number, line in enumerate(lines, start=first):
        try:
            json.loads(line, object_pairs_hook=_object)
        except UserError as error:
            raise DataError(file.label, f"{error}: {shown(line)}", number) from None
        except (ValueError, RecursionError) as error:
            raise DataError(file.label, f"not JSON: {shown(line)} ({error})", number) from None
    raise DataError(file.label, "expected one JSON value in each line", first)


def _keys(file: SourceFile, value: Any, width: int) -> Sequence[Any]:
    """What head, relation, tail and time are found by, given the first line."""
    if isinstance(value, dict):
        names = list(value)
        if file.may_lack:  # what is asked for may not be there at all
            there = set(map(role_of, names))
            names += [name for role, name in enumerate(ROLES[:width]) if role not in there]
        return [names[at] for at in find_columns(file.label, names, file.reading, width)]
    if isinstance(value, list) and file.reading.says_numbers:
        places = list(map(str, range(1, len(value) + 1)))
        return find_columns(file.label, places, file.reading, width)
    if isinstance(value, list) and len(value) == width and not file.reading.named:
        return range(width)
    hint = ""
    if isinstance(value, list) and len(value) > width:
        hint = "; say which of its values they are, as in --columns 1,2,3"
    raise DataError(
        file.label,
        f"expected an object with head, relation and tail, or a list of {width}, found "
        + shown(_written(value))
        + hint,
        1,
    )


class _Fields:
    """Takes the fields out of a line, which must look like the first one.

    Args:
        file: The file.
        keys: Names of the fields in objects, or their places in lists.
    """

    def __init__(self, file: SourceFile, keys: Sequence[Any]) -> None:
        self._keys, self._may_lack = keys, file.may_lack
        self._objects = not isinstance(keys[0], int)
        self._least = 0 if self._objects else max(keys) + 1
        self._most = sys.maxsize if self._objects or file.reading.named else self._least

    def of(self, value: Any) -> list[str]:
        """Its labels, and the texts of further fields.

        Raises:
            KeyError: It lacks one.
            TypeError: It has no fields.
            UserError: It is unlike the first line, or has something that is no label.
        """
        if isinstance(value, dict) is not self._objects or not self._fits(len(value)):
            raise UserError(f"not like the first line: {shown(_written(value))}")
        if self._objects and self._may_lack:
            value = dict.fromkeys(self._keys) | value
        labels = [self._label(value[key]) for key in self._keys[:TRIPLE]]
        texts = [_text(value[key]) for key in self._keys[TRIPLE:]]
        if "" in labels and not self._may_lack:
            raise UserError(f"an empty label: {shown(_written(value))}")
        check_labels([*labels, *texts])
        return [*labels, *texts]

    def _fits(self, length: int) -> bool:
        return self._least <= length <= self._most

    def _label(self, field: Any) -> str:
        return "" if field is None and self._may_lack else _label(field)


def _columns(
    file: SourceFile, found: list[Any], keys: Sequence[Any], first: int
) -> list[Sequence[str]]:
    """The columns of a block of lines, of which the first has the number `first`."""
    fields = _Fields(file, keys)
    columns: list[list[str]] = [[] for _ in keys]
    for number, value in enumerate(found, start=first):
        try:
            row = fields.of(value)
        except KeyError as key:
            raise DataError(
                file.label, f"there is no {key}: {shown(_written(value))}", number
            ) from None
        except (TypeError, UserError) as error:
            raise DataError(file.label, str(error), number) from None
        for column, text in zip(columns, row, strict=True):
            column.append(text)
    return list(columns)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, each of whose keys is there once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"the key {shown(twice)} is there twice")
    return found


def _label(value: object) -> str:
    if type(value) is str:
        return value
    if isinstance(value, str | int) and not isinstance(value, bool):
        return as_label(value)
    raise UserError(f"{shown(_written(value))} is not a label: expected text or a whole number")


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _written(value)


def _written(value: object) -> str:
    """A value as JSON writes it."""
    return json.dumps(value, ensure_ascii=False)

"""Converts rows of the database to versions, arrays, names and tensor files, and back."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dicgrl.errors import DataError
from dicgrl.store.content import Content
from dicgrl.store.damage import is_no_damage
from dicgrl.store.database import PIECE, Database, as_text, parsed
from dicgrl.store.later import Damaged, DictLater, ListLater
from dicgrl.store.tensors import Delta, TensorFile, combined, read_file
from dicgrl.store.version import RESTORE, ModelTensors, Version, stamp

TENSORS = "tensors"  # the folder of tensor files, beside the database
_NAMES = 1 << 20  # characters of labels and names in one row, or those of a single one
_ARRAYS, _LABELS = "*arrays", "*labels"  # JSON among the arrays: their types, and labels
_DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64")


class StoredRun:
    """Reads a run from its database, as it was when the connection was opened.

    Args:
        database: The open connection.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._config = database.config()

    @property
    def folder(self) -> Path:
        """The folder of tensor files."""
        return self.database.path.with_name(TENSORS)

    @property
    def config(self) -> dict[str, Any]:
        """What the run is."""
        return self._config

    def versions(self) -> list[Version]:
        """All versions, oldest first.

        Raises:
            DataError: One is missing or damaged.
        """
        rows = self.database.rows("versions", "ORDER BY number")
        found = [_version(row, self.database.damaged) for row in rows]
        expected = self._config.get("versions")
        if [version.number for version in found] != list(range(1, len(found) + 1)) or (
            len(found) != expected
        ):
            raise self.database.damaged(f"versions are missing: there were {expected}")
        return found

    def version(self, number: int) -> Version:
        """One version.

        Raises:
            DataError: It is missing or damaged.
        """
        for row in self.database.rows("versions", "WHERE number = ?", (number,)):
            return _version(row, self.database.damaged)
        raise self.database.damaged(f"version {number} is missing")

    @property
    def edits(self) -> int:
        """Changes whenever names or measurements are written; 0 if they came with versions."""
        return int(self._config.get("edits", 0))

    def named_at(self, edits: int) -> int | None:
        """How many rows of names there were at a mark of `edits`; None if that is not known."""
        return dict(self._config.get("marks", [])).get(edits)

    def stamp(self, number: int) -> int:
        """That of a version, without reading the rest of it; 0 where there is none."""
        query = "SELECT number, parent, kind, time, content FROM versions WHERE number = ?"
        found = self.database.connection.execute(query, (number,)).fetchone()
        if found is None:
            return 0
        own, parent, kind, time, content = found
        return stamp(own, parent, kind, time, parsed(content)["data"])

    def lacks_results(self, first: int, last: int) -> bool:
        """Whether one of the versions [first, last) has no results."""
        query = "SELECT kind FROM versions WHERE number BETWEEN ? AND ? AND results IS NULL"
        found = self.database.connection.execute(query, (first, last - 1))
        return any(kind != RESTORE for (kind,) in found)

    def content(self, version: Version) -> Content:
        """Arrays and labels that a version brought.

        Raises:
            DataError: Something is missing or damaged.
        """
        return self.contents([version])[0]

    def contents(self, versions: Sequence[Version]) -> list[Content]:
        """The same of several versions, oldest first; read at once.

        A version knows the checksum of all that it brought: those of the rows need not be looked
        at.
        """
        blobs: dict[int, dict[str, bytearray]] = {version.number: {} for version in versions}
        first, last = (versions[0].number, versions[-1].number) if versions else (0, 0)
        query = (
            "SELECT version, name, piece, data FROM arrays WHERE version BETWEEN ? AND ? "
            "ORDER BY version, name, piece"
        )
        following = 0  # the piece that comes next
        for number, name, piece, data in self.database.connection.execute(query, (first, last)):
            if number not in blobs:
                continue
            following = following if name in blobs[number] else 0
            if piece != following or not isinstance(data, bytes):
                raise self.database.damaged(f"an array of version {number} has a gap")
            blobs[number].setdefault(name, bytearray()).extend(data)  # one copy, however many
            following += 1
        return [self._content(version, blobs[version.number]) for version in versions]

    def _content(self, version: Version, joined: dict[str, bytearray]) -> Content:
        if _digest(joined) != version.data:
            raise self.database.damaged(f"version {version.number} has another checksum")
        try:
            described, labels = parsed(joined[_ARRAYS]), parsed(joined[_LABELS])
            return {n: _array(about, joined[n]) for n, about in described.items()}, labels
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise self.database.damaged(f"version {version.number}: {error}") from error

    def names(self, at: int) -> dict[str, str]:
        """Readable names by label, as of a version.

        Raises:
            DataError: Some are missing or damaged.
        """
        there, noted = self.database.count("names"), self._config.get("names", 0)
        if there < noted:  # earlier versions did not count them
            raise self.database.damaged(f"names: {there} where there were {noted}")
        return {label: name for label, name in self._named(at).items() if name is not None}

    def renamed(self, first: int) -> dict[str, str | None]:
        """Names that were written since there were so many rows of them, None for those gone."""
        return self._named(int(self._config["versions"]), first)

    def _named(self, at: int, first: int = 0) -> dict[str, str | None]:
        names: dict[str, Any] = {}
        for row in self.database.rows("names", "ORDER BY rowid LIMIT -1 OFFSET ?", (first,)):
            try:
                names.update(parsed(row["names"]).items() if row["version"] <= at else ())
            except (AttributeError, ValueError) as error:
                raise self.database.damaged(f"names: {error}") from error
        return names

    def tags(self) -> dict[str, int]:
        """Versions by their tags."""
        return {row["name"]: row["version"] for row in self.database.rows("tags")}

    def trace(self) -> dict[int, list[dict[str, Any]]]:
        """The records of epochs, by version."""
        rows = self.database.rows("trace", "ORDER BY version")
        return {row["version"]: parsed(row["epochs"]) for row in rows}

    def files(self) -> list[TensorFile]:
        """All files of tensors that versions need."""
        return [TensorFile(**row) for row in self.database.rows("files")]

    def models(self) -> dict[int, int]:
        """The versions whose model is kept, each with the version that has its tensors."""
        return {row["version"]: row["source"] for row in self.database.rows("models")}

    def chain(self, number: int) -> list[TensorFile]:
        """The files of a version's model, base first; empty if it was not kept."""
        sources = self.models()
        return chain_of(self.files(), sources[number]) if number in sources else []

    def model(self, number: int) -> ModelTensors | None:
        """The model of a version; None where it was not kept.

        Raises:
            DataError: A file is missing or damaged.
        """
        found = next(self.database.rows("models", "WHERE version = ?", (number,)), None)
        if found is None:
            return None
        files = self.chain(number)
        steps = [read_file(self.folder, file, self.database.identity) for file in files]
        if not steps:
            raise self.database.damaged(f"no tensors of version {number}")
        return ModelTensors(parsed(found["configuration"]), self._combined(steps, number))

    def _combined(self, steps: list[Delta], number: int) -> dict[str, Tensor]:
        try:
            return combined(steps)
        except (ValueError, RuntimeError, IndexError) as error:
            if is_no_damage(error):
                raise
            raise DataError(self.folder, f"damaged: version {number}: {error}") from error


def chain_of(files: Sequence[TensorFile], version: int) -> list[TensorFile]:
    """The base and the deltas of a version's tensors; empty if any is missing."""
    return next(chains_of(files, [version]))


def chains_of(files: Sequence[TensorFile], versions: Iterable[int]) -> Iterator[list[TensorFile]]:
    """The same for several versions."""
    bases = {file.version: file for file in files if not file.parent}
    deltas = {file.version: file for file in files if file.parent}
    for at in versions:
        found: list[TensorFile] = []
        while at not in bases and at in deltas and deltas[at].parent < at:
            found.append(deltas[at])
            at = deltas[at].parent
        yield [bases[at], *found[::-1]] if at in bases else []


def insert_version(database: Database, version: Version) -> None:
    """Write what is known of a version, or write it again."""
    content = {"counts": dict(version.counts), "data": version.data}
    report = {
        "report": version.report,
        "before": version.before,
        "retention": version.retention,
        "answers": version.answers,
    }
    database.insert(
        "versions",
        number=version.number,
        parent=version.parent,
        kind=version.kind,
        time=version.time,
        message=version.message,
        content=as_text(content),
        report=as_text(report),
        tests=as_text(list(version.tests)),
        results=None if version.results is None else as_text(dict(version.results)),
    )


def insert_content(database: Database, number: int, content: Content) -> None:
    """Write arrays and labels of a version, in pieces of a bounded size."""
    for name, data in _blobs(content).items():
        for piece in range(max(1, math.ceil(len(data) / PIECE))):
            part = bytes(data[piece * PIECE : (piece + 1) * PIECE])
            database.insert("arrays", version=number, name=name, piece=piece, data=part)


def _blobs(content: Content) -> dict[str, Any]:
    """Arrays and labels as bytes, with the types and shapes of the arrays."""
    arrays, labels = content
    held = {name: np.ascontiguousarray(tensor.numpy()) for name, tensor in arrays.items()}
    described = {name: (str(array.dtype), list(array.shape)) for name, array in held.items()}
    blobs: dict[str, Any] = {
        name: array.reshape(-1).view(np.uint8).data for name, array in held.items()
    }
    texts = {_ARRAYS: described, _LABELS: labels}
    return blobs | {name: as_text(text).encode() for name, text in texts.items()}


def insert_names(database: Database, version: int, changed: Mapping[str, str | None]) -> None:
    """Write names that changed, None for those that are gone, in rows of a bounded size."""
    for piece in _pieces(changed):
        database.insert("names", version=version, names=as_text(piece))
    if changed:
        database.change_config(names=database.count("names"))


def _pieces(names: Mapping[str, str | None]) -> Iterator[dict[str, str | None]]:
    piece: dict[str, str | None] = {}
    length = 0
    for label, name in names.items():
        piece[label] = name
        length += len(label) + len(name or "")
        if length >= _NAMES:
            yield piece
            piece, length = {}, 0
    if piece:
        yield piece


def changed_names(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str | None]:
    """Names that are other than before; None for those that are no longer there."""
    changed = {label: name for label, name in now.items() if before.get(label) != name}
    return {**changed, **dict.fromkeys(before.keys() - now.keys())}


def digest_of(content: Content) -> str:
    """Checksum of arrays and labels."""
    return _digest(_blobs(content))


def _digest(blobs: Mapping[str, Any]) -> str:
    digest = hashlib.sha256()
    for name in sorted(blobs):
        digest.update(f"{name} {len(blobs[name])} ".encode())
        digest.update(blobs[name])
    return digest.hexdigest()


def _version(row: dict[str, Any], damaged: Damaged) -> Version:
    """A version of its row; what was measured after it is parsed when somebody looks."""
    try:
        content, report = parsed(row.pop("content")), parsed(row.pop("report"))
        tests, results = row.pop("tests"), row.pop("results")
        return Version(
            **row,
            **content,
            **report,
            tests=[] if tests == "[]" else ListLater(tests, damaged),
            results=None if results is None else DictLater(results, damaged),
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"version {row.get('number')}: {error}") from error


def _array(about: Any, data: bytearray) -> Tensor:
    dtype, shape = about
    if dtype not in _DTYPES or math.prod(shape) * np.dtype(dtype).itemsize != len(data):
        raise ValueError(f"an array of {shape} {dtype} where there are {len(data)} bytes")
    return torch.from_numpy(np.frombuffer(data, dtype).reshape(shape))

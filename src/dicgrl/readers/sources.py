"""One interface for folders on disk and folders inside archives, so that readers support both."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import re
import sys
import tarfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, BinaryIO, cast

from typing_extensions import override

from dicgrl.errors import DataError, UserError, shown
from dicgrl.readers.bounds import BoundedStream, most_unpacked
from dicgrl.readers.reading import Reading, as_reading

_DIGITS = 18  # of the number of a part
_MEMBERS = 100_000  # of an archive
_LISTED = 20  # names in a message
ARCHIVE_ENDINGS = (".tar.gz", ".tgz", ".tar.xz", ".tar")
_DAMAGED = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, tarfile.TarError)
#: What `tarfile` itself stumbles over in headers that no program writes.
_MISREAD = (ValueError, OverflowError, RecursionError, IndexError, KeyError)
_COMPRESSIONS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file on disk, in an archive or from a server; reading decompresses it.

    Attributes:
        label: Name of the file in messages.
        opener: Opens the file as it is stored, which may be compressed.
        reading: The user's description of the file.
        reader: The format to use, if the source is not a file.
        path: The path, if the file is on disk.
        is_answer: Whether a server sends it; if it is malformed, this is the server's failure and
            not a mistake of the user.
        may_lack: Whether a field of a triple may be empty, as in questions.
    """

    label: str
    opener: Callable[[], BinaryIO]
    reading: Reading = field(default_factory=Reading)
    reader: object = None
    path: Path | None = None
    is_answer: bool = False
    may_lack: bool = False

    @classmethod
    def on_disk(cls, path: Path, reading: Reading | None = None) -> SourceFile:
        """A file of the file system."""
        return cls(str(path), lambda: path.open("rb"), as_reading(reading), path=path)

    @property
    def name(self) -> str:
        """Its name in its folder."""
        return PurePath(self.label).name

    @property
    def ending(self) -> str:
        """The file's kind: its last suffix in lower case, `.gz` left out."""
        return PurePosixPath(self.label.lower().removesuffix(".gz")).suffix

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open for reading; a compression that is damaged or unpacks to too much is refused.

        Raises:
            DataError: It is, or the file cannot be read.
        """
        try:
            with self.opener() as raw:
                if self.label.lower().endswith(".gz"):
                    with gzip.open(raw) as stream:
                        yield _bounded(stream, self.label)
                else:
                    yield raw
        except _DAMAGED as error:
            raise DataError(self.label, f"damaged compressed file ({error})") from error
        except MemoryError as error:
            raise DataError(self.label, "takes more memory than there is") from error
        except OSError as error:
            raise DataError(self.label, f"cannot be read ({error.strerror or error})") from error

    def read(self) -> bytes:
        """The whole content, which may be as large as what is unpacked."""
        with self.open() as stream:
            return _bounded(stream, self.label).read()


class Folder(ABC):
    """A folder of files.

    Attributes:
        label: How messages call it.
    """

    label: str

    @abstractmethod
    def names(self) -> list[str]:
        """Names of the files and folders directly inside, sorted."""

    @abstractmethod
    def file(self, name: str) -> SourceFile | None:
        """The file of that name, or of that name with `.gz`; None where there is neither.

        Where none has it in these letters, capitals do not count: `1.TSV` is `1.tsv`.
        """

    @abstractmethod
    def folder(self, name: str) -> Folder | None:
        """The folder of that name."""


class DiskFolder(Folder):
    """A folder of the file system.

    Args:
        path: Where it lies.
        reading: How its files are to be read.
    """

    def __init__(self, path: Path, reading: Reading | None = None) -> None:
        self.path = path
        self.label = str(path)
        self.reading = as_reading(reading)

    @override
    def names(self) -> list[str]:
        return sorted(entry.name for entry in self.path.iterdir())

    @override
    def file(self, name: str) -> SourceFile | None:
        for candidate in _candidates(name, self):
            place = self.path / candidate
            if place.is_file():
                return SourceFile.on_disk(place, self.reading)
            if place.exists() and not place.is_dir():
                raise _no_file(place)
        return None

    @override
    def folder(self, name: str) -> Folder | None:
        child = self.path / name
        return DiskFolder(child, self.reading) if child.is_dir() else None


class ArchiveFolder(Folder):
    """A folder inside a tar archive, held in memory; nothing is unpacked to disk.

    Args:
        label: Name of the folder in messages.
        members: Contents of its files, by path relative to this folder.
        reading: The user's description of its files.
    """

    def __init__(
        self, label: str, members: dict[str, bytes], reading: Reading | None = None
    ) -> None:
        self.label = label
        self.reading = as_reading(reading)
        self._members = members

    @classmethod
    def open(cls, path: Path, reading: Reading | None = None) -> Folder:
        """Read an archive; its only top-level folder, where there is just one, is the folder."""
        try:
            with path.open("rb") as raw, _unpacked(raw) as stream:
                members = _members(_bounded(stream, str(path)), path)
        except (*_DAMAGED, *_MISREAD, OSError) as error:
            raise DataError(path, f"damaged archive ({error})") from error
        except MemoryError as error:
            raise DataError(path, "takes more memory than there is") from error
        root: Folder = cls(str(path), members, reading)
        names = root.names()
        inner = root.folder(names[0]) if len(names) == 1 else None
        return inner or root

    @override
    def names(self) -> list[str]:
        return sorted({name.split("/", 1)[0] for name in self._members})

    @override
    def file(self, name: str) -> SourceFile | None:
        for candidate in _candidates(name, self):
            if candidate in self._members:
                content = partial(io.BytesIO, self._members[candidate])
                return SourceFile(f"{self.label}/{candidate}", content, self.reading)
        return None

    @override
    def folder(self, name: str) -> Folder | None:
        prefix = f"{name}/"
        inside = {
            k.removeprefix(prefix): v for k, v in self._members.items() if k.startswith(prefix)
        }
        return ArchiveFolder(f"{self.label}/{name}", inside, self.reading) if inside else None


def _bounded(stream: Any, label: str) -> BinaryIO:
    return cast(BinaryIO, BoundedStream(stream, label, most_unpacked()))


def _unpacked(raw: BinaryIO) -> Any:
    """What a compressed stream holds, by its first bytes; the stream itself where it is not."""
    first = raw.read(6)
    raw.seek(0)
    found = (opener for magic, opener in _COMPRESSIONS.items() if first.startswith(magic))
    opener = next(found, contextlib.nullcontext)
    return opener(raw)


def _members(stream: BinaryIO, path: Path) -> dict[str, bytes]:
    """Contents of the files in an archive by their paths; links and devices are left out."""
    members: dict[str, bytes] = {}
    end = 0
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        for number, member in enumerate(archive):
            if number == _MEMBERS:  # each takes memory, were it as empty as can be
                raise DataError(path, f"holds more than {_MEMBERS:,} files")
            if archive.offset <= end:  # sizes below zero lead to the same place for ever
                raise tarfile.ReadError("it leads back to where it was")
            end = archive.offset
            if member.issparse():
                raise DataError(path, f"{shown(member.name)} is a sparse file; pack a plain one")
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                members[member.name.removeprefix("./")] = content.read()
        _check_end(archive)
    return members


def _candidates(name: str, folder: Folder) -> Iterator[str]:
    """What a file may be called, best first."""
    yield from (name, f"{name}.gz")
    for wanted in (name.lower(), f"{name.lower()}.gz"):
        yield from (entry for entry in folder.names() if entry.lower() == wanted)


def _check_end(archive: tarfile.TarFile) -> None:
    """Tell an archive that ends from one that breaks off, which `tarfile` reads without a word."""
    stream = archive.fileobj
    if stream is None:
        return
    stream.seek(archive.offset)
    if stream.read(tarfile.BLOCKSIZE) != tarfile.NUL * tarfile.BLOCKSIZE:
        raise tarfile.ReadError("it breaks off early")
    while stream.read(1 << 20):  # a checksum of the compression stands at its end
        pass


def open_file(path: Path, reading: Reading | None = None) -> SourceFile:
    """A file by its path: on disk, a pipe, or `-` for standard input; these are read once, now.

    Raises:
        UserError: There is no file.
    """
    if str(path) == "-":
        return _held("standard input", sys.stdin.buffer, reading)
    if path.is_dir():
        raise UserError(f"{path}: is a folder; expected a file")
    if not path.exists():
        raise UserError(f"{path}: no such file")
    if path.is_file():
        return SourceFile.on_disk(path, reading)
    if not path.is_fifo():
        raise _no_file(path)
    # A pipe. Where nobody writes to it, it is empty: to open it otherwise would wait for ever.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    with open(handle, "rb") as pipe:
        return _held(str(path), pipe, reading)


def _held(label: str, stream: BinaryIO, reading: Reading | None) -> SourceFile:
    """What can be read only once, in memory."""
    content = BoundedStream(stream, label, most_unpacked()).read()
    return SourceFile(label, partial(io.BytesIO, content), as_reading(reading))


def open_folder(path: Path, reading: Reading | None = None) -> Folder:
    """The folder at a path, be it a directory or an archive."""
    if path.is_dir():
        return DiskFolder(path, reading)
    if path.is_file() and path.name.lower().endswith(ARCHIVE_ENDINGS):
        return ArchiveFolder.open(path, reading)
    if path.exists() and not path.is_file():
        raise _no_file(path)
    raise UserError(f"{path}: no such file, folder or archive")


def _no_file(path: Path) -> UserError:
    return UserError(f"{path}: is a device or a pipe; expected a file")


def part_folders(folder: Folder) -> dict[int, str]:
    """Sub-folders whose name is a number."""
    return by_number(folder, re.compile(r"([0-9]+)"))


def by_number(folder: Folder, pattern: re.Pattern[str]) -> dict[int, str]:
    """Names by the number in them, which is the pattern's first group.

    Raises:
        DataError: Two names have the same number.
    """
    found: dict[int, str] = {}
    for name in folder.names():
        match = pattern.fullmatch(name)
        if not match:
            continue
        if len(match[1]) > _DIGITS:
            raise DataError(folder.label, f"{shown(name)} has too large a number for a part")
        if found.setdefault(int(match[1]), name) != name:
            raise DataError(
                folder.label, f"{found[int(match[1])]} and {name} are both part {match[1]}"
            )
    return found


def numbered(folder: Folder, names: dict[int, str], what: str) -> list[str]:
    """Names by number, which must be 0, 1, 2, ... without a gap."""
    ordered = sorted(names)
    missing = next((place for place, number in enumerate(ordered) if place != number), None)
    if missing is not None:
        found = ", ".join(names[number] for number in ordered[:_LISTED])
        found += ", ..." if len(ordered) > _LISTED else ""
        raise DataError(
            folder.label, f"{what} {missing} is missing; found {found} (counted from 0)"
        )
    return [names[number] for number in ordered]

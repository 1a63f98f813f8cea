"""Folders on disk and inside archives behind one face, so that every reader serves both."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import re
import sys
import tarfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import BinaryIO, cast

from typing_extensions import override

from dicgrl.errors import DataError, UserError
from dicgrl.readers.reading import Reading

ARCHIVE_ENDINGS = (".tar.gz", ".tgz", ".tar.xz", ".tar")
_DAMAGED = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, tarfile.TarError)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read, decompressed, wherever it lies.

    Attributes:
        label: How messages call it.
        opener: Opens it for reading as it is stored.
        reading: How it is to be read, where it does not say so itself.
    """

    label: str
    opener: Callable[[], BinaryIO]
    reading: Reading = field(default_factory=Reading)

    @classmethod
    def on_disk(cls, path: Path, reading: Reading | None = None) -> SourceFile:
        """A file of the file system."""
        return cls(str(path), lambda: path.open("rb"), reading or Reading())

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
        """Open for reading; a damaged compression is a `DataError`."""
        try:
            with self.opener() as raw:
                if self.label.lower().endswith(".gz"):
                    with gzip.open(raw) as stream:
                        yield cast(BinaryIO, stream)
                else:
                    yield raw
        except _DAMAGED as error:
            raise DataError(self.label, f"damaged compressed file ({error})") from error
        except OSError as error:
            raise DataError(self.label, f"cannot be read ({error.strerror or error})") from error

    def read(self) -> bytes:
        """The whole content."""
        with self.open() as stream:
            return stream.read()


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
        self.reading = reading or Reading()

    @override
    def names(self) -> list[str]:
        return sorted(entry.name for entry in self.path.iterdir())

    @override
    def file(self, name: str) -> SourceFile | None:
        for candidate in _candidates(name, self):
            if (self.path / candidate).is_file():
                return SourceFile.on_disk(self.path / candidate, self.reading)
        return None

    @override
    def folder(self, name: str) -> Folder | None:
        child = self.path / name
        return DiskFolder(child, self.reading) if child.is_dir() else None


class ArchiveFolder(Folder):
    """A folder inside a tar archive, held in memory; nothing is unpacked to disk.

    Args:
        label: How messages call it.
        members: Contents by path relative to this folder.
        reading: How its files are to be read.
    """

    def __init__(
        self, label: str, members: dict[str, bytes], reading: Reading | None = None
    ) -> None:
        self.label = label
        self.reading = reading or Reading()
        self._members = members

    @classmethod
    def open(cls, path: Path, reading: Reading | None = None) -> Folder:
        """Read an archive; its only top-level folder, where there is just one, is the folder."""
        members: dict[str, bytes] = {}
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    content = archive.extractfile(member) if member.isfile() else None
                    if content is not None:
                        members[member.name.removeprefix("./")] = content.read()
                _check_end(archive)
        except (*_DAMAGED, OSError) as error:
            raise DataError(path, f"damaged archive ({error})") from error
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
        return _held("standard input", sys.stdin.buffer.read(), reading)
    if path.is_dir():
        raise UserError(f"{path}: is a folder; expected a file")
    if not path.exists():
        raise UserError(f"{path}: no such file")
    if path.is_file():
        return SourceFile.on_disk(path, reading)
    return _held(str(path), path.read_bytes(), reading)


def _held(label: str, content: bytes, reading: Reading | None) -> SourceFile:
    return SourceFile(label, partial(io.BytesIO, content), reading or Reading())


def open_folder(path: Path, reading: Reading | None = None) -> Folder:
    """The folder at a path, be it a directory or an archive."""
    if path.is_dir():
        return DiskFolder(path, reading)
    if path.is_file() and path.name.lower().endswith(ARCHIVE_ENDINGS):
        return ArchiveFolder.open(path, reading)
    raise UserError(f"{path}: no such file, folder or archive")


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
        if match and found.setdefault(int(match[1]), name) != name:
            raise DataError(
                folder.label, f"{found[int(match[1])]} and {name} are both part {match[1]}"
            )
    return found


def numbered(folder: Folder, names: dict[int, str], what: str) -> list[str]:
    """Names by number, which must be 0, 1, 2, ... without a gap."""
    missing = set(range(max(names, default=-1) + 1)) - set(names)
    if missing:
        found = ", ".join(names[number] for number in sorted(names))
        raise DataError(
            folder.label, f"{what} {min(missing)} is missing; found {found} (counted from 0)"
        )
    return [names[number] for number in sorted(names)]

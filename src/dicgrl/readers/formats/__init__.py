"""File formats for triples. Everything that reads triples supports all of them.

A format is found by the ending of a file, and yields its rows in blocks, so that large files need
little memory. To add a format, subclass `Format` and name its endings. Import optional libraries
only when they are used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from dicgrl.errors import DataError, unknown_name
from dicgrl.readers.reading import Reading
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import Rows

Triple = tuple[str, str, str]
OF_FORMATS = ("columns", "sep", "query", "literals")
TRIPLE = 3  # columns of a triple; the time is the next


class Format(ABC):
    """A format of files of triples.

    Attributes:
        endings: Endings of such files; the first is the format's name as well.
        may_hide_a_header: Whether a first line may be a header that is not recognised.
        heeds: What of a `Reading` such files are read by, of what only some formats are.
    """

    registry: ClassVar[dict[str, Format]] = {}
    endings: ClassVar[tuple[str, ...]]
    may_hide_a_header: ClassVar[bool] = False
    heeds: ClassVar[tuple[str, ...]] = ("columns",)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for ending in cls.endings:
            Format.registry[ending] = cls()

    @abstractmethod
    def rows(self, file: SourceFile, width: int, exact: bool) -> Iterator[Rows]:
        """Head, relation, tail and, of four, the time, in blocks of rows; a time may be empty.

        Args:
            file: The file; `file.reading` is what the user says of it.
            width: 3, or 4 with the time; 2 for head and tail, the ends of an edge.
            exact: Whether labels count as they are written, and a text has no header.

        Raises:
            DataError: The file is not of this format; the message says where.
        """

    @property
    def is_written(self) -> bool:
        """Whether the format can be written, too."""
        return type(self).write is not Format.write

    def says_times(self, file: SourceFile) -> bool:
        """Whether one of the columns holds times, according to the user or its name."""
        return len(file.reading.named) > TRIPLE

    def write(self, path: Path, triples: Iterable[Sequence[Triple]]) -> None:
        """Write triples, given in blocks, so that `rows` returns them in the same order."""
        raise NotImplementedError


def format_of(file: SourceFile) -> Format:
    """The format of a file: the user's choice, otherwise that of its ending, otherwise text.

    Raises:
        UserError: There is no such format, or it does not heed what the user says.
    """
    if isinstance(file.reader, Format):
        return file.reader
    if file.reading.format:
        found = format_named(file.reading.format)
    else:
        found = Format.registry.get(file.ending, Format.registry[".tsv"])
    usual = Reading()
    for name in OF_FORMATS:
        if name not in found.heeds and getattr(file.reading, name) != getattr(usual, name):
            raise DataError(file.label, f"--{name} does not apply to {found.endings[0]} files")
    return found


def has_format(file: SourceFile) -> bool:
    """Whether a file is of a known format, as the user or its ending says."""
    told = file.reader is not None or bool(file.reading.format)
    return told or file.ending in Format.registry


def format_named(name: str) -> Format:
    """Look up a format by name, such as csv.

    Raises:
        UserError: There is none.
    """
    ending = f".{name.lower().removeprefix('.')}"
    if ending not in Format.registry:
        raise unknown_name("format", name, [known.removeprefix(".") for known in Format.registry])
    return Format.registry[ending]

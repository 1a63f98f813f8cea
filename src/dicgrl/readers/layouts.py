"""Layouts: the ways in which a dataset can be spread over files. Each can recognise its own files.

`read_stream` asks one registered layout after the other whether it can read a path. Layouts for the
kind of data that was registered last are asked first, so that a plugin can take over files that
another layout would read. Within a kind, the order of registration counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import ClassVar, TypeVar

from typing_extensions import override

from dicgrl.common.registry import register
from dicgrl.errors import UserError
from dicgrl.graph import Graph, Stream
from dicgrl.graph.holdout import HoldOut
from dicgrl.readers.reading import Reading, as_reading
from dicgrl.readers.sources import Folder, SourceFile

#: What a user points to: a file, a list of files (one part each), a folder or an archive.
Source = SourceFile | tuple[SourceFile, ...] | Folder


class Layout(ABC):
    """A way in which data is stored in files.

    Attributes:
        name: A unique name.
        data: The kind of data, which is a heading in the list of layouts that users see.
        files: A line below that heading, which describes the files.
        heeds_reading: Whether what a user says of the files (`Reading`) has an effect.

    Example:
        A file of friends, `NAME TAB NAME`, is a knowledge graph of one relation:

        >>> from dicgrl.graph import KnowledgeStream
        >>> from dicgrl.readers.text import read_rows
        >>> class Friends(Layout):
        ...     name = "friends"
        ...     data = "friends (name TAB name)"
        ...     files = "one file .friends"
        ...
        ...     def reads(self, source, graph=None):
        ...         return isinstance(source, SourceFile) and source.ending == ".friends"
        ...
        ...     def read(self, source, name, hold_out, graph=None):
        ...         pairs = (pair for rows in read_rows(source, 2) for pair in zip(*rows.columns))
        ...         facts = [(one, "knows", other) for one, other in pairs]
        ...         return KnowledgeStream.from_labels(name, [facts], test=hold_out.test)
    """

    name: ClassVar[str]
    data: ClassVar[str]
    files: ClassVar[str]
    heeds_reading: ClassVar[bool] = True

    @abstractmethod
    def reads(self, source: Source, graph: Graph | None = None) -> bool:
        """Whether the data has this layout, by the names of its files.

        Args:
            source: Where the data lies.
            graph: The graph in which it arrives, if there is one.
        """

    @abstractmethod
    def read(
        self, source: Source, name: str, hold_out: HoldOut, graph: Graph | None = None
    ) -> Stream:
        """Read data that has this layout.

        Args:
            source: Where the data lies; `reads` said yes to it.
            name: What the stream is called in results.
            hold_out: Shares to hold out in parts that have no set for validation, or for testing.
            graph: The graph in which the data arrives, if there is one.

        Raises:
            DataError: The data is not what the layout says; the message names file, line and value.
        """

    def names_beside(self, paths: Sequence[Path], stream: Stream) -> Mapping[str, str]:  # noqa: ARG002
        """Readable names for the labels of a stream that was read from these paths.

        A folder, or an archive, has its names inside, and `read` has read them.
        """
        return stream.names


class FolderLayout(Layout):
    """A layout of a folder, which may be an archive."""

    @override
    def reads(self, source: Source, graph: Graph | None = None) -> bool:
        return isinstance(source, Folder) and self.fits(source, graph)

    @override
    def read(
        self, source: Source, name: str, hold_out: HoldOut, graph: Graph | None = None
    ) -> Stream:
        assert isinstance(source, Folder)
        return self.read_folder(source, name, hold_out, graph)

    @abstractmethod
    def fits(self, folder: Folder, graph: Graph | None) -> bool:
        """As `reads`, of a folder."""

    @abstractmethod
    def read_folder(
        self, folder: Folder, name: str, hold_out: HoldOut, graph: Graph | None
    ) -> Stream:
        """As `read`, of a folder."""


LayoutT = TypeVar("LayoutT", bound=type[Layout])
LAYOUTS: dict[str, type[Layout]] = {}


def register_layout(layout: LayoutT) -> LayoutT:
    """Make `read_stream` know a layout; a class decorator.

    Raises:
        UserError: Another module has registered a layout of this name.
    """
    register(LAYOUTS, "layout", layout.name, layout)
    return layout


def find_layout(source: Source, graph: Graph | None = None) -> Layout | None:
    """The layout that the data has; None if no layout fits."""
    kinds = reversed(_by_kind().values())
    layouts: Iterator[Layout] = (layout() for kind in kinds for layout in kind)
    return next((layout for layout in layouts if layout.reads(source, graph)), None)


def check_heeded(layout: Layout, label: str, reading: Reading | None) -> None:
    """Refuse what a user says of files that describe themselves.

    Raises:
        UserError: It would have no effect.
    """
    usual, said = Reading(), as_reading(reading)
    for each in fields(Reading):
        if not layout.heeds_reading and getattr(said, each.name) != getattr(usual, each.name):
            option = f"--{each.name.replace('_', '-')}"
            raise UserError(f"{label}: {option} does not apply to {layout.name}")


def list_layouts() -> str:
    """All layouts, for an error message."""
    lines = ["Expected one of:"]
    for data, layouts in _by_kind().items():
        lines += [f"  {data}:", *(f"    {layout.files}" for layout in layouts)]
    lines.append("Text files may be compressed (.gz), a folder may be an archive (.tar.gz).")
    return "\n".join(lines)


def _by_kind() -> dict[str, list[type[Layout]]]:
    kinds: dict[str, list[type[Layout]]] = {}
    for layout in LAYOUTS.values():
        kinds.setdefault(layout.data, []).append(layout)
    return kinds

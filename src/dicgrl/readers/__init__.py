"""Read streams from files: `read_stream` detects the layout of a path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from dicgrl.errors import UserError
from dicgrl.graph import Graph, KnowledgeStream, Part, Stream
from dicgrl.graph.frames import Frame
from dicgrl.graph.holdout import NOTHING, HoldOut, check_shares
from dicgrl.graph.labelled import Triples
from dicgrl.readers import (  # they register their layouts, in this order
    knowledge,
    network,
    network_edges,
)
from dicgrl.readers.facts import NetworkFacts
from dicgrl.readers.formats.columnar import Tree, is_tree
from dicgrl.readers.given import as_read
from dicgrl.readers.layouts import Layout, check_heeded, find_layout, list_layouts, register_layout
from dicgrl.readers.names_file import names_beside, read_names_file
from dicgrl.readers.reading import Reading, as_lines
from dicgrl.readers.remote import is_url, remote_file
from dicgrl.readers.sources import (
    ARCHIVE_ENDINGS,
    DiskFolder,
    Folder,
    SourceFile,
    open_file,
    open_folder,
)
from dicgrl.readers.triples import read_timed_triples
from dicgrl.readers.writer import write_stream

__all__ = [
    "Layout",
    "NetworkFacts",
    "Reading",
    "knowledge",
    "network",
    "network_edges",
    "read_part",
    "read_stream",
    "read_timed",
    "register_layout",
    "write_stream",
]


def read_stream(
    path: str | Path | Sequence[str | Path] | Triples,
    *,
    name: str | None = None,
    valid: float = 0.0,
    test: float = 0.0,
    seed: int = 0,
    labels: str | Path | None = None,
    reading: Reading | None = None,
) -> Stream:
    """Read a stream from a folder, an archive, a file, a list of files (one part each), or facts.

    Args:
        path: Where the data lies; the layouts are listed in docs/data.md. Or triples, as a list or
            a data frame: they are one part.
        name: What the stream is called in results; the folder's or file's name unless given.
        valid: Share to hold out for validation in parts that bring no such set.
        test: Share to hold out for testing likewise.
        seed: Seed of that division.
        labels: File of readable names (id TAB name), instead of `labels.tsv` beside the data.
        reading: How files of triples are to be read, where they do not say it themselves.

    Raises:
        DataError: The data is not what the layout says; the message names file, line and value.
        UserError: There is nothing at the path, or no layout fits.
    """
    check_shares(valid, test)
    hold_out = HoldOut(valid, test, seed)
    if labels is not None and not Path(labels).is_file():
        raise UserError(f"{labels}: no such file of readable names")
    stream: Stream
    layout: Layout | None
    if isinstance(path, str | Path):
        paths = [] if is_url(path) else [Path(path)]
        stream, layout = _read_path(path, name, hold_out, reading=reading)
    elif (files := _paths_in(given := _held(path))) is not None:
        paths = files
        stream, layout = _read_list(paths, name, hold_out, reading)
    else:
        read, paths, layout = [as_read(given, reading)], [], None
        called = name or "facts"
        stream = KnowledgeStream.from_labels(called, read, valid=valid, test=test, seed=seed)
    hold_out.warn_if_nothing(stream.name, stream)
    if labels is not None:
        return replace(stream, names=_names_in(labels))
    if layout is None or not paths:
        return stream
    return replace(stream, names=layout.names_beside(paths, stream))


def _held(given: Any) -> Any:
    """An iterator as a list, as it can only be read once; anything else as it is."""
    return list(given) if isinstance(given, Iterator) else given


def _paths_in(given: Any) -> list[Path] | None:
    """The paths in a list; None if it is a list or data frame of facts."""
    if Frame.of(given) is not None or not isinstance(given, Iterable):
        return None
    listed = list(given)
    return list(map(Path, listed)) if all(isinstance(p, str | Path) for p in listed) else None


def _names_in(labels: str | Path) -> Mapping[str, str]:
    return read_names_file(SourceFile.on_disk(Path(labels)))


def read_part(
    path: str | Path, graph: Graph | None = None, reading: Reading | None = None
) -> tuple[Part, Mapping[str, str]]:
    """Read the next part: data in any layout of `read_stream` with one part.

    Args:
        path: Where the data lies.
        graph: The graph that it arrives in, if there is one. In a network, nodes are listed when
            they are new, and edges may also name old ones.
        reading: As of `read_stream`.

    Returns:
        The part, and readable names beside it.

    Raises:
        DataError: As of `read_stream`; or a node is listed that the network knows.
        UserError: As of `read_stream`; or there is more than one part.
    """
    stream, layout = _read_path(path, graph=graph, reading=as_lines(path, reading))
    if len(stream) != 1:
        raise UserError(f"{path}: {len(stream)} parts; learn takes one at a time")
    beside = stream.names if is_url(path) else layout.names_beside([Path(path)], stream)
    return stream[0], beside


def _read_list(
    paths: Sequence[Path], name: str | None, hold_out: HoldOut, reading: Reading | None
) -> tuple[Stream, Layout]:
    for missing in (p for p in paths if not p.is_file()):
        raise UserError(f"{missing}: no such file")
    if not paths:
        raise UserError("no files given: a stream needs at least one part")
    files = tuple(SourceFile.on_disk(p, reading) for p in paths)
    layout = find_layout(files)
    if layout is None:
        raise UserError(f"{paths[0]}: no layout reads a list of such files. {list_layouts()}")
    return layout.read(files, name or _stem(paths[0].parent), hold_out), layout


def _read_path(
    place: str | Path,
    name: str | None = None,
    hold_out: HoldOut = NOTHING,
    graph: Graph | None = None,
    reading: Reading | None = None,
) -> tuple[Stream, Layout]:
    if not str(place).strip():  # such as a variable of a shell that is not set
        raise UserError("the path of the data is empty")
    if is_url(place):
        file = remote_file(str(place), reading)
        layout = find_layout(file, graph)
        assert layout is not None  # it says what it is
        host = re.sub(r"[^A-Za-z0-9.-]+", "-", str(place).split("://", 1)[1].split("@")[-1])
        is_path = file.reading.format == "sqlite"
        called = name or (_stem(Path(file.label)) if is_path else host.strip("-"))
        return layout.read(file, called, hold_out, graph), layout
    path = Path(place)
    packed = path.is_dir() or path.name.lower().endswith(ARCHIVE_ENDINGS)
    there = str(path) == "-" or (path.exists() and not packed)
    source: SourceFile | Folder = open_file(path, reading) if there else open_folder(path, reading)
    layout = find_layout(source, graph)
    if layout is not None:
        check_heeded(layout, str(path), reading)
        return layout.read(source, name or _stem(path), hold_out, graph), layout
    if isinstance(source, SourceFile):
        if str(path) == "-":
            raise UserError("standard input: say which format it has, as in --format tsv")
        raise UserError(
            f"{path}: the ending does not tell the format; give --format. {list_layouts()}"
        )
    listing = ", ".join(source.names()[:8]) or "nothing"
    raise UserError(f"{source.label}: not a stream; it holds {listing}. {list_layouts()}")


def read_timed(
    path: str | Path, *, name: str | None = None, reading: Reading | None = None
) -> tuple[KnowledgeStream, npt.NDArray[Any]]:
    """Read one file of triples, or a tree of Parquet files, with a column of times.

    Returns:
        A static graph and the times.
    """
    path = Path(path)
    if is_tree(path):
        file = Tree(DiskFolder(path, reading)).as_file()
    elif path.is_file():
        file = SourceFile.on_disk(path, reading)
    else:
        raise UserError(
            f"{path}: no such file; times are read from one file of triples, as its fourth column"
        )
    stream, times = read_timed_triples(file, name or _stem(path))
    return replace(stream, names={**stream.names, **names_beside([path], stream)}), times


def _stem(path: Path) -> str:
    """The name without its endings: `data/facts.tsv.gz` is `facts`."""
    name = path.resolve().name.split(".", 1)[0] or "stream"
    return os.fsencode(name).decode("utf-8", "replace")  # results and run folders are UTF-8

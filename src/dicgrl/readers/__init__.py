"""Reads streams from files: `read_stream` finds out which layout a path has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from dicgrl.errors import DataError, UserError
from dicgrl.graph import KnowledgeStream, NetworkGraph, Part, Stream
from dicgrl.graph.holdout import check_shares
from dicgrl.readers import knowledge, network, npz
from dicgrl.readers.facts import NetworkFacts
from dicgrl.readers.hold_out import NOTHING, SetAside
from dicgrl.readers.names_file import names_beside, read_names_file
from dicgrl.readers.sources import ARCHIVE_ENDINGS, Folder, SourceFile, open_folder
from dicgrl.readers.writer import write_stream

__all__ = ["NetworkFacts", "read_part", "read_stream", "read_timed", "write_stream"]

_LAYOUTS = """Expected one of:
  a knowledge graph (head TAB relation TAB tail):
    0/, 1/, ... each with train.txt, valid.txt, test.txt
    0.tsv, 1.tsv, ... (or .csv, .txt), one file per part
    train.txt, valid.txt, test.txt, one part
    one file .tsv, .csv or .txt, one part
  a network:
    features.txt, labels.txt and 0/, 1/, ... with edgelist.txt, train.txt, valid.txt, test.txt
    edges.csv and nodes.csv (columns node, class, part, split, and features)
    one file .npz (arrays edges, features, classes, ...)
Text files may be compressed (.gz), a folder may be an archive (.tar.gz)."""


def read_stream(
    path: str | Path | Sequence[str | Path],
    *,
    name: str | None = None,
    valid: float = 0.0,
    test: float = 0.0,
    seed: int = 0,
    labels: str | Path | None = None,
) -> Stream:
    """Read a stream from a folder, an archive, a file, or a list of files (one part each).

    Args:
        path: Where the data lies; the layouts are listed in docs/data.md.
        name: What the stream is called in results; the folder's or file's name unless given.
        valid: Share set aside for validation in parts that bring no such set.
        test: Share set aside for testing likewise.
        seed: Seed of that division.
        labels: File of readable names (id TAB name), instead of `labels.tsv` beside the data.

    Raises:
        DataError: The data is not what the layout says; the message names file, line and value.
        UserError: There is nothing at the path, or no layout fits.
    """
    check_shares(valid, test)
    aside = SetAside(valid, test, seed)
    if labels is not None and not Path(labels).is_file():
        raise UserError(f"{labels}: no such file of readable names")
    stream: Stream
    if isinstance(path, str | Path):
        paths = [Path(path)]
        stream = _read_path(paths[0], name, aside)
    else:
        paths = [Path(p) for p in path]
        stream = _read_list(paths, name, aside)
    if labels is not None:
        return replace(stream, names=read_names_file(SourceFile.on_disk(Path(labels))))
    return _named(stream, paths)


def read_part(
    path: str | Path, graph: NetworkGraph | None = None
) -> tuple[Part, Mapping[str, str]]:
    """Read what arrives next: data in any layout of `read_stream`, of one part.

    Args:
        path: Where the data lies.
        graph: The network that it arrives in, if it is one: nodes are listed when they are new, and
            edges may also name old ones.

    Returns:
        The part, and readable names beside it.

    Raises:
        DataError: As of `read_stream`; or a node is listed that the network knows.
        UserError: As of `read_stream`; or there is more than one part.
    """
    stream = _named(_read_path(Path(path), graph=graph), [Path(path)])
    if len(stream) != 1:
        raise UserError(f"{path}: {len(stream)} parts; learn takes one at a time")
    return stream[0], stream.names


def _named(stream: Stream, paths: Sequence[Path]) -> Stream:
    """A stream with the names beside its files; a folder, or archive, has its names inside."""
    single = all(p.is_file() and SourceFile.on_disk(p).ending in knowledge.ENDINGS for p in paths)
    if single and isinstance(stream, KnowledgeStream):
        return replace(stream, names=names_beside(paths, stream))
    return stream


def _read_list(paths: Sequence[Path], name: str | None, aside: SetAside) -> KnowledgeStream:
    for missing in (p for p in paths if not p.is_file()):
        raise UserError(f"{missing}: no such file")
    if not paths:
        raise UserError("no files given: a stream needs at least one part")
    files = [SourceFile.on_disk(p) for p in paths]
    return knowledge.read_files(files, name or _stem(paths[0].parent), aside)


def _read_path(
    path: Path,
    name: str | None = None,
    aside: SetAside = NOTHING,
    graph: NetworkGraph | None = None,
) -> Stream:
    name = name or _stem(path)
    if path.is_file() and not path.name.lower().endswith(ARCHIVE_ENDINGS):
        file = SourceFile.on_disk(path)
        if file.ending == ".npz":
            return npz.read_npz(file, name, aside, graph)
        if file.ending in knowledge.ENDINGS:
            return knowledge.read_files([file], name, aside)
        raise UserError(f"{path}: the ending tells no format. {_LAYOUTS}")
    return _read_folder(open_folder(path), name, aside, graph)


def _read_folder(folder: Folder, name: str, aside: SetAside, graph: NetworkGraph | None) -> Stream:
    if folder.file("features.txt") and folder.file("labels.txt"):
        return network.read_authors(folder, name, aside, graph)
    if folder.file("nodes.csv") or (graph is not None and folder.file("edges.csv")):
        return network.read_csv(folder, name, aside, graph)
    folders, files = knowledge.part_folders(folder), knowledge.part_files(folder)
    if folders and files:
        raise DataError(
            folder.label,
            f"{min(folders.items())[1]}/ and {min(files.items())[1]} are both called as parts; "
            "parts are all folders, or all files",
        )
    if folders:
        return knowledge.read_numbered_folders(folder, name, aside)
    if files:
        return knowledge.read_numbered_files(folder, name, aside)
    if knowledge.split_file(folder, "train"):
        return knowledge.read_folder(folder, name, aside)
    listing = ", ".join(folder.names()[:8]) or "nothing"
    raise UserError(f"{folder.label}: not a stream; it holds {listing}. {_LAYOUTS}")


def read_timed(
    path: str | Path, *, name: str | None = None
) -> tuple[KnowledgeStream, npt.NDArray[Any]]:
    """Read one file of triples with a time as fourth column: a static graph and the times."""
    path = Path(path)
    if not path.is_file():
        raise UserError(
            f"{path}: no such file; times are read from one file of triples, as its fourth column"
        )
    stream, times = knowledge.read_timed_triples(SourceFile.on_disk(path), name or _stem(path))
    return replace(stream, names=names_beside([path], stream)), times


def _stem(path: Path) -> str:
    """The name without its endings: `data/facts.tsv.gz` is `facts`."""
    name = path.resolve().name.split(".", 1)[0] or "stream"
    return os.fsencode(name).decode("utf-8", "replace")  # results and run folders are UTF-8

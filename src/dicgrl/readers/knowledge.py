"""Layouts of knowledge graphs: numbered folders, numbered files, one folder, single files.

- Numbered folders `0`, `1`, ...: each is a part, with the files `train`, `valid` and `test` in any
  `Format`, plain or `.gz`; valid and test are optional. In the layout of the paper's authors each
  folder also has `entity2id.txt` and `relation2id.txt`, which list everything that is known by
  then. Without them, an entity arrives when it is first mentioned.
- Numbered files `0.tsv`, `1.tsv`, ...: each is a part.
- A folder with `train`, `valid` and `test`, the form of most public graphs: one part.

Other files in these folders are handled by `readers/strays.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from typing_extensions import override

from dicgrl.errors import DataError, shown
from dicgrl.graph import (
    SPLITS,
    Graph,
    KnowledgeStream,
    KnowledgeStreamBuilder,
    Stream,
    Vocabulary,
)
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.holdout import HoldOut
from dicgrl.readers.formats import Format, has_format
from dicgrl.readers.formats.columnar import Tree, is_tree
from dicgrl.readers.layouts import FolderLayout, Layout, Source, register_layout
from dicgrl.readers.names_file import NAMES_FILE, names_beside, read_names
from dicgrl.readers.sources import DiskFolder, Folder, SourceFile, by_number, numbered, part_folders
from dicgrl.readers.strays import strays_beside_parts, strays_of_part, warn_of_strays
from dicgrl.readers.text import read_rows
from dicgrl.readers.times_file import TIMES, read_times
from dicgrl.readers.triples import read_facts

_DATA = "a knowledge graph (head TAB relation TAB tail)"


@register_layout
class NumberedFolders(FolderLayout):
    """Sub-folders `0`, `1`, ...; see the module's text for what they hold."""

    name = "numbered folders of triples"
    data = _DATA
    files = "0/, 1/, ... each with train.txt, valid.txt, test.txt"

    @override
    def fits(self, folder: Folder, graph: Graph | None) -> bool:
        return bool(part_folders(folder))

    @override
    def read_folder(
        self, folder: Folder, name: str, hold_out: HoldOut, graph: Graph | None
    ) -> KnowledgeStream:
        folders, files = part_folders(folder), part_files(folder)
        if files:
            raise DataError(
                folder.label,
                f"{min(folders.items())[1]}/ and {min(files.items())[1]} are both named "
                "like parts; parts must be all folders, or all files",
            )
        children = numbered(folder, folders, "sub-folder")
        strays = strays_beside_parts(folder, [*children, *_names_beside(folder)])
        parts = []
        for child in children:
            inner = folder.folder(child)
            if inner is None:
                raise DataError(f"{folder.label}/{child}", "the folder is empty")
            parts.append(_PartFiles.find(inner))
            strays += [f"{child}/{stray}" for stray in parts[-1].strays]
        return _read_parts(folder, parts, name, hold_out, strays)


@register_layout
class NumberedFiles(FolderLayout):
    """Files `0.tsv`, `1.tsv`, ... of a folder."""

    name = "numbered files of triples"
    data = _DATA
    files = "0.tsv, 1.tsv, ... (or of another format), one file per part"

    @override
    def fits(self, folder: Folder, graph: Graph | None) -> bool:
        return bool(part_files(folder))

    @override
    def read_folder(
        self, folder: Folder, name: str, hold_out: HoldOut, graph: Graph | None
    ) -> KnowledgeStream:
        children = numbered(folder, part_files(folder), "file")
        warn_of_strays(folder, strays_beside_parts(folder, [*children, *_names_beside(folder)]))
        files = [file for child in children if (file := folder.file(child))]
        stream = read_files(files, name, hold_out, graph)
        return replace(stream, names={**stream.names, **read_names(folder)})


@register_layout
class SplitFolder(FolderLayout):
    """A stream of one part from a folder that itself holds `train`, `valid` and `test`."""

    name = "sets of triples"
    data = _DATA
    files = "train.txt, valid.txt, test.txt, one part"

    @override
    def fits(self, folder: Folder, graph: Graph | None) -> bool:
        return split_file(folder, "train") is not None

    @override
    def read_folder(
        self, folder: Folder, name: str, hold_out: HoldOut, graph: Graph | None
    ) -> KnowledgeStream:
        part = _PartFiles.find(folder, _names_beside(folder))
        return _read_parts(folder, [part], name, hold_out, part.strays)


@register_layout
class PartitionedFolder(FolderLayout):
    """Parquet files in a tree of folders, as databases write them: one part.

    A folder `key=value` gives its files a column of that name.
    """

    name = "partitioned Parquet"
    data = _DATA
    files = "a tree of .parquet files, one part"

    @override
    def fits(self, folder: Folder, graph: Graph | None) -> bool:
        return isinstance(folder, DiskFolder) and is_tree(folder.path)

    @override
    def read_folder(
        self, folder: Folder, name: str, hold_out: HoldOut, graph: Graph | None
    ) -> KnowledgeStream:
        assert isinstance(folder, DiskFolder)
        stream = read_files([Tree(folder).as_file()], name, hold_out, graph)
        return replace(stream, names=read_names(folder))


@register_layout
class TripleFiles(Layout):
    """One file of triples, or a list of such files, whatever their endings: one part each."""

    name = "files of triples"
    data = _DATA
    files = "one file .tsv, .csv, .txt, .jsonl, .parquet, .arrow, .nt, .ttl, .rdf, .db, one part"

    @override
    def reads(self, source: Source, graph: Graph | None = None) -> bool:
        return isinstance(source, tuple) or (isinstance(source, SourceFile) and has_format(source))

    @override
    def read(
        self, source: Source, name: str, hold_out: HoldOut, graph: Graph | None = None
    ) -> KnowledgeStream:
        assert isinstance(source, tuple | SourceFile)
        files = source if isinstance(source, tuple) else (source,)
        return read_files(files, name, hold_out, graph)

    @override
    def names_beside(self, paths: Sequence[Path], stream: Stream) -> Mapping[str, str]:
        if all(SourceFile.on_disk(path).ending in Format.registry for path in paths):
            return {**stream.names, **names_beside(paths, stream)}
        return stream.names


def _read_parts(
    folder: Folder, parts: Sequence[_PartFiles], name: str, hold_out: HoldOut, strays: list[str]
) -> KnowledgeStream:
    warn_of_strays(folder, strays)
    hold_out.warn_if_unused(name, [("valid" in p.sets, "test" in p.sets) for p in parts])
    builder = KnowledgeStreamBuilder(name)
    for part in parts:
        _read_part(part, builder, hold_out)
    return builder.build(read_names(folder, strip=not any(part.exact for part in parts)))


def read_files(
    files: Sequence[SourceFile], name: str, hold_out: HoldOut, graph: Graph | None = None
) -> KnowledgeStream:
    """A stream from files of triples, one part each; `graph` is the one that they arrive in."""
    builder = KnowledgeStreamBuilder(name)
    for file in files:
        rows, times = read_facts(file, builder, graph=graph)
        generator = hold_out.generator(len(builder))
        builder.add_held_out(rows, hold_out.valid, hold_out.test, generator, times=times)
    return builder.build()


def part_files(folder: Folder) -> dict[int, str]:
    """Files `0.tsv`, `1.csv.gz`, ... by number."""
    endings = "|".join(ending.removeprefix(".") for ending in Format.registry)
    return by_number(folder, re.compile(rf"([0-9]+)\.(?:{endings})(?:\.gz)?", re.IGNORECASE))


def split_file(folder: Folder, split: str) -> SourceFile | None:
    """The file of one split inside a part's folder."""
    found = [file for ending in Format.registry if (file := folder.file(split + ending))]
    if len(found) > 1:
        raise DataError(folder.label, f"{' and '.join(file.label for file in found)} clash")
    return found[0] if found else None


def _names_beside(folder: Folder) -> list[str]:
    file = folder.file(NAMES_FILE)
    return [file.name] if file else []


@dataclass(frozen=True, slots=True)
class _PartFiles:
    """The files of a part that has a folder of its own.

    Attributes:
        entities: The list of all entities that are known with this part, if there is one.
        relations: The same for relations.
        sets: The files of train and, if they exist, valid and test.
        times: The times of the training triples, if there are any.
        strays: Names of files that are not read.
    """

    entities: SourceFile | None
    relations: SourceFile | None
    sets: dict[str, SourceFile]
    times: SourceFile | None
    strays: list[str]

    @classmethod
    def find(cls, folder: Folder, beside: Sequence[str] = ()) -> _PartFiles:
        """Find them; `beside` are names that somebody else reads."""
        ids = [folder.file(name) for name in ("entity2id.txt", "relation2id.txt")]
        sets = {split: file for split in SPLITS if (file := split_file(folder, split))}
        times = folder.file(f"{TIMES}.txt")
        read = [file.name for file in (*ids, *sets.values(), times) if file]
        strays = strays_of_part(folder, [*read, *beside], sets)
        if "train" not in sets:
            raise DataError(folder.label, "no train.txt (or .tsv, .csv, ..., with or without .gz)")
        return cls(ids[0], ids[1], sets, times, strays)

    @property
    def exact(self) -> bool:
        """Whether every label counts as it is written, as files of ids list it."""
        return self.entities is not None or self.relations is not None


def _read_part(part: _PartFiles, builder: KnowledgeStreamBuilder, hold_out: HoldOut) -> None:
    if part.entities:
        _add_ids(part.entities, builder.entities)
    if part.relations:
        _add_ids(part.relations, builder.relations)
    listed = (
        len(builder.entities) if part.entities else None,
        len(builder.relations) if part.relations else None,
    )
    rows = {split: np.empty((0, 3), np.int64) for split in SPLITS}
    times = {split: np.empty(0, np.int64) for split in SPLITS}
    for split, file in part.sets.items():
        # Beside files of ids there are no headers: `h r t` may then be a fact.
        rows[split], times[split] = read_facts(file, builder, exact=part.exact)
        _check_listed(file, rows[split], listed, builder)
    if part.times:
        times["train"] = read_times(part.times, len(rows["train"]))
    shares = hold_out.where_missing("valid" in part.sets, "test" in part.sets)
    builder.add_held_out(
        rows["train"],
        shares.valid,
        shares.test,
        shares.generator(len(builder)),
        held=(rows["valid"], rows["test"]),
        times=times["train"],
    )


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

"""Layouts of networks: the authors', CSV tables and NPZ files (see `readers/npz.py`).

- The authors' layout: `features.txt` (node, values), `labels.txt` (node, class) for the whole
  network and sub-folders `0`, `1`, ... with `edgelist.txt` and `train.txt`, `valid.txt`,
  `test.txt` (node, class).
- CSV: `edges.csv` (source, target) and `nodes.csv` with a header. Its columns `node`, `class`,
  `part` and `split` mean what they say (all but `node` may be left out, `class` may be empty); all
  other columns are features, and have a name. `features.npy` [n, F] may hold the features instead.

New nodes and edges for an existing network come in the same layouts: only new nodes are listed, and
edges may name old ones. Without new nodes, `nodes.csv` may be left out.
"""

from __future__ import annotations

import re
from itertools import chain

import numpy as np
from typing_extensions import override

from dicgrl.errors import DataError, shown
from dicgrl.graph import SPLITS, Graph, NetworkGraph, NetworkStream
from dicgrl.graph.arrays import BoolArray, FloatArray, IntArray, as_edges
from dicgrl.graph.holdout import HoldOut
from dicgrl.readers.arrays_file import load_arrays
from dicgrl.readers.layouts import FolderLayout, Layout, Source, register_layout
from dicgrl.readers.names_file import read_names
from dicgrl.readers.network_table import (
    NetworkTable,
    Positions,
    already_there,
    checked_table,
    natural_order,
    of_width,
    refuse_duplicates,
)
from dicgrl.readers.npz import as_features, read_npz
from dicgrl.readers.sources import Folder, SourceFile, numbered, part_folders
from dicgrl.readers.text import csv_rows, read_fields, read_matrix, read_rows

_DATA = "a network"
_UNNAMED = re.compile("unnamed: [0-9]+")  # what pandas calls a column that it read without a name


@register_layout
class AuthorsNetwork(FolderLayout):
    """The layout of the authors' release; see the module's text."""

    name = "authors' network"
    data = _DATA
    heeds_reading = False
    files = (
        "features.txt, labels.txt and 0/, 1/, ... with edgelist.txt, train.txt, valid.txt, test.txt"
    )

    @override
    def fits(self, folder: Folder, graph: Graph | None) -> bool:
        return bool(folder.file("features.txt") and folder.file("labels.txt"))

    @override
    def read_folder(
        self, folder: Folder, name: str, hold_out: HoldOut, graph: Graph | None
    ) -> NetworkStream:
        return read_authors(folder, name, hold_out, _network(graph))


@register_layout
class CsvNetwork(FolderLayout):
    """Tables of nodes and edges; see the module's text."""

    name = "tables of a network"
    data = _DATA
    heeds_reading = False
    files = "edges.csv and nodes.csv (columns node, class, part, split, and features)"

    @override
    def fits(self, folder: Folder, graph: Graph | None) -> bool:
        edges_alone = _network(graph) is not None and folder.file("edges.csv")
        return bool(folder.file("nodes.csv") or edges_alone)

    @override
    def read_folder(
        self, folder: Folder, name: str, hold_out: HoldOut, graph: Graph | None
    ) -> NetworkStream:
        return read_csv(folder, name, hold_out, _network(graph))


@register_layout
class NpzNetwork(Layout):
    """A file of arrays; see `readers/npz.py`."""

    name = "arrays of a network"
    data = _DATA
    heeds_reading = False
    files = "one file .npz (arrays edges, features, classes, ...)"

    @override
    def reads(self, source: Source, graph: Graph | None = None) -> bool:
        return isinstance(source, SourceFile) and source.ending == ".npz"

    @override
    def read(
        self, source: Source, name: str, hold_out: HoldOut, graph: Graph | None = None
    ) -> NetworkStream:
        assert isinstance(source, SourceFile)
        return read_npz(source, name, hold_out, _network(graph))


def _network(graph: Graph | None) -> NetworkGraph | None:
    """The network that data arrives in; None if there is none yet, or it is something else."""
    return graph if isinstance(graph, NetworkGraph) else None


def read_authors(
    folder: Folder,
    name: str,
    hold_out: HoldOut,
    graph: NetworkGraph | None,
) -> NetworkStream:
    """A network in the layout of the authors' release, in which every part has its sets."""
    hold_out.warn_if_unused(name, [(True, True)])
    source = folder.label + "/features.txt"
    nodes, features = read_matrix(_needed(folder, "features.txt"))
    refuse_duplicates(source, nodes, graph=graph)
    features = of_width(source, features, graph)
    positions = Positions(nodes, graph)
    classes = _read_classes(_needed(folder, "labels.txt"), positions)
    part = np.full(len(nodes), -1, dtype=np.int64)
    split = np.full(len(nodes), -1, dtype=np.int64)
    edges: list[list[int]] = []
    edge_part: list[int] = []
    for index, child in enumerate(numbered(folder, part_folders(folder), "sub-folder")):
        inner = folder.folder(child)
        if inner is None:
            raise DataError(f"{folder.label}/{child}", "the folder is empty")
        for number, set_name in enumerate(SPLITS):
            members = _read_set(_needed(inner, f"{set_name}.txt"), positions, classes, part >= 0)
            part[members], split[members] = index, number
        found = _read_edges(_needed(inner, "edgelist.txt"), positions, part < 0, index)
        edges += found
        edge_part += [index] * len(found)
    stays_out = np.flatnonzero(part < 0)
    if len(stays_out):
        raise DataError(
            folder.label, f"node {shown(nodes[stays_out[0]])} of features.txt arrives in no part"
        )
    table = NetworkTable(
        folder.label,
        nodes,
        as_edges(edges),
        features,
        classes,
        part,
        split,
        np.asarray(edge_part, dtype=np.int64),
        positions.old,
        read_names(folder),
    )
    return table.stream(name)


def _read_set(
    file: SourceFile, positions: Positions, classes: list[str], taken: BoolArray
) -> list[int]:
    """Positions of the nodes of a set, which are in no other and have the classes given here."""
    members: list[int] = []
    allowed = set(classes) - {""}
    for line, (label, cls) in read_fields(file, 2):
        at = _listed(file, line, label, positions)
        if taken[at]:
            raise DataError(file.label, f"duplicate node {shown(label)}", line)
        if cls not in allowed:
            raise DataError(
                file.label,
                f"unknown class {shown(cls)} of node {shown(label)}; labels.txt has "
                f"{', '.join(sorted(allowed, key=natural_order))}",
                line,
            )
        if cls != classes[at]:
            raise DataError(
                file.label,
                f"node {shown(label)} has class {shown(cls)} here and "
                f"{shown(classes[at])} in labels.txt",
                line,
            )
        taken[at] = True
        members.append(at)
    return members


def _read_edges(
    file: SourceFile, positions: Positions, absent: BoolArray, part: int
) -> list[list[int]]:
    """Positions of the ends of edges; nodes that are listed and still absent have none yet."""
    edges: list[list[int]] = []
    for line, ends in read_fields(file, 2):
        pair = positions.of(ends).tolist()
        for at, label in zip(pair, ends, strict=True):
            if at < 0:
                raise DataError(file.label, positions.unknown(label, "it has no features"), line)
            if at < len(absent) and absent[at]:
                raise DataError(
                    file.label,
                    f"unknown node {shown(label)}: it is in no train, valid or test set of "
                    f"parts 0 to {part}",
                    line,
                )
        edges.append(pair)
    return edges


def _needed(folder: Folder, name: str) -> SourceFile:
    file = folder.file(name)
    if file is None:
        raise DataError(folder.label, f"{name} (or {name}.gz) is missing")
    return file


def _listed(file: SourceFile, line: int, label: str, positions: Positions) -> int:
    at = positions.listed.get(label)
    if at is None:
        if positions.is_old(label):
            raise DataError(file.label, already_there(label), line)
        raise DataError(file.label, f"unknown node {shown(label)}: it has no features", line)
    return at


def _read_classes(file: SourceFile, positions: Positions) -> list[str]:
    classes = [""] * len(positions.listed)
    for line, (label, cls) in read_fields(file, 2):
        at = _listed(file, line, label, positions)
        if classes[at]:
            raise DataError(file.label, f"duplicate node {shown(label)}", line)
        classes[at] = cls
    return classes


def read_csv(
    folder: Folder,
    name: str,
    hold_out: HoldOut,
    graph: NetworkGraph | None,
) -> NetworkStream:
    """A network from `edges.csv` and `nodes.csv`; see the module's text."""
    if graph is not None and folder.file("nodes.csv") is None:
        return _read_edges_alone(folder, name, graph)
    file = _needed(folder, "nodes.csv")
    columns = node_columns(file)
    nodes = columns.pop("node")
    refuse_duplicates(file.label, nodes, first_line=2, graph=graph)
    count = len(nodes)
    classes = columns.pop("class", [""] * count)
    part = _integers(file, columns.pop("part", ["0"] * count), "part")
    split_names = columns.pop("split", None)
    split = _split_numbers(file, split_names) if split_names is not None else None
    separate = folder.file("features.npy")
    if separate and columns:
        raise DataError(
            file.label,
            f"features in columns ({', '.join(map(shown, list(columns)[:3]))}"
            f"{', ...' if len(columns) > 3 else ''}) and in features.npy; leave out one of the two",
            1,
        )
    if separate:
        features = as_features(separate.label, load_arrays(separate))
    else:
        features = feature_columns(file, columns, count)
    positions = Positions(nodes, graph)
    edges = _read_csv_edges(_needed(folder, "edges.csv"), positions)
    network = checked_table(
        file.label,
        nodes,
        edges,
        features,
        classes,
        part=part,
        split=split,
        hold_out=hold_out,
        positions=positions,
    )
    network.names = read_names(folder)
    return network.stream(name)


def node_columns(file: SourceFile) -> dict[str, list[str]]:
    """The columns of a table of nodes by their names, in small letters; one is `node`.

    Raises:
        DataError: It is no such table.
    """
    blocks = list(csv_rows(file))
    if not blocks:
        raise DataError(file.label, "the file is empty")
    table = [
        list(chain.from_iterable(column))
        for column in zip(*(b.columns for b in blocks), strict=True)
    ]
    header = [column[0].strip().lower() for column in table]
    for number, title in enumerate(header, start=1):
        if not title or _UNNAMED.fullmatch(title):
            raise DataError(
                file.label,
                f"column {number} of {len(header)} has no name; if pandas numbered the rows, "
                "write them with to_csv(..., index=False)",
                1,
            )
    columns = dict(zip(header, (column[1:] for column in table), strict=True))
    if "node" not in columns or len(columns) != len(header):
        raise DataError(
            file.label, f"expected a header with a column 'node', each once: {header}", 1
        )
    return columns


def feature_columns(file: SourceFile, columns: dict[str, list[str]], count: int) -> FloatArray:
    """Columns of numbers as features of so many nodes."""
    features = np.empty((count, len(columns)), dtype=np.float32)
    for i, (title, values) in enumerate(columns.items()):
        features[:, i] = _numbers(file, title, values)
    return features


def _read_edges_alone(folder: Folder, name: str, graph: NetworkGraph) -> NetworkStream:
    """A part with edges between old nodes only."""
    positions = Positions((), graph)
    edges = _read_csv_edges(_needed(folder, "edges.csv"), positions)
    features = np.empty((0, graph.num_features), dtype=np.float32)
    network = checked_table(folder.label, (), edges, features, (), positions=positions)
    return network.stream(name)


def _read_csv_edges(file: SourceFile, positions: Positions) -> IntArray:
    blocks: list[IntArray] = [as_edges(())]
    for rows in read_rows(file, 2):
        columns, first_line = rows.columns, rows.first_line
        if first_line == 1 and [column[0].lower() for column in columns] == ["source", "target"]:
            columns, first_line = [column[1:] for column in columns], 2
        ends = np.stack([positions.of(column) for column in columns], axis=1)
        unknown = np.argwhere(ends < 0)
        if len(unknown):
            row, column = unknown[0]
            raise DataError(
                file.label,
                positions.unknown(columns[column][row], "nodes.csv does not list it"),
                first_line + int(row),
            )
        blocks.append(ends)
    return np.concatenate(blocks)


def _numbers(file: SourceFile, title: str, values: list[str]) -> FloatArray:
    try:
        numbers = np.array(values, dtype=np.float32)
    except ValueError:
        for line, value in enumerate(values, start=2):
            try:
                float(value)
            except ValueError as error:
                raise DataError(
                    file.label, f"{title} is {shown(value)}; expected a number", line
                ) from error
        raise
    finite = np.isfinite(numbers)
    if not finite.all():
        at = int(np.argmin(finite))
        raise DataError(file.label, f"{title} is {shown(values[at])}; not finite", at + 2)
    return numbers


def _integers(file: SourceFile, values: list[str], title: str) -> IntArray:
    for line, value in enumerate(values, start=2):
        if not value.isdecimal():
            raise DataError(file.label, f"{title} is {shown(value)}; expected 0, 1, 2, ...", line)
        if len(value) > 18:
            raise DataError(file.label, f"{title} is {shown(value)}; too large", line)
    return np.array(values, dtype=np.int64)


def _split_numbers(file: SourceFile, values: list[str]) -> IntArray:
    numbers = {**{split: i for i, split in enumerate(SPLITS)}, "": -1}
    for line, value in enumerate(values, start=2):
        if value not in numbers:
            raise DataError(
                file.label, f"split is {shown(value)}; expected train, valid, test or nothing", line
            )
    return np.array([numbers[value] for value in values], dtype=np.int64)

"""Writes a stream so that `read_stream` gives the same stream back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import singledispatch
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dicgrl.common.atomic import new_folder, replacing_file
from dicgrl.errors import UserError, shown
from dicgrl.graph import SPLITS, KnowledgeStream, NetworkStream, Stream, Vocabulary
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.labels import FORBIDDEN
from dicgrl.graph.times import told
from dicgrl.readers.formats import Format, Triple, format_named
from dicgrl.readers.times_file import TIMES, UNKNOWN

_BLOCK = 1 << 16  # triples at a time
_PADDED = 1 << 20  # characters that a list may take because its labels differ in length


def write_stream(stream: Stream, path: str | Path, *, format: str = "txt") -> None:  # noqa: A002
    """Write a knowledge graph as a folder in the authors' layout, a network as an NPZ file.

    The target appears whole or not at all.

    Args:
        stream: The stream.
        path: Where to.
        format: Format of a knowledge graph's triples, such as parquet or nt (docs/data.md).

    Raises:
        UserError: The target exists already, has the wrong ending, or the layout cannot express the
            stream: a label or name that is empty or has a control character, a part without
            training triples, or of a network without nodes and edges.
    """
    path = Path(path)
    if path.exists():
        raise UserError(f"{path} exists already")
    if not format_named(format).is_written:
        raise UserError(f"{format}: this format is read, but not written")
    if format == "txt":
        write_to(stream, path)
        return
    if not isinstance(stream, KnowledgeStream):
        raise UserError("formats are of triples: a network is written as .npz")
    _write_knowledge(stream, path, format)


@singledispatch
def write_to(stream: Stream, path: Path) -> None:
    """Write a stream to a path where there is nothing; a kind of stream registers its own way.

    Example:
        `@write_to.register` above a function of the same arguments, whose first is annotated with
        the kind of stream.
    """
    raise UserError(f"{path}: there is no way to write a {type(stream).__name__}")


@write_to.register
def _write_knowledge(stream: KnowledgeStream, path: Path, ending: str = "txt") -> None:
    _check_knowledge(stream)
    written = format_named(ending)
    with new_folder(path) as folder:
        _write_folder(stream, folder, written, ending.lower().removeprefix("."))


@write_to.register
def _write_network(stream: NetworkStream, path: Path) -> None:
    if path.suffix != ".npz":
        raise UserError(f"{path}: a network is written as one file that ends in .npz")
    _check_network(stream)
    with replacing_file(path) as temporary:
        _write_npz(stream, temporary)


def _check_knowledge(stream: KnowledgeStream) -> None:
    for part in stream:
        if len(part.train) == 0:
            raise UserError(f"part {part.index} has no training triples, so it cannot be written")
    for kind, labels in (
        ("entity", stream.entities),
        ("relation", stream.relations),
        ("name", chain.from_iterable(stream.names.items())),
    ):
        for label in labels:
            if not label or label[0] == "\ufeff" or FORBIDDEN.search(label):
                raise UserError(
                    f"{kind} {shown(label)}: an empty label, or one with a control character or a "
                    "byte order mark, cannot be written"
                )


def _check_network(stream: NetworkStream) -> None:
    for part in stream:
        if len(part.new_nodes) + len(part.edges) == 0:
            raise UserError(f"part {part.index} has no nodes and no edges, so it cannot be written")
    last = stream[-1]
    for kind, labels in (
        ("node", last.nodes.labels(range(last.num_nodes))),
        ("class", last.classes.labels(range(last.num_classes))),
        ("name", chain.from_iterable(stream.names.items())),
    ):
        for label in labels:
            if not label or FORBIDDEN.search(label):
                raise UserError(
                    f"{kind} {shown(label)}: an empty label, or one with a control character, "
                    "cannot be written"
                )


def _write_folder(stream: KnowledgeStream, folder: Path, written: Format, ending: str) -> None:
    entities = np.array(list(stream.entities), dtype=object)
    relations = np.array(list(stream.relations), dtype=object)

    def blocks(rows: IntArray) -> Iterator[list[Triple]]:
        for first in range(0, len(rows), _BLOCK):
            heads, kinds, tails = rows[first : first + _BLOCK].T
            yield list(zip(entities[heads], relations[kinds], entities[tails], strict=True))

    for part in stream:
        inner = folder / str(part.index)
        inner.mkdir()
        _write_ids(inner / "entity2id.txt", part.entities, part.num_entities)
        _write_ids(inner / "relation2id.txt", part.relations, part.num_relations)
        for split in SPLITS:
            rows = getattr(part, split)
            if len(rows):
                written.write(inner / f"{split}.{ending}", blocks(rows))
        if len(part.times):
            _write_lines(inner / f"{TIMES}.txt", (told(m) or UNKNOWN for m in part.times.tolist()))
    if stream.names:
        _write_lines(folder / "labels.tsv", (f"{k}\t{v}" for k, v in stream.names.items()))


def _write_ids(path: Path, vocabulary: Vocabulary, count: int) -> None:
    labels = vocabulary.labels(range(count))
    _write_lines(path, (f"{label}\t{i}" for i, label in enumerate(labels)))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _write_npz(stream: NetworkStream, path: Path) -> None:
    merged = stream.merged()[0]
    split = np.full(merged.num_nodes, -1, dtype=np.int8)
    for number, name in enumerate(SPLITS):
        split[getattr(merged, name)] = number
    with path.open("wb") as file:
        np.savez_compressed(
            file,
            nodes=_texts(merged.nodes.labels(merged.new_nodes)),
            edges=merged.edges.astype(np.int32),
            features=merged.features,
            classes=merged.labels.astype(np.int32),
            class_names=_texts(merged.classes.labels(merged.new_classes)),
            part=np.repeat(np.arange(len(stream)), [len(part.new_nodes) for part in stream]),
            edge_part=np.repeat(np.arange(len(stream)), [len(part.edges) for part in stream]),
            split=split,
            readable_names=_texts(stream.names.values()),
            readable_names_of=_texts(stream.names),
        )


def _texts(labels: Iterable[str]) -> npt.NDArray[np.str_]:
    """A list as an array; as one text of lines where one long label would widen all the others."""
    labels = list(labels)
    padded = len(labels) * max(map(len, labels), default=0)
    lines = "\n".join(labels)
    return np.array(lines if padded > _PADDED + 2 * len(lines) else labels, dtype=np.str_)

"""What a file asks a learner: scores of triples, how well it finds them, answers to questions."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from dicgrl.errors import DataError, UnknownLabelError, UserError
from dicgrl.graph import NetworkGraph
from dicgrl.graph.arrays import IntArray
from dicgrl.learner import Learner, Prediction
from dicgrl.readers.knowledge import triple_rows
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import read_rows
from dicgrl.tasks import LinkTrainer

ASKED = "?"  # stands for what a question asks for
_ANSWERS = 1 << 17  # that are there at a time


@dataclass(frozen=True, slots=True)
class Lines:
    """Triples of a file.

    Attributes:
        fields: Head, relation and tail as they stand there.
        ids: What they mean to the learner, [n, 3].
        unknown: How many lines were left out because a label is unknown.
    """

    fields: list[tuple[str, str, str]]
    ids: IntArray
    unknown: int


def read_lines(learner: Learner, path: Path, *, skip: bool = False) -> Lines:
    """The triples of a file, `-` for standard input; a header is left out.

    Args:
        learner: Knows the labels.
        path: The file.
        skip: Leave out lines that name an unknown label, instead of refusing the file.

    Raises:
        DataError: A line is not a triple, or names an unknown label.
    """
    run = learner.run
    if not isinstance(run, LinkTrainer):
        raise UserError("this is about triples; the run classifies nodes")
    vocabularies = (run.graph.entities, run.graph.relations, run.graph.entities)
    fields: list[tuple[str, str, str]] = []
    ids, unknown = [], 0
    file = _source(path)
    for rows in triple_rows(file):
        for number, line in enumerate(zip(*rows.columns, strict=True)):
            try:
                meant = [
                    learner.label_id(text, vocabulary)
                    for text, vocabulary in zip(line, vocabularies, strict=True)
                ]
            except UserError as error:
                if skip and isinstance(error, UnknownLabelError):
                    unknown += 1
                    continue
                raise DataError(file.label, str(error), rows.first_line + number) from None
            ids.append(meant)
            fields.append(line)
    return Lines(fields, np.array(ids, dtype=np.int64).reshape(-1, 3), unknown)


def answered(
    learner: Learner,
    path: Path,
    k: int,
    *,
    new: bool = False,
    on_unknown: Callable[[], None] | None = None,
) -> Iterator[tuple[tuple[str, ...], list[Prediction]]]:
    """Questions of a file with their answers: many at a time, of a network all in one pass.

    A line of a knowledge graph has a head, a relation and a tail, one of which is `?`; a line of a
    network has a node.

    Args:
        learner: Answers.
        path: The file; `-` for standard input.
        k: How many answers to each.
        new: Leave out facts that are known.
        on_unknown: Told of each question about an unknown label, which is left out; without it the
            file is refused there.

    Raises:
        DataError: A line is no question, or names an unknown label.
    """
    file = _source(path)
    if not isinstance(learner.run, LinkTrainer):
        if new:
            raise UserError("a node has one class: there is no fact to leave out")
        nodes = _known_nodes(learner, file, on_unknown)
        answers = learner.predict_classes(nodes, k=k) if nodes else []
        yield from (((node,), found) for node, found in zip(nodes, answers, strict=True))
        return
    for rows in triple_rows(file):
        questions: list[tuple[str, str, str]] = []
        ids = []
        for number, line in enumerate(zip(*rows.columns, strict=True), rows.first_line):
            try:
                ids.append(learner.question_ids([None if x == ASKED else x for x in line]))
            except UserError as error:
                if on_unknown and isinstance(error, UnknownLabelError):
                    on_unknown()
                    continue
                raise DataError(file.label, str(error), number) from None
            questions.append(line)
        height = max(_ANSWERS // max(k, 1), 1)
        for start in range(0, len(ids), height):
            some = slice(start, start + height)
            answers = learner.answer_rows(np.array(ids[some], dtype=np.int64), k=k, new=new)
            yield from zip(questions[some], answers, strict=True)


def _known_nodes(
    learner: Learner, file: SourceFile, on_unknown: Callable[[], None] | None
) -> list[str]:
    graph = learner.run.graph
    assert isinstance(graph, NetworkGraph)
    found = []
    for rows in read_rows(file, 1):
        for number, node in enumerate(rows.columns[0], rows.first_line):
            try:
                learner.label_id(node, graph.nodes)
            except UserError as error:
                if on_unknown and isinstance(error, UnknownLabelError):
                    on_unknown()
                    continue
                raise DataError(file.label, str(error), number) from None
            found.append(node)
    return found


def _source(path: Path) -> SourceFile:
    if str(path) == "-":
        return SourceFile("standard input", lambda: io.BytesIO(sys.stdin.buffer.read()))
    if path.is_dir():
        raise UserError(f"{path}: is a folder; expected a file of triples")
    if not path.exists():
        raise UserError(f"{path}: no such file")
    if path.is_file():
        return SourceFile.on_disk(path)
    content = path.read_bytes()  # a pipe, which can be read only once
    return SourceFile(str(path), lambda: cast(BinaryIO, io.BytesIO(content)))


def scored(learner: Learner, lines: Lines) -> Iterator[str]:
    """Lines of triples with their scores, TAB between the fields."""
    for fields, score in zip(lines.fields, learner.score_rows(lines.ids), strict=True):
        yield "\t".join([*fields, f"{score:.6g}"])

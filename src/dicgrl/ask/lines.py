"""What a file asks a learner: scores of triples, how well it finds them, answers to questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dicgrl.ask.asking import Answered, Asking
from dicgrl.ask.links import LinkAsking
from dicgrl.errors import DataError, UnknownLabelError, UserError
from dicgrl.graph.arrays import IntArray
from dicgrl.readers.sources import open_file
from dicgrl.readers.triples import triple_rows


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


def read_lines(asking: LinkAsking, path: Path, *, skip: bool = False) -> Lines:
    """The triples of a file, `-` for standard input; a header is left out.

    Args:
        asking: Knows the labels.
        path: The file.
        skip: Leave out lines that name an unknown label, instead of refusing the file.

    Raises:
        DataError: A line is not a triple, or names an unknown label.
    """
    fields: list[tuple[str, str, str]] = []
    found, unknown = [], 0
    file = open_file(path)
    for rows in triple_rows(file):
        for number, line in enumerate(zip(*rows.columns, strict=True)):
            try:
                found.append(asking.ids([line])[0])
            except UserError as error:
                if skip and isinstance(error, UnknownLabelError):
                    unknown += 1
                    continue
                raise DataError(file.label, str(error), rows.first_line + number) from None
            fields.append(line)
    return Lines(fields, np.array(found, dtype=np.int64).reshape(-1, 3), unknown)


def answered(
    asking: Asking,
    path: Path,
    k: int,
    *,
    new: bool = False,
    on_unknown: Callable[[], None] | None = None,
) -> Iterator[Answered]:
    """Questions of a file with their answers: many at a time, of a network all in one pass.

    A line of a knowledge graph has a head, a relation and a tail, one of which is `?`; a line of a
    network has a node.

    Args:
        asking: Answers.
        path: The file; `-` for standard input.
        k: How many answers to each.
        new: Leave out facts that are known.
        on_unknown: Told of each question about an unknown label, which is left out; without it the
            file is refused there.

    Raises:
        DataError: A line is no question, or names an unknown label.
    """
    return asking.answer_lines(open_file(path), k, new, on_unknown)


def scored(asking: LinkAsking, lines: Lines) -> Iterator[str]:
    """Lines of triples with their scores, TAB between the fields."""
    for fields, score in zip(lines.fields, asking.score_rows(lines.ids), strict=True):
        yield "\t".join([*fields, f"{score:.6g}"])

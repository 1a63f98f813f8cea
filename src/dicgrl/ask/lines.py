"""Answers questions from a file: scores of triples, how well they are found, the best answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dicgrl.ask.asking import Answered, Asking
from dicgrl.ask.candidates import Among, says_where
from dicgrl.ask.given import Answers, ManyAnswers
from dicgrl.ask.links import ASKED_TEXT, LinkAsking
from dicgrl.ask.names import known_labels
from dicgrl.ask.probabilities import NO_PROBABILITIES
from dicgrl.errors import DataError, UnknownLabelError, UserError
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.labelled import Triples, as_columns
from dicgrl.readers.given import as_read
from dicgrl.readers.reading import Reading, as_lines
from dicgrl.readers.remote import is_url, remote_file
from dicgrl.readers.sources import SourceFile, open_file
from dicgrl.readers.text import Rows
from dicgrl.readers.triples import triple_rows


@dataclass(frozen=True, slots=True)
class Lines:
    """Triples of a file.

    Attributes:
        label: Name of the file in messages.
        fields: Head, relation and tail as they are written in the file.
        ids: Their ids in the learner's graph, [n, 3].
        unknown: How many lines were left out because a label is unknown.
    """

    label: str
    fields: list[tuple[str, str, str]]
    ids: IntArray
    unknown: int


def read_lines(
    asking: LinkAsking,
    given: str | Path | Triples,
    *,
    skip: bool = False,
    reading: Reading | None = None,
) -> Lines:
    """The triples of a file, `-` for standard input, a list or a frame; a header is left out.

    Args:
        asking: Knows the labels.
        given: The file, or the triples.
        skip: Leave out lines that name an unknown label, instead of refusing the file.
        reading: How the file is to be read, where it does not say so itself.

    Raises:
        DataError: A line is not a triple, or names an unknown label.
    """
    fields: list[tuple[str, str, str]] = []
    found, unknown = [], 0
    label, blocks = "triples", iter([Rows(1, _columns(given, reading))])
    if isinstance(given, str | Path):
        file = _opened(given, reading)
        label, blocks = file.label, triple_rows(file)
    for rows in blocks:
        for number, line in enumerate(zip(*rows.columns, strict=True)):
            try:
                found.append(asking.ids([line])[0])
            except UserError as error:
                if skip and isinstance(error, UnknownLabelError):
                    unknown += 1
                    continue
                raise DataError(label, str(error), rows.first_line + number) from None
            fields.append(line)
    return Lines(label, fields, np.array(found, dtype=np.int64).reshape(-1, 3), unknown)


def _opened(given: str | Path, reading: Reading | None) -> SourceFile:
    if is_url(given):
        return remote_file(str(given), reading)
    return open_file(Path(given), as_lines(given, reading))


def _columns(given: str | Path | Triples, reading: Reading | None) -> list[Sequence[str]]:
    return [] if isinstance(given, str | Path) else as_columns(as_read(given, reading))


def answered(
    asking: Asking,
    path: str | Path,
    k: int,
    *,
    new: bool = False,
    reading: Reading | None = None,
    on_unknown: Callable[[], None] | None = None,
) -> Iterator[Answered]:
    """Questions of a file with their answers: many at a time, of a network all in one pass.

    A line of a knowledge graph has a head, a relation and a tail, one of which is `?` or missing; a
    line of a network has a node.

    Args:
        asking: Answers.
        path: The file; `-` for standard input.
        k: How many answers to each.
        new: Leave out facts that are known.
        reading: How the file is to be read, where it does not say so itself.
        on_unknown: Told of each question about an unknown label, which is left out; without it the
            file is refused there.

    Raises:
        DataError: A line is no question, or names an unknown label.
    """
    file = replace(_opened(path, reading), may_lack=True)
    return asking.answer_lines(file, k, new, on_unknown)


def many_answers(
    asking: Asking,
    given: Any,
    k: int,
    *,
    new: bool = False,
    among: Among | Path | None = None,
    reading: Reading | None = None,
    skip: bool = False,
) -> ManyAnswers:
    """The answers to questions of a file, as `answered` reads it, a list or a frame.

    Args:
        asking: Answers.
        given: The file, or the questions, with None or `?` for what is asked for; nodes likewise.
        k: How many answers to each.
        new: Leave out facts that are known.
        among: As `Asking.among` takes it; or a file of labels.
        reading: How the file is to be read, where it does not say so itself.
        skip: Leave out questions that name an unknown label.
    """
    on_unknown = (lambda: None) if skip else None
    if among is not None:
        links = asking.for_links("among")
        asking = links.among(among_given(links, among, skip=skip))
    found = (
        answered(asking, given, k, new=new, reading=reading, on_unknown=on_unknown)
        if isinstance(given, str | Path)
        else asking.answer_given(as_read(given, reading), k, new, on_unknown)
    )
    return ManyAnswers(
        Answers(
            {
                name: None if text == ASKED_TEXT else text
                for name, text in zip(asking.fields, question, strict=True)
            },
            answers,
        )
        for question, answers in found
    )


def among_given(asking: LinkAsking, among: Among | Path, *, skip: bool = False) -> Among:
    """What `Asking.among` takes, of a file its labels.

    Args:
        asking: Knows the labels.
        among: The entities, a text that says where they were seen, or a file.
        skip: Leave out lines of the file that name an unknown label.
    """
    if isinstance(among, str | Path):
        return _among_text(asking, str(among), (lambda: None) if skip else None)
    return among


def choosing_among(
    asking: LinkAsking, text: str, on_unknown: Callable[[], None] | None
) -> LinkAsking:
    """Answers among what a text says: where entities were seen, or a file of their labels.

    Args:
        asking: Answers.
        text: As `Asking.among` takes it; or a file with a label or name in each line.
        on_unknown: Told of each line with an unknown label, which is left out; without it the file
            is refused there.

    Raises:
        UserError: It says nothing that is known, or leaves nothing to choose from.
    """
    return asking.among(_among_text(asking, text, on_unknown))


def _among_text(asking: LinkAsking, text: str, on_unknown: Callable[[], None] | None) -> Among:
    if says_where(text):
        return text
    if text != "-" and not Path(text).exists():
        wanted = "a file of labels, seen, heads:RELATION or tails:RELATION"
        raise UserError(f"--among {text}: no such file; expected {wanted}")
    return known_labels(open_file(Path(text)), asking.names, asking.graph.entities, on_unknown)


def scored(
    asking: LinkAsking, lines: Lines, *, probability: bool = False
) -> Iterator[tuple[Any, ...]]:
    """Triples with their scores: head, relation, tail, score, and probability where it is asked.

    Args:
        asking: Scores them.
        lines: The triples.
        probability: Add how likely each is as an answer to (head, relation, ?); all candidates are
            scored for it.

    Raises:
        UserError: There are no probabilities.
    """
    told: list[Sequence[Any]] = [asking.score_rows(lines.ids)]
    if probability:
        if asking.calibration is None:
            raise UserError(NO_PROBABILITIES)
        told.append(asking.probability_rows(lines.ids))
    for fields, *values in zip(lines.fields, *told, strict=True):
        yield (*fields, *values)

"""Scores of labelled triples in a file, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dicgrl.errors import DataError, UserError
from dicgrl.learner import Learner
from dicgrl.readers.files import SourceFile
from dicgrl.readers.knowledge import triple_rows
from dicgrl.tasks import LinkRun


def scored(learner: Learner, path: Path) -> Iterator[str]:
    """Lines of a file of triples with their scores, TAB between the fields; a header is left out.

    Raises:
        DataError: A line is not a triple, or names an unknown label; nothing is given before the
            whole file has been checked.
    """
    run = learner.run
    if not isinstance(run, LinkRun):
        raise UserError("score is about triples; this run classifies nodes")
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    file = SourceFile.on_disk(path)
    vocabularies = (run.graph.entities, run.graph.relations, run.graph.entities)
    lines: list[tuple[str, str, str]] = []
    ids = []
    for rows in triple_rows(file):
        for number, fields in enumerate(zip(*rows.columns, strict=True)):
            try:
                ids.append(
                    [
                        learner.label_id(text, vocabulary)
                        for text, vocabulary in zip(fields, vocabularies, strict=True)
                    ]
                )
            except UserError as error:
                raise DataError(file.label, str(error), rows.first_line + number) from None
            lines.append(fields)
    scores = learner.score_rows(np.array(ids, dtype=np.int64))
    for fields, score in zip(lines, scores, strict=True):
        yield "\t".join([*fields, f"{score:.6g}"])

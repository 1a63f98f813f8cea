"""Pairs of labels, given by a program or a file: edges, nodes and classes, old and new labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dicgrl.errors import UserError, shown
from dicgrl.graph.labels import as_label
from dicgrl.readers.reading import Reading
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import read_rows

_ENDINGS = (".tsv", ".txt", ".csv")


def read_pairs(file: SourceFile) -> list[tuple[str, str]]:
    """The lines of a file of two columns, in the form of `read_rows`.

    Raises:
        DataError: See `read_rows`.
    """
    return [pair for rows in read_rows(file, 2) for pair in zip(*rows.columns, strict=True)]


def as_pairs(given: Any, reading: Reading | None = None) -> list[tuple[str, str]] | None:
    """Pairs of labels from a list, an array or a text file; None where it is something else.

    Example:
        >>> as_pairs([("Alien", 1979)])
        [('Alien', '1979')]
    """
    if isinstance(given, str | Path):
        path = Path(given)
        is_text = path.is_file() and path.suffix.lower() in _ENDINGS
        return read_pairs(SourceFile.on_disk(path, reading)) if is_text else None
    if not isinstance(given, list | tuple | np.ndarray):
        return None
    found = []
    for number, pair in enumerate(given):
        labels = list(map(as_label, pair)) if isinstance(pair, list | tuple | np.ndarray) else []
        if len(labels) != 2:
            raise UserError(f"facts[{number}]: expected two labels, found {shown(str(pair))}")
        found.append((labels[0], labels[1]))
    return found

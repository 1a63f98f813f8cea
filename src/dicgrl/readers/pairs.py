"""Reads pairs of labels from a program or a file: edges, nodes with classes, old and new labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dicgrl.errors import UserError, shown
from dicgrl.graph.frames import frame_rows
from dicgrl.graph.labels import as_label
from dicgrl.readers.formats import has_format
from dicgrl.readers.given import as_read
from dicgrl.readers.reading import Reading, as_lines
from dicgrl.readers.remote import is_url, remote_file
from dicgrl.readers.sources import SourceFile, open_file
from dicgrl.readers.text import read_rows
from dicgrl.readers.triples import triple_rows


def read_pairs(file: SourceFile) -> list[tuple[str, str]]:
    """The lines of a file of two columns, in the form of `read_rows`.

    Raises:
        DataError: See `read_rows`.
    """
    return [pair for rows in read_rows(file, 2) for pair in zip(*rows.columns, strict=True)]


def as_pairs(given: Any, reading: Reading | None = None) -> list[tuple[str, str]] | None:
    """Pairs of labels from a list, an array, a frame or a file; None where it is something else.

    A path is of one file that is no `.npz`: folders and arrays are read by their layouts.

    Example:
        >>> as_pairs([("Alien", 1979)])
        [('Alien', '1979')]
    """
    if isinstance(given, str | Path):
        if is_url(given):
            return _pairs(remote_file(str(given), reading))
        path = Path(given)
        if not (str(path) == "-" or path.is_file()):
            return None
        if not has_format(SourceFile.on_disk(path, as_lines(path, reading))):
            return None
        return _pairs(open_file(path, as_lines(path, reading)))
    given = frame_rows(as_read(given, reading), 2)
    if not isinstance(given, list | tuple | np.ndarray):
        return None
    found = []
    for number, pair in enumerate(given):
        labels = list(map(as_label, pair)) if isinstance(pair, list | tuple | np.ndarray) else []
        if len(labels) != 2:
            raise UserError(f"facts[{number}]: expected two labels, found {shown(str(pair))}")
        found.append((labels[0], labels[1]))
    return found


def _pairs(file: SourceFile) -> list[tuple[str, str]]:
    return [pair for rows in triple_rows(file, 2) for pair in zip(*rows.columns, strict=True)]

"""Readable names for labels such as Freebase ids: a file `labels.tsv[.gz]`, id TAB name."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from dicgrl.errors import DataError, DataWarning
from dicgrl.graph import Stream
from dicgrl.readers.sources import Folder, SourceFile
from dicgrl.readers.text import read_rows

NAMES_FILE = "labels.tsv"


def read_names(folder: Folder, strip: bool = True) -> dict[str, str]:
    """The names stored with the data, if there are any; for `strip` see `read_rows`."""
    file = folder.file(NAMES_FILE)
    return read_names_file(file, strip) if file else {}


def names_beside(paths: Sequence[Path], stream: Stream) -> dict[str, str]:
    """The names beside single files that were read, which need not be about them.

    In a folder of many things `labels.tsv` may be anything: it counts where it names something of
    the stream, and a file that holds no names is no reason to refuse the stream.
    """
    folder = paths[0].parent
    found = [
        folder / name for name in (NAMES_FILE, f"{NAMES_FILE}.gz") if (folder / name).is_file()
    ]
    if not found or found[0] in paths or any(path.parent != folder for path in paths):
        return {}
    try:
        names = read_names_file(SourceFile.on_disk(found[0]))
    except DataError as error:
        why = f"read without the readable names beside it: {error}"
        warnings.warn(DataWarning(paths[0], why), stacklevel=2)
        return {}
    known = stream.vocabularies().values()
    return names if any(label in labels for labels in known for label in names) else {}


def read_names_file(file: SourceFile, strip: bool = True) -> dict[str, str]:
    """Names by label; if a label occurs twice, the first name counts."""
    names: dict[str, str] = {}
    for rows in read_rows(file, 2, strip=strip):
        for label, name in zip(*rows.columns, strict=True):
            names.setdefault(label, name)
    return names

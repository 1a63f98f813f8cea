"""Readable names for labels such as Freebase ids: a file `labels.tsv[.gz]`, id TAB name."""

from __future__ import annotations

from dicgrl.readers.files import Folder, SourceFile
from dicgrl.readers.text import read_rows

NAMES_FILE = "labels.tsv"


def read_names(folder: Folder, strip: bool = True) -> dict[str, str]:
    """The names beside the data, where there are any; for `strip` see `read_rows`."""
    file = folder.file(NAMES_FILE)
    return read_names_file(file, strip) if file else {}


def read_names_file(file: SourceFile, strip: bool = True) -> dict[str, str]:
    """Names by label; where a label stands twice, the first name counts."""
    names: dict[str, str] = {}
    for rows in read_rows(file, 2, strip=strip):
        for label, name in zip(*rows.columns, strict=True):
            names.setdefault(label, name)
    return names

"""Looks at files in a dataset's folder that no layout reads, in case they were meant to be read.

If a part were silently skipped, the results would be wrong and still look right. So a file that
looks like a part, or like a set (train, valid, test) that its part lacks, is refused. Other tables
cause a warning. Nothing is said of files for people (README, LICENSE, ...), hidden files, files of
ids (such as `train2id.txt`; the authors also have `entity2id.txt` beside the parts) and files with
other endings.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterable

from dicgrl.errors import DataError, DataWarning, shown
from dicgrl.graph import SPLITS
from dicgrl.readers.sources import Folder

_TABLE = re.compile(
    r"(.+)\.(?:txt|tsv|csv|jsonl|ndjson|parquet|arrow|feather|nt|nq|ttl)"
    r"(?:\.(?:gz|bz2|xz|zip|zst))?",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"\..*|(?:read.?me|licen[cs]e|copying|notice|authors|citation|change|requirements).*|.*2id",
    re.IGNORECASE,
)
# 2024-01-02, 1 (1), part2, but neither sha256 nor WN18
_NUMBERED = re.compile(
    r"(?:part|chunk|batch|step|snapshot|day|week|month|year|[dpt])?[-_ ]?[0-9][-_.: 0-9]*"
    r"(?:\([0-9]+\)|copy)?",
    re.IGNORECASE,
)
_OTHER_WORDS = {
    "dev": "valid",
    "val": "valid",
    "validation": "valid",
    "testing": "test",
    "training": "train",
    "text": None,  # a word of its own, though one letter from another
}
_SHOWN = 5


def strays_beside_parts(folder: Folder, read: Iterable[str]) -> list[str]:
    """Tables beside numbered parts that are not read.

    Args:
        folder: What holds the parts.
        read: Names that are read.

    Raises:
        DataError: One is called as if it were a part.
    """
    found = []
    for name in sorted(set(folder.names()) - set(read)):
        stem = _stem(folder, name)
        inner = None if name.startswith(".") else folder.folder(name)
        if _NUMBERED.fullmatch(stem or name) and (stem or (inner and _holds_train(inner))):
            raise DataError(
                folder.label,
                f"{shown(name)} looks like a part, but would not be read: parts are 0/, 1/, ... or "
                "0.tsv, 1.tsv, ... (.csv, .txt, .gz); rename it or move it away",
            )
        if stem:
            found.append(name)
    return found


def strays_of_part(folder: Folder, read: Iterable[str], sets: Iterable[str]) -> list[str]:
    """Tables in the folder of one part that are not read.

    Args:
        folder: The folder.
        read: Names that are read.
        sets: Which of train, valid and test are there.

    Raises:
        DataError: One is called almost as a set that is not there.
    """
    read = set(read)
    missing = set(SPLITS) - set(sets)
    found = []
    for name in sorted(set(folder.names()) - read):
        stem = _stem(folder, name)
        if not stem or name.removesuffix(".gz") in read:  # the same, compressed
            continue
        meant = _meant(stem.lower())
        if meant in missing:
            raise DataError(
                folder.label,
                f"{shown(name)} is not read; call it {meant}{name[len(stem) :]}, or move it away",
            )
        found.append(name)
    return found


def warn_of_strays(folder: Folder, names: list[str]) -> None:
    """Name what is not read, in one warning."""
    if names:
        some = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        warnings.warn(DataWarning(folder.label, f"not read: {some}"), stacklevel=2)


def _holds_train(folder: Folder) -> bool:
    return any(_stem(folder, name).lower() == "train" for name in folder.names())


def _stem(folder: Folder, name: str) -> str:
    """The name of a table without its ending; empty for folders and for what is no data."""
    table = _TABLE.fullmatch(name)
    if not table or _HARMLESS.fullmatch(table[1]) or folder.folder(name):
        return ""
    return table[1]


def _meant(stem: str) -> str | None:
    """The set that a name means: one in other words, or with a slip of the pen."""
    if stem in _OTHER_WORDS:
        return _OTHER_WORDS[stem]
    alike = [s for s in SPLITS if s[0] == stem[0] and abs(len(s) - len(stem)) <= 1]
    return next(iter(difflib.get_close_matches(stem, alike, n=1, cutoff=0.75)), None)

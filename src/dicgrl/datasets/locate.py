"""Where datasets lie: the folder `DICGRL_DATA`, then the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

from dicgrl.errors import UserError
from dicgrl.readers.sources import ARCHIVE_ENDINGS, SourceFile

DATA_VARIABLE = "DICGRL_DATA"
CACHE_VARIABLE = "DICGRL_CACHE"


def cache_folder() -> Path:
    """The user's cache: `DICGRL_CACHE`, or the place that the operating system keeps for it."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
    try:
        from platformdirs import user_cache_path
    except ImportError:  # a machine to compute on may have PyTorch and little else
        return Path.home() / ".cache" / "dicgrl"
    return user_cache_path("dicgrl", appauthor=False)


def find_dataset(name: str) -> Path | None:
    """The dataset's folder or archive; `DICGRL_DATA` counts before the cache."""
    for root in _roots():
        for candidate in (root / name, *(root / f"{name}{ending}" for ending in ARCHIVE_ENDINGS)):
            if candidate.exists():
                return candidate
    return None


def find_names(name: str) -> SourceFile | None:
    """A file of readable names beside the dataset: `NAME-labels.tsv`, plain or `.gz`."""
    for root in _roots():
        for candidate in (root / f"{name}-labels.tsv", root / f"{name}-labels.tsv.gz"):
            if candidate.is_file():
                return SourceFile.on_disk(candidate)
    return None


def _roots() -> list[Path]:
    roots = [cache_folder()]
    if chosen := os.environ.get(DATA_VARIABLE):
        data = Path(chosen)
        if not data.is_dir():
            raise UserError(f"{DATA_VARIABLE} is {chosen!r}, which is not a folder")
        roots.insert(0, data)
    return roots

"""Reads the JSON files of earlier releases, which contain a checksum and the run's identity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dicgrl.common.atomic import as_json
from dicgrl.errors import DataError
from dicgrl.store.damage import is_no_damage
from dicgrl.store.database import check_regular

FORMAT = "dicgrl-run-3"
BEFORE = "dicgrl-run-2"


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sum(path: Path, expected: object) -> None:
    """Refuse a file whose checksum is another.

    Raises:
        DataError: It is missing or damaged.
    """
    check_regular(path)
    if checksum(path) != expected:
        raise _other_checksum(path)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object of a run.

    Raises:
        DataError: It is missing or damaged.
    """
    check_regular(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        if is_no_damage(error):
            raise
        raise DataError(path, f"damaged ({error})") from error
    if not isinstance(content, dict):
        raise DataError(path, "damaged: expected a JSON object")
    return content


def read_sealed(path: Path, key: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Read a JSON object that carries its own checksum, byte for byte.

    Args:
        path: The file.
        key: Values that it must have, such as the identity of the run.

    Raises:
        DataError: It is missing, damaged, of another version or of another run.
    """
    content = read_json(path)
    if content.get("format") not in (FORMAT, BEFORE):
        raise DataError(path, f"not a run of this version (expected format {FORMAT!r})")
    content.pop("sha256", None)
    digest = hashlib.sha256(as_json(content).encode()).hexdigest()
    # Its text is made again: that tells white space and repeated keys apart, too.
    if path.read_bytes() != as_json(content | {"sha256": digest}).encode():
        raise _other_checksum(path)
    for name, value in (key or {}).items():
        if content.get(name) != value:
            raise DataError(path, f"of another run or part: {name} {content.get(name)}")
    return content


def _other_checksum(path: Path) -> DataError:
    return DataError(path, "damaged: its checksum is not the one that was written")

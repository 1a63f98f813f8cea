"""Files and folders that appear whole or not at all, and files that grow at the end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dicgrl.errors import UserError


@contextlib.contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Write to a temporary name; on success sync it and rename it to `path` in one step.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "note.txt"
        >>> with replacing_file(target) as temporary:
        ...     _ = temporary.write_text("whole")
        >>> target.read_text()
        'whole'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _hidden(path)
    temporary.touch(exist_ok=False)
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def as_json(content: Any) -> str:
    """The text of a JSON file."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def write_json(path: Path, content: Any) -> None:
    """Write JSON whole or not at all."""
    with replacing_file(path) as temporary:
        temporary.write_text(as_json(content), encoding="utf-8")


def append_to_file(path: Path, text: str) -> None:
    """Add text to the end of a file and sync it; a process that is killed may leave a piece."""
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a temporary folder; on success rename it to `path`, which must not exist yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _hidden(path)
    temporary.mkdir()
    try:
        yield temporary
        publish_folder(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def publish_folder(temporary: Path, path: Path) -> None:
    """Sync every file of a folder, then move the folder to its final name in one step."""
    for file in temporary.rglob("*"):
        if file.is_file():
            _sync(file)
    temporary.rename(path)
    _sync(path.parent)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed process left under temporary names in a folder."""
    for path in folder.glob(".*"):
        if not re.fullmatch(r"\..+\.[0-9a-f]{16}", path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _hidden(path: Path) -> Path:
    # Not by `tempfile`, whose files only their owner may read, whatever the user's umask says.
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


def _sync(path: Path) -> None:
    if os.name != "posix" and path.is_dir():
        return  # a directory cannot be opened for syncing there
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_place(folder: Path) -> None:
    """Refuse a path at which no folder can be made.

    Raises:
        UserError: There is a file, at the path or at a folder above it.
    """
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise UserError(f"{place}: is a file; expected a folder")

"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


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
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a temporary folder; on success rename it to `path`, which must not exist yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
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
    temporary.chmod(0o755)  # mkdtemp makes folders that only the owner can enter
    temporary.rename(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    if os.name != "posix" and path.is_dir():
        return  # a directory cannot be opened for syncing there
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

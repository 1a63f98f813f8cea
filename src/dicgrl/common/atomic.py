"""Files and folders that appear whole or not at all, and files that grow at the end."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dicgrl.errors import UserError

_LEFT = re.compile(r"\..+\.[0-9a-f]{16}(-wal|-shm|-journal)?")  # names of what is being written


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
    make_folder(path.parent)
    temporary = hidden_name(path)
    with written_as(temporary, path):
        temporary.touch(exist_ok=False)
        try:
            yield temporary
            sync(temporary)
            temporary.replace(path)
            sync(path.parent)
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
    """Fill a temporary folder; on success rename it to `path`, which must not exist yet.

    What killed processes left of the same folder is removed.
    """
    make_folder(path.parent)
    _remove_abandoned(path)
    temporary = hidden_name(path)
    with written_as(temporary, path):
        temporary.mkdir()
        try:
            yield temporary
            publish_folder(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, where they are not there, and sync their names."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in missing[::-1]:
        sync(each.parent)


def publish_folder(temporary: Path, path: Path) -> None:
    """Sync all that is in a folder, then move the folder to its final name in one step."""
    for each in (*temporary.rglob("*"), temporary):
        if each.is_file() or each.is_dir():
            sync(each)
    temporary.rename(path)
    sync(path.parent)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed process left under temporary names in a folder."""
    for path in folder.glob(".*"):
        if not _LEFT.fullmatch(path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _remove_abandoned(path: Path) -> None:
    """Remove temporary folders of a path whose processes are gone."""
    for place in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 16}"):
        if place.is_dir() and not _is_alive(int(place.name[-16:-8], 16)):
            shutil.rmtree(place, ignore_errors=True)


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        return True  # asking would end it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def hidden_name(path: Path) -> Path:
    """A name beside a path for what is being written, which `remove_leftovers` knows."""
    # Not by `tempfile`, whose files only their owner may read, whatever the user's umask says.
    return path.with_name(f".{path.name}.{os.getpid():08x}{secrets.token_hex(4)}")


@contextlib.contextmanager
def written_as(temporary: Path, path: Path) -> Iterator[None]:
    """Have errors about a temporary name, or what is below it, speak of the path that is meant.

    Example:
        >>> with written_as(Path(".note.txt.0a"), Path("note.txt")):
        ...     Path(".note.txt.0a").read_text()
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] No such file or directory: 'note.txt'
    """
    try:
        yield
    except OSError as error:
        if not isinstance(error.filename, str | bytes | os.PathLike):
            raise
        named = Path(os.fsdecode(error.filename))
        if not named.is_relative_to(temporary):
            raise
        meant = path / named.relative_to(temporary)
        raise OSError(error.errno, error.strerror, str(meant)) from error


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on disk."""
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

"""Folders that one process has to itself."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from dicgrl.errors import BusyError, UserError

if sys.platform != "win32":
    import fcntl


_HELD: set[tuple[Path, int]] = set()  # folders and the threads of this process that have them


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Have a folder to oneself among the processes that ask; it is made if it is not there.

    The system gives the lock back when the process ends, however it ends. Windows has no such lock:
    there, nothing keeps processes apart. A folder that was made and stays empty is removed again.
    A thread that has the folder may ask for it again.

    Raises:
        BusyError: Another process or thread has the folder.
    """
    mine = (folder.resolve(), threading.get_ident())
    if mine in _HELD:
        yield
        return
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UserError(f"{folder}: is a file; expected a folder") from None
    handle = _lock(folder)
    _HELD.add(mine)
    try:
        yield
    finally:
        _HELD.discard(mine)
        for place in made:
            with contextlib.suppress(OSError):  # there is something in it
                place.rmdir()
        if handle is not None:
            os.close(handle)


def _lock(folder: Path) -> int | None:
    """Lock the folder itself, so that no file of a lock is left by a process that was killed."""
    if sys.platform == "win32":
        return None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:  # whoever had made it left it empty and removed it
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise BusyError(
            f"{folder}: another process is writing here; wait until it has ended"
        ) from None
    except OSError:  # a file system without locks: as on Windows
        os.close(handle)
        return None
    return handle

"""Folders that one process has to itself."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from dicgrl.errors import BusyError, UserError

LOCK = ".lock"  # in the folder, while somebody has it
_NO_LOCKS = {errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}  # of a file system
_TRIES = 100


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Have a folder to oneself among the processes that ask; it is made if it is not there.

    The system releases the lock when the process ends, however it ends. A killed process leaves an
    empty file `.lock` behind, which is in nobody's way; the next lock removes it. A folder that was
    made here and stays empty is removed again. A thread that has the folder may ask for it again.

    Nothing keeps processes apart on a file system without locks, or in a folder that cannot be
    written to anyway.

    Raises:
        BusyError: Another process or thread has the folder.
        UserError: There is a file in place of the folder.
    """
    place = folder.resolve()
    # One object per folder with a state for each thread, so that a thread knows what it holds.
    lock = FileLock(place / LOCK, is_singleton=True)
    if lock.is_locked:
        yield
        return
    made = [each for each in (place, *place.parents) if not each.exists()]
    with contextlib.suppress(OSError):  # it may be removed at this moment
        if (place / LOCK).exists() and os.listdir(place) == [LOCK]:  # a killed process made it
            made = [place]
    if place.is_file():  # asked once: the folder may come and go
        raise UserError(f"{folder}: is a file; expected a folder")
    try:
        _acquire(lock, place)
    except Timeout:
        raise BusyError(
            f"{folder}: another process is writing here; wait until it has ended"
        ) from None
    try:
        yield
    finally:
        _release(lock, place)
        for each in made:
            with contextlib.suppress(OSError):  # there is something in it
                each.rmdir()


def _acquire(lock: BaseFileLock, place: Path) -> None:
    """Make the folder and lock it, if it can be locked at all."""
    try:
        for tries in range(_TRIES, 0, -1):
            try:
                place.mkdir(parents=True, exist_ok=True)
                lock.acquire(blocking=False)
                return
            except (FileExistsError, FileNotFoundError):
                # Whoever had made the folder left it empty and has just removed it.
                if tries == 1:
                    raise
    except Timeout:
        raise
    except PermissionError:
        if not place.is_dir() or os.access(place, os.W_OK):  # the lock there is another user's
            raise
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        (place / LOCK).unlink(missing_ok=True)


def _release(lock: BaseFileLock, place: Path) -> None:
    """Release the lock and remove its file, if it is held at all."""
    if not lock.is_locked:
        return
    # POSIX removes the file while it is held: later it may be that of another process. Whoever has
    # opened it meanwhile sees that it has lost its name (filelock looks). Windows removes no file
    # that is open, so that one which another process has taken stays.
    if os.name == "posix":
        (place / LOCK).unlink(missing_ok=True)
    lock.release()
    if os.name != "posix":
        with contextlib.suppress(OSError):
            (place / LOCK).unlink(missing_ok=True)

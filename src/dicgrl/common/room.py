"""Room for large arrays: memory, or files that are mapped where a folder is named for them.

A history that is larger than the memory of the host can be learned and asked nevertheless: with
`DICGRL_SPILL` naming a folder on a disk, large arrays of a graph (triples, indices, features) are
files there. What is used stays in memory as long as there is some to spare. A file has no name
from the start, so that nothing is left behind however a process ends.
"""

from __future__ import annotations

import math
import os
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import SetupError, shown

SPILL_VARIABLE = "DICGRL_SPILL"
_LEAST = 1 << 26  # bytes of an array that becomes a file


def spills(size: int, folder: str | None = None) -> bool:
    """Whether an array of so many bytes is a file, where `DICGRL_SPILL` names this folder.

    Args:
        size: Bytes of the array.
        folder: The folder; what the environment says unless given.

    Example:
        >>> spills(1000, "/tmp"), spills(1 << 30, "/tmp"), spills(1 << 30, "")
        (False, True, False)
    """
    return bool(os.environ.get(SPILL_VARIABLE) if folder is None else folder) and size >= _LEAST


def check_folder() -> None:
    """Refuse what `DICGRL_SPILL` names where that is no folder.

    Raises:
        SetupError: It is none.
    """
    folder = os.environ.get(SPILL_VARIABLE)
    if folder and not os.path.isdir(folder):
        raise SetupError(f"{SPILL_VARIABLE}={shown(folder)}: there is no such folder")


def room(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Room for numbers, to be written to.

    Raises:
        SetupError: `DICGRL_SPILL` is no folder that can be written to.
        OSError: The disk is full.

    Example:
        >>> room((2, 3), np.int32).shape
        (2, 3)
    """
    folder = os.environ.get(SPILL_VARIABLE, "")
    kind = np.dtype(dtype)
    size = kind.itemsize * (shape if isinstance(shape, int) else math.prod(shape))
    if not spills(size):
        check_folder()  # better now than when the graph has grown
        return np.empty(shape, kind)
    try:
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it is closed below
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise SetupError(
            f"{SPILL_VARIABLE}={shown(folder)}: large arrays cannot be written there "
            f"({error.strerror})"
        ) from error
    with file:
        if hasattr(os, "posix_fallocate"):  # else a full disk ends the process later, in a write
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
        return np.memmap(file, kind, "r+", shape=shape).view(np.ndarray)

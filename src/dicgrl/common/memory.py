"""How much memory this machine can still give, by what the system and its container say."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple


class Need(NamedTuple):
    """Memory that something needs.

    Attributes:
        bytes: How much, at least.
        setting: The settings that say so.
        instead: What would need less, for a message; empty where nothing would.
    """

    bytes: int
    setting: str
    instead: str = ""


#: What PyTorch says where there is no memory, or could never be enough; its class may be any.
_NO_MEMORY = ("out of memory", "allocate memory", "ALLOC_FAILED", "Storage size calculation")
_SYSTEM, _CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def is_shortage(error: BaseException) -> bool:
    """Whether an error says that there is no memory, which is the fault of no file.

    Example:
        >>> is_shortage(MemoryError()), is_shortage(RuntimeError("CUDA out of memory"))
        (True, True)
    """
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY)


def free_on_host() -> int | None:
    """Bytes that can still be had, swap included; None where nothing tells."""
    bounds: list[int] = []
    swap = 0
    with contextlib.suppress(OSError, ValueError, KeyError):  # Linux
        lines = _SYSTEM.read_text(encoding="ascii").splitlines()
        found = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines}
        swap = found.get("SwapFree", 0)
        bounds.append(found["MemAvailable"] + swap)
    limit = _container("memory.max")
    if limit is not None:  # a container, which may have less
        most = _container("memory.swap.max")
        if most is not None:
            swap = most - (_container("memory.swap.current") or 0)
        used = (_container("memory.current") or 0) - _cached_files()
        bounds.append(max(limit - used, 0) + swap)
    if not bounds:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            bounds.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(bounds, default=None)


def _container(name: str) -> int | None:
    """A number that the container's files say; None where there is none, or no limit ("max")."""
    with contextlib.suppress(OSError, ValueError):
        return int((_CONTAINER / name).read_text(encoding="ascii"))
    return None


def _cached_files() -> int:
    """Bytes in use by a container that the system drops when they are needed."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        lines = (_CONTAINER / "memory.stat").read_text(encoding="ascii").splitlines()
        return int(dict(line.split(maxsplit=1) for line in lines)["inactive_file"])
    return 0

"""Maps for the page, made by a process of their own, so that no question waits for one."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

_WAIT = "60"  # seconds for whoever writes to the run


class Mapper:
    """Makes the maps of a run when somebody looks at them.

    Args:
        folder: The run.
        plugins: Files with components of one's own.
    """

    def __init__(self, folder: Path, plugins: Sequence[Path] = ()) -> None:
        self._folder, self._plugins = folder, plugins
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._tried = 0

    def make(self, version: int) -> str:
        """Have the map of a version made, unless that was tried.

        Returns:
            making, or failed.
        """
        with self._lock:
            process = self._process
            if process is not None and process.poll() is None:
                return "making"
            if self._tried == version:
                return "failed"  # it ended, and there is still no map
            self._tried = version
            plugins = [text for path in self._plugins for text in ("--plugin", str(path))]
            command = [sys.executable, "-m", "dicgrl", *plugins, "map", str(self._folder)]
            nothing = subprocess.DEVNULL
            self._process = subprocess.Popen(
                [*command, "--wait", _WAIT],
                stdin=nothing,
                stdout=nothing,
                stderr=nothing,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
            with contextlib.suppress(AttributeError, OSError):  # behind those who answer
                os.setpriority(os.PRIO_PROCESS, self._process.pid, 10)
            return "making"

    def stop(self) -> None:
        """End what was begun."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._process.terminate()
                self._process.wait(10)

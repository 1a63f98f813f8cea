"""A run that is served: what all addresses share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from dicgrl.serve.options import ServeOptions
from dicgrl.serve.snapshots import Snapshot, Snapshots
from dicgrl.store.run_folder import RunFolder

_Found = TypeVar("_Found")
_WORKERS = 2


class Serving:
    """A run that is served.

    Args:
        folder: The run.
        options: How.

    Attributes:
        folder: The run.
        options: How.
        snapshots: What questions are answered from.
    """

    def __init__(self, folder: Path, options: ServeOptions | None = None) -> None:
        self.folder = RunFolder(folder)
        self.options = options or ServeOptions()
        self.snapshots = Snapshots(self.folder, self.options.device)
        self._pool = ThreadPoolExecutor(_WORKERS, "ask")
        self._ended = threading.Event()

    @contextmanager
    def pinned(self) -> Iterator[Snapshot]:
        """The run as it is now; it stays so until the block ends, whatever is learned meanwhile."""
        with self.snapshots.pinned() as snapshot:
            yield snapshot

    async def asked(self, work: Callable[[Snapshot], _Found]) -> _Found:
        """What a function finds in the run as it is now, in a thread of its own.

        Raises:
            TimeoutError: It took too long.
        """

        def pinned() -> _Found:
            with self.pinned() as snapshot:
                return work(snapshot)

        running = asyncio.get_running_loop().run_in_executor(self._pool, pinned)
        return await asyncio.wait_for(running, self.options.seconds)

    def start(self) -> None:
        """Begin to look for what is new."""

    def stop(self) -> None:
        """End what was begun."""
        self._ended.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

"""A run that is served: what all addresses share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from dicgrl.errors import DicgrlError
from dicgrl.serve.answering import Asked, answered
from dicgrl.serve.arrivals import Arrivals
from dicgrl.serve.batches import Batches
from dicgrl.serve.keeper import Keeper
from dicgrl.serve.metrics import Metrics
from dicgrl.serve.options import ServeOptions
from dicgrl.serve.problems import ProblemError
from dicgrl.serve.snapshots import Snapshot, Snapshots
from dicgrl.serve.teacher import Teacher
from dicgrl.store.pending import Entry
from dicgrl.store.run_folder import RunFolder

_log = logging.getLogger("dicgrl.serve")
_Found = TypeVar("_Found")
_WORKERS = 2  # requests that take long, at a time
_UNTIL_ASKABLE = 5.0  # seconds that the answer to new facts waits until they can be asked about


class Serving:
    """A run that is served.

    Args:
        folder: The run.
        options: How.

    Attributes:
        folder: The run.
        options: How.
        metrics: What was counted.
        snapshots: What questions are answered from.
        keeper: Keeps them fresh.
        teacher: Lets facts be learned.
    """

    def __init__(self, folder: Path, options: ServeOptions | None = None) -> None:
        self.folder = RunFolder(folder)
        self.options = options or ServeOptions()
        self.metrics = Metrics()
        if self.options.token:
            with self.folder.pending_writer():  # that there is a run that can be written to
                pass
        self.snapshots = Snapshots(self.folder, self.options.device)
        self.keeper = Keeper(self.folder, self.snapshots, self.options.look_seconds)
        self.teacher = Teacher(self.folder.path, self.options, self.keeper.renewed)
        self._arrivals = Arrivals(self.folder)
        self._newest = 0  # number of the newest entry that was written
        self._batches = Batches(self.snapshots, self.metrics.batch)
        self._pool = ThreadPoolExecutor(_WORKERS, "ask")

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

        return await self.done(pinned)

    async def done(self, work: Callable[[], _Found]) -> _Found:
        """What a function gives that takes its time, in a thread of its own.

        Raises:
            TimeoutError: It took too long.
        """
        running = asyncio.get_running_loop().run_in_executor(self._pool, work)
        return await asyncio.wait_for(running, self.options.seconds)

    async def predicted(self, asked: Asked) -> bytes:
        """The answers to questions, as JSON.

        Raises:
            ProblemError: They ask for something that there is not.
            TimeoutError: It took too long.
        """
        if Batches.takes(asked):
            return await asyncio.wait_for(self._batches.answered(asked), self.options.seconds)
        (found,) = await self.asked(lambda snapshot: answered(snapshot, [asked]))
        if isinstance(found, Exception):
            raise found
        return found

    async def arrived(self, entry: Entry) -> bool:
        """Let facts wait to be learned, or to be forgotten; they are durable then.

        Returns:
            Whether they can be asked about already.

        Raises:
            OSError: They could not be written; nothing of them is there.
            ProblemError: Another process does not let go of the run.
        """
        try:
            number = await asyncio.wrap_future(self._arrivals.add(entry))
        except DicgrlError as error:  # it names files
            _log.error("facts could not be written: %s", error)
            raise ProblemError(503, "the run cannot be written to at the moment") from None
        self._newest = number
        self.teacher.came(len(entry.facts))
        return await self.caught_up()

    async def caught_up(self) -> bool:
        """Wait until all that was written before can be asked about; False if it takes too long."""
        try:
            renewed = asyncio.wrap_future(self.keeper.renewed())
            await asyncio.wait_for(renewed, _UNTIL_ASKABLE)
        except TimeoutError:
            return False
        return not self.keeper.failed

    def is_behind(self) -> bool:
        """Whether facts were written that cannot be asked about yet."""
        return self._newest > self.snapshots.current.pending.last and not self._settled()

    def _settled(self) -> bool:
        return self.folder.mark() == self.snapshots.mark

    def start(self) -> None:
        """Begin to take in what is new, and to learn what waits."""
        self._arrivals.start()
        self.keeper.start()
        self.teacher.start(len(self.folder.pending()))

    def stop(self) -> None:
        """End what was begun: what came is durable, what is not learned yet waits."""
        self._arrivals.stop()
        self.teacher.stop()
        self.keeper.stop()
        self._batches.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

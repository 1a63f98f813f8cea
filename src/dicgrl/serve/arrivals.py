"""Facts on their way into the store: what comes at the same time is one transaction."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import ExitStack
from queue import SimpleQueue

from dicgrl.store.pending import Entry, PendingWriter
from dicgrl.store.run_folder import RunFolder

_MOST = 1000  # entries of a transaction


class Arrivals:
    """Writes facts that are to be learned, or forgotten, in the order in which they come.

    Args:
        folder: The run.

    Attributes:
        last: Number of the newest entry that was written here; 0 before any.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._waiting: SimpleQueue[tuple[Entry, Future[int]] | None] = SimpleQueue()
        self._open = ExitStack()
        self._writer: PendingWriter | None = None
        self._thread = threading.Thread(target=self._work, name="write", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, when all that came was written."""
        self._waiting.put(None)
        self._thread.join()

    def add(self, entry: Entry) -> Future[int]:
        """Write an entry; gives its number when it is durable."""
        done: Future[int] = Future()
        self._waiting.put((entry, done))
        return done

    def _work(self) -> None:
        ended = False
        while not ended:
            taken = [self._waiting.get()]
            while not self._waiting.empty() and len(taken) < _MOST:
                taken.append(self._waiting.get())
            ended = None in taken
            jobs = [job for job in taken if job is not None]
            if jobs:
                self._write([entry for entry, _ in jobs], [done for _, done in jobs])
        self._close()

    def _write(self, entries: list[Entry], waiting: list[Future[int]]) -> None:
        try:
            if self._writer is not None and not self._writer.is_in_place():
                self._close()  # the run was moved, or put back from a backup
            if self._writer is None:
                self._writer = self._open.enter_context(self._folder.pending_writer())
            numbers = self._writer.add(entries)
        except Exception as error:  # a full disk, a run that is gone: they hear of it
            self._close()
            for done in waiting:
                done.set_exception(error)
            return
        for number, done in zip(numbers, waiting, strict=True):
            done.set_result(number)

    def _close(self) -> None:
        self._writer = None
        self._open.close()

"""Keeps what is asked fresh: a thread that takes in versions and facts that wait."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future

from dicgrl.errors import DicgrlError
from dicgrl.serve.snapshots import Snapshots
from dicgrl.store.run_folder import RunFolder

_log = logging.getLogger("dicgrl.serve")


class Keeper:
    """Renews snapshots when it is told to, and when somebody else has written to the run.

    Args:
        folder: The run.
        snapshots: What is renewed.
        seconds: Time between two looks at the run.

    Attributes:
        failed: Whether the last look did not succeed; questions are answered as before.
    """

    def __init__(self, folder: RunFolder, snapshots: Snapshots, seconds: float) -> None:
        self._folder, self._snapshots, self._seconds = folder, snapshots, seconds
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._waiting: list[Future[None]] = []
        self._ended = False
        self.failed = False
        self._thread = threading.Thread(target=self._work, name="keep", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after a renewal that has begun."""
        self._ended = True
        self._wake.set()

    def renewed(self) -> Future[None]:
        """Done when all that is in the run now can be asked about."""
        done: Future[None] = Future()
        with self._lock:
            self._waiting.append(done)
        self._wake.set()
        return done

    def _work(self) -> None:
        while not self._ended:
            self._wake.wait(self._seconds)
            self._wake.clear()
            with self._lock:
                waiting, self._waiting = self._waiting, []
            try:
                if waiting or self._folder.mark() != self._snapshots.mark:
                    self._snapshots.renew()
                self.failed = False
            except Exception as error:  # it is tried again
                if not self.failed:
                    told = "the run cannot be read; questions are answered as before: %s"
                    ours = isinstance(error, DicgrlError | OSError)
                    _log.error(told, error, exc_info=None if ours else error)
                self.failed = True
            for done in waiting:
                if done.set_running_or_notify_cancel():
                    done.set_result(None)

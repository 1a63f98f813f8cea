"""Lets facts that wait be learned: by a process of its own, so that answers keep their speed.

The process holds a learner, is told to learn what waits, and says what became of it, a line of JSON
each way. When the server dies it reads the end of its input and ends, too.
"""

from __future__ import annotations

import contextlib
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from dicgrl.errors import BusyError, DicgrlError
from dicgrl.jobs.pending import PendingLearner
from dicgrl.serve.options import ServeOptions

COMMAND = "learn-waiting"  # of the command line, not listed
_log = logging.getLogger("dicgrl.serve")
_PATIENCE = 60.0  # seconds to wait for another process that writes
_PAUSES = (1.0, 60.0)  # seconds after a failure: the first, and the longest


class Teacher:
    """Decides when waiting facts are learned, and has it done.

    Args:
        folder: The run.
        options: How soon, and how.
        on_learned: Called when a version was committed.

    Attributes:
        failed: Why facts could not be learned last time; empty where they could.
        learned: Versions committed so far.
        refused: Facts that could not be learned and wait no more.
    """

    def __init__(
        self, folder: Path, options: ServeOptions, on_learned: Callable[[], object]
    ) -> None:
        self._folder, self._options, self._on_learned = folder, options, on_learned
        self._child: subprocess.Popen[str] | None = None
        self._changed = threading.Condition()
        self._waiting = 0  # facts
        self._since = 0.0  # when the first of them came
        self._ended = False
        self.failed = ""
        self.learned = self.refused = 0
        self._thread = threading.Thread(target=self._work, name="teach", daemon=True)

    def start(self, waiting: int) -> None:
        """Begin; facts that wait already are learned at once."""
        self._waiting = waiting and max(waiting, self._options.learn_facts)
        self._thread.start()

    def came(self, facts: int) -> None:
        """Facts have come that wait now."""
        with self._changed:
            self._since = self._since if self._waiting else time.monotonic()
            self._waiting += facts
            self._changed.notify_all()

    def stop(self) -> None:
        """End at once; what was not committed goes on waiting."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._child is not None:
            self._child.kill()
        self._thread.join()

    def _work(self) -> None:
        pause = _PAUSES[0]
        while self._is_time():
            with self._changed:
                taken, self._waiting = self._waiting, 0
            told = self._told()
            if self._ended:
                break
            failed = str(told.get("failed", ""))
            if failed and failed != self.failed:
                _log.error("facts could not be learned, and stay queued: %s", failed)
            self.failed = failed
            if failed:
                self.came(taken)
                with self._changed:
                    self._changed.wait_for(lambda: self._ended, pause)
                    self._since = 0.0
                pause = min(2 * pause, _PAUSES[1])
                continue
            pause = _PAUSES[0]
            self.learned += bool(told.get("settled"))
            for reason in told.get("refused", ()):
                self.refused += 1
                _log.warning("a fact was not learned: %s", reason)
            self._on_learned()
        self._end_child()

    def _is_time(self) -> bool:
        """Wait until there is something to learn; False at the end."""
        options = self._options
        with self._changed:
            while not self._ended:
                left = self._since + options.learn_seconds - time.monotonic()
                if self._waiting >= options.learn_facts or (self._waiting and left <= 0):
                    return True
                self._changed.wait(min(left, threading.TIMEOUT_MAX) if self._waiting else None)
        return False

    def _told(self) -> dict[str, Any]:
        """What the process says when it has learned."""
        try:
            child = self._child = self._child or self._begun()
            assert child.stdin is not None and child.stdout is not None
            child.stdin.write("learn\n")
            child.stdin.flush()
            line = child.stdout.readline()
            found: dict[str, Any] = json.loads(line)
            return found
        except (OSError, ValueError) as error:
            self._end_child()
            return {"failed": f"the process that learns has ended ({type(error).__name__})"}

    def _begun(self) -> subprocess.Popen[str]:
        options = self._options
        words = [sys.executable, "-m", "dicgrl"]
        for plugin in options.plugins:
            words += ["--plugin", str(plugin)]
        words += [COMMAND, str(self._folder), "--device", options.device]
        words += ["--evaluate", options.evaluate]
        words += ["--keep", options.keep] if options.keep else []
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the server
        )

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # it has ended
                    pipe.close()


def learn_when_told(learner: PendingLearner, orders: TextIO, say: Callable[[str], object]) -> None:
    """The process that learns: once for each line that it reads.

    Args:
        learner: Learns what waits.
        orders: The lines.
        say: Told what became of each, as JSON.
    """
    for _ in orders:
        try:
            found = learner.learn(_PATIENCE)
            told: dict[str, Any] = {
                "version": found.version,
                "settled": found.settled,
                "refused": found.refused,
            }
        except BusyError:
            told = {"failed": "another process is writing to the run"}
        except (DicgrlError, OSError, MemoryError) as error:
            told = {"failed": f"{type(error).__name__}: {error}"}
        say(json.dumps(told))

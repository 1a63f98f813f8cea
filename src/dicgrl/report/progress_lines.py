"""Progress as lines of a log, for runs without a terminal."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

LOG = logging.getLogger("dicgrl")
NIGHTS = logging.getLogger("dicgrl.nights")  # when one begins, what arrives, how it ends
EVERY = 15.0  # seconds between two lines
Tell = Callable[[str], None]


def is_quiet() -> bool:
    """Whether only warnings and errors are wanted."""
    return LOG.level > logging.INFO


@contextlib.contextmanager
def progress_lines(title: str, *, wanted: bool, every: float = EVERY) -> Iterator[Tell]:
    """Log every some seconds how far work is, also while nothing is heard of it.

    Args:
        title: What is done.
        wanted: Whether lines are; details (`logging.DEBUG`) are logged in any case.
        every: Seconds between two lines.

    Yields:
        What to tell about every step.
    """
    status, done, begun = "", threading.Event(), time.monotonic()

    def tell(now: str) -> None:
        nonlocal status
        status = now
        LOG.debug("%s: %s", title, now)

    def repeat() -> None:
        while not done.wait(every):
            passed = f"{time.monotonic() - begun:,.0f} s"
            LOG.info("%s: %s", title, ", ".join(filter(None, [status, passed])))

    if not wanted or not LOG.isEnabledFor(logging.INFO):
        yield tell
        return
    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        done.set()
        thread.join()

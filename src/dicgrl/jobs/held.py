"""Locks a run folder for one job, also if several processes do the job together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from dicgrl.parallel.group import current, speaks
from dicgrl.store.run_folder import RunFolder


@contextmanager
def held(folder: RunFolder | None, wait: float = 0.0) -> Iterator[None]:
    """Keep other jobs out of a folder; of several processes the first one does, for all of them.

    Args:
        folder: The folder; nothing is kept from anybody without one.
        wait: Seconds to wait for another job to end.

    Raises:
        BusyError: Another process is writing to the folder.
    """
    with nullcontext() if folder is None or not speaks() else folder.locked(wait):
        if group := current():
            group.wait()  # what they read is what nobody changes any more
        yield


def clear_up(folder: RunFolder) -> None:
    """Remove what a killed process left, unless it is another's turn; see `RunFolder.clear_up`."""
    if speaks():
        folder.clear_up()

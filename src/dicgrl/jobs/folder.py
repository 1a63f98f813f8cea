"""What the jobs ask of a run's folder: whether there is room for a run, and its results."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from dicgrl.common.atomic import check_place
from dicgrl.common.locks import locked
from dicgrl.errors import UserError
from dicgrl.jobs.trace import check_trace
from dicgrl.store.run_folder import check_configured, check_layout, write_json


def holds_run(out: Path) -> bool:
    """Whether there is a run in a folder, finished or not."""
    return (out / "config.json").exists()


def check_folder(out: Path, resume: bool, *, resumable: bool = True) -> bool:
    """Whether a folder holds a run to go on with.

    Args:
        out: The folder.
        resume: Whether the caller wants to go on with the run there.
        resumable: Whether runs of this kind can be resumed at all.

    Raises:
        UserError: It holds a run and nobody asked to go on with it, or folders of runs, or parts
            without their config.json, or a damaged trace; or it is no folder.
    """
    check_place(out)
    there = holds_run(out)
    if there and not resume:
        go_on = ", or go on with it (--resume)" if resumable else ""
        raise UserError(f"{out}: holds a run already; choose another folder{go_on}")
    if not there:
        check_layout(out, several=False)
        check_configured(out)
    check_trace(out)
    return there


def lock(out: Path | None) -> contextlib.AbstractContextManager[None]:
    """Keep other processes from writing to the folder of a run; nothing without one.

    Raises:
        BusyError: Another process is writing to it.
    """
    return contextlib.nullcontext() if out is None else locked(out)


def write_results(out: Path, results: dict[str, Any]) -> None:
    """Write the results of a run to its folder."""
    write_json(out / "results.json", results)

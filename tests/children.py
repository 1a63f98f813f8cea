"""Command lines in processes of their own, which start quickly and can be killed."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import cache
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from tests.faults import Fault, inject


@cache
def context() -> ForkServerContext:
    """Processes are forked from one that has imported everything and done nothing."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(
        [
            "dicgrl.cli",
            "dicgrl.jobs.plan",
            "dicgrl.jobs.learn",
            "dicgrl.report.comparison_table",
            "dicgrl.report.curves",
            "dicgrl.report.part_table",
            "dicgrl.report.progress_bars",
            "dicgrl.serve.running",  # where it is installed
            "dicgrl.tasks",
            "matplotlib.backends.backend_agg",
            "matplotlib.figure",
            "torch_geometric.nn",
        ]
    )
    return server


def start(
    output: Path, *words: str, fault: Fault | None = None, pictures: bool = True
) -> ForkServerProcess:
    """Begin `dicgrl` with the words; what it prints goes to a file.

    Args:
        output: The file.
        words: The command line.
        fault: What goes wrong when it writes.
        pictures: Whether curves are drawn, which takes half a second.
    """
    child = context().Process(target=_main, args=(str(output), words, fault, pictures))
    child.start()
    return child


def begin(
    output: Path, function: Callable[..., object], *given: Any, fault: Fault | None = None
) -> ForkServerProcess:
    """Call a function of a test module in a process of its own.

    Args:
        output: A file that gets what it prints.
        function: The function.
        given: Its arguments.
        fault: What goes wrong when it writes.
    """
    child = context().Process(target=_called, args=(str(output), function, given, fault))
    child.start()
    return child


def ended(child: ForkServerProcess) -> int:
    """The exit code; minus the signal where there was one."""
    child.join(60)
    assert child.exitcode is not None, "the process is still there"
    return child.exitcode


def _main(output: str, words: tuple[str, ...], fault: Fault | None, pictures: bool) -> None:
    from dicgrl.cli import main
    from dicgrl.report import curves

    if not pictures:
        curves.draw_curves = lambda *_: None
    # Who starts the tests in the background lets them ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["dicgrl", *words]
    _called(output, main, (), fault)


def _called(
    output: str, function: Callable[..., object], given: Iterable[Any], fault: Fault | None
) -> None:
    if fault is not None:
        inject(fault)
    with (
        Path(output).open("a", encoding="utf-8") as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):
        try:
            function(*given)
        except Exception:  # for the log: the process prints it elsewhere
            traceback.print_exc(file=file)
            sys.exit(1)

"""What commands print besides results: errors, warnings, and what an interrupted one leaves."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from dicgrl.cli.loudness import is_stamped
from dicgrl.common.memory import is_shortage
from dicgrl.errors import DataWarning, ModelWarning
from dicgrl.report.progress_lines import LOG, is_quiet
from dicgrl.report.terminal import counted, is_terminal

_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_OURS = (DataWarning, ModelWarning)


def show(content: RenderableType) -> None:
    """Print a table, or a line of text that is not broken; nothing for those who want quiet."""
    if is_quiet():
        return
    # A pipe gets complete lines, whatever the width of the terminal behind it. Names and paths are
    # printed as they are: brackets and colons in them are no markup.
    width = None if is_terminal(sys.stdout) else 200
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    console.print(content, soft_wrap=isinstance(content, str))


def show_json(content: Any) -> None:
    """Print one JSON object on a line."""
    typer.echo(json.dumps(content))


def complain(message: str) -> None:
    """Print an error."""
    if is_stamped():
        LOG.error(_harmless(message))
        return
    _print_marked("error:", "bold red", message)


def warn(message: str) -> None:
    """Print a warning."""
    if is_stamped():
        LOG.warning(_harmless(message))
        return
    _print_marked("warning:", "bold yellow", message)


def warn_of_unknown(lines: int) -> None:
    """Say how many lines of a file were skipped; nothing where none was."""
    if lines:
        has, are = ("has", "is") if lines == 1 else ("have", "are")
        warn(f"{counted(lines, 'line')} {has} an unknown label and {are} left out")


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print what readers and learners warn of as the commands print their own warnings."""

    def show_warning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, _OURS):
            warn(str(message))
        else:
            others(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        others = warnings.showwarning
        for kind in _OURS:
            warnings.simplefilter("default", kind)
        warnings.showwarning = show_warning
        yield


@contextmanager
def interruptible(what_is_kept: Callable[[], str]) -> Iterator[None]:
    """Say what is kept, should someone interrupt the work."""
    try:
        yield
    except KeyboardInterrupt:
        complain("; ".join(filter(None, ["interrupted", what_is_kept()])))
        raise


def what_ran_out(error: Exception) -> str | None:
    """The message about an error that more memory, or smaller numbers, would have avoided.

    Returns:
        None where it is of another kind, and its traceback is worth reading.

    Example:
        >>> what_ran_out(MemoryError())
        'out of memory: less data, or smaller settings such as dim and batch, may fit'
    """
    if isinstance(error, RecursionError):
        return "what was given is nested too deeply"
    if isinstance(error, OverflowError) or "without overflow" in str(error):
        return f"a number is too large ({error})"
    if is_shortage(error):
        return "out of memory: less data, or smaller settings such as dim and batch, may fit"
    return None


def _print_marked(mark: str, style: str, message: str) -> None:
    harmless = _harmless(message)
    Console(stderr=True, soft_wrap=True).print(Text.assemble((mark, style), f" {harmless}"))


def _harmless(message: str) -> str:
    """A message without what a terminal obeys: a name may hold anything."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], message)

"""How much a command says: --quiet, --verbose and --log-level of those that take their time."""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typing_extensions import override

from dicgrl.errors import UserError, unknown_name
from dicgrl.report.progress_lines import LOG, NIGHTS

LEVELS = ("debug", "info", "warning", "error")
_STAMPED = "%(asctime)s %(levelname)s %(message)s"

Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only warnings, errors and what --json prints.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print a line for every epoch and step.")
]
LogLevel = Annotated[
    str,
    typer.Option(
        metavar="LEVEL",
        help="Print lines with time and level, from this level on: debug, info, warning or error.",
        show_default=False,
    ),
]
_ADDED = {"quiet": (Quiet, False), "verbose": (Verbose, False), "log_level": (LogLevel, "")}


def loud(command: Callable[..., None]) -> Callable[..., None]:
    """A command that can be told how much to say."""

    @functools.wraps(command)
    def told(*given: Any, quiet: bool, verbose: bool, log_level: str, **named: Any) -> None:
        speak(quiet=quiet, verbose=verbose, log_level=log_level)
        command(*given, **named)

    signature = inspect.signature(command, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter(name, kind, annotation=annotation, default=default)
        for name, (annotation, default) in _ADDED.items()
    ]
    parameters = [*signature.parameters.values(), *added]
    told.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return told


def speak(*, quiet: bool = False, verbose: bool = False, log_level: str = "") -> None:
    """Say from now on as much as is asked for.

    Raises:
        UserError: It contradicts itself, or there is no such level.
    """
    if quiet + verbose + bool(log_level) > 1:
        raise UserError("--quiet, --verbose and --log-level: give one of them")
    level = log_level.lower() or ("warning" if quiet else "debug" if verbose else "info")
    if level not in LEVELS:
        raise unknown_name("log level", log_level, LEVELS)
    handler = _Stderr()
    handler.setFormatter(logging.Formatter(_STAMPED if log_level else "%(message)s"))
    LOG.handlers = [handler]
    LOG.propagate = False
    LOG.setLevel(level.upper())
    # What is printed at the end says the same to those who asked for no log.
    NIGHTS.setLevel(logging.NOTSET if verbose or log_level else logging.WARNING)


def is_stamped() -> bool:
    """Whether warnings and errors are lines of the log, too."""
    return any(h.formatter and h.formatter._fmt == _STAMPED for h in LOG.handlers)


class _Stderr(logging.Handler):
    """Writes to what is stderr at that time."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except (OSError, ValueError):  # closed: nobody reads
            self.handleError(record)

"""The errors that a user can act on.

Everything a user can put right (a damaged file, an unknown name) is a `UserError`: the command
line prints its message alone and ends with exit code 2, or 3 where only somebody else is at work
in a folder. Other failures that are nobody's mistake (a server that is away) are a `FailureError`
and end with exit code 1. Data that is read, though it may not say what its owner meant, is a
`DataWarning`, a model that learned nothing a `ModelWarning`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from typing import Any


class DicgrlError(Exception):
    """Base of every error this package raises on purpose."""


class UserError(DicgrlError):
    """A mistake in the input that the caller can correct; the message says what."""


class BusyError(UserError):
    """Another process is at work in a folder."""


class SetupError(UserError):
    """What is asked for does not fit here: a library, a device, memory or other processes lack.

    No file is at fault, and none is called damaged because of it.
    """


class UnknownLabelError(UserError):
    """A label, or readable name, that a graph does not have.

    Args:
        message: What is unknown.
        hint: What is added to the message when it is read; a search takes time that nobody needs
            to spend on labels that are only left out.
    """

    def __init__(self, message: str, hint: Callable[[], str]) -> None:
        super().__init__(message)
        self._hint = hint

    def __str__(self) -> str:
        return super().__str__() + self._hint()


class FailureError(DicgrlError):
    """Something failed that is not the caller's mistake, such as a broken download."""


class DataError(UserError):
    r"""A file whose content is not as expected.

    Args:
        source: The file (and part, member or array) at fault.
        message: What was found and what was expected.
        line: The line of the file, counted from 1, where there is one.

    Example:
        >>> print(DataError("0/train.txt", "expected 3 fields, found 2: " + shown("a\tb"), line=7))
        0/train.txt:7: expected 3 fields, found 2: 'a\tb'
    """

    def __init__(self, source: object, message: str, line: int | None = None) -> None:
        self.source = str(source)
        self.line = line
        self._given = (self.source, message, line)
        super().__init__(_placed(source, message, line))

    def __reduce__(self) -> tuple[Any, ...]:  # for other processes
        return type(self), self._given


class DataWarning(UserWarning):
    """Data that was read although something may be wrong with it.

    The command line prints its message as one line; `warnings.simplefilter("error", DataWarning)`
    makes it an error.

    Args:
        source: The file or folder.
        message: What was found and what is made of it.
        line: The line of the file, counted from 1, where there is one.

    Example:
        >>> print(DataWarning("facts", "not read: notes.txt"))
        facts: not read: notes.txt
    """

    def __init__(self, source: object, message: str, line: int | None = None) -> None:
        self._given = (str(source), message, line)
        super().__init__(_placed(source, message, line))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class ModelWarning(UserWarning):
    """A model that learned nothing, or lost much of what it knew.

    The command line prints its message as one line; `warnings.simplefilter("error", ModelWarning)`
    makes it an error.

    Args:
        part: Number of the part that was learned.
        message: What was found and what to try.

    Example:
        >>> print(ModelWarning(0, "the model knows nothing"))
        part 0: the model knows nothing
    """

    def __init__(self, part: int, message: str) -> None:
        self._given = (part, message)
        super().__init__(f"part {part}: {message}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


def _placed(source: object, message: str, line: int | None) -> str:
    return f"{source}: {message}" if line is None else f"{source}:{line}: {message}"


def shown(text: str, limit: int = 80) -> str:
    """Quote a value for a message, shortened so that one bad line cannot fill the screen.

    Example:
        >>> shown("a" * 100, limit=5)
        "'aaaaa...'"
    """
    return repr(text if len(text) <= limit else text[:limit] + "...")


def shown_value(value: object, limit: int = 80) -> str:
    """A value of any kind for a message, shortened likewise.

    Example:
        >>> shown_value(10**400, limit=5), shown_value(0.5)
        ('10000...', '0.5')
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes no number of thousands of digits
        return "..."
    return text if len(text) <= limit else text[:limit] + "..."


def nearest(word: str, known: Collection[str], count: int = 3) -> list[str]:
    """Known words that look like `word`, best first; case does not count.

    Example:
        >>> nearest("fb15k237", ["FB15k-237", "WN18RR", "films"])
        ['FB15k-237']
    """
    by_folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), by_folded, n=count, cutoff=0.6)
    return [by_folded[name] for name in close]


def unknown_name(kind: str, word: object, known: Collection[str]) -> UserError:
    """The error for a name that does not exist, or is no text: the nearest one, all that exist.

    Example:
        >>> print(unknown_name("dataset", "film", ["films", "cora"]))
        unknown dataset 'film'; did you mean 'films'? Known: cora, films
    """
    if not isinstance(word, str):
        return UserError(f"unknown {kind} {shown_value(word)}. Known: {', '.join(sorted(known))}")
    close = nearest(word, known, count=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return UserError(f"unknown {kind} {shown(word)}{hint} Known: {', '.join(sorted(known))}")

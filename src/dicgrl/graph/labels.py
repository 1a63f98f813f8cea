"""Which values may be labels, and the names of columns of labels."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from dicgrl.errors import UserError, shown

#: Control characters besides TAB and LF, line ends of other alphabets, halves of a character.
_OTHERS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
#: What no label may contain: exported labels and scores are lines of fields with TAB between them.
FORBIDDEN = re.compile(f"[\t\n{_OTHERS}]")
#: The same for whole lines, in which TAB and LF are no part of a label.
FORBIDDEN_IN_LINES = re.compile(f"[{_OTHERS}]")

#: What a column of times may be called.
TIME_WORDS = ("time", "timestamp", "date", "year")
#: What the columns of triples are called: head, relation, tail.
_ROLES = (
    ("head", "h", "subject", "s", "source", "src", "from"),
    ("relation", "rel", "r", "predicate", "p", "property", "type", "edge", "label"),
    ("tail", "t", "object", "o", "target", "dst", "to"),
)
_ROLE_OF = {
    word + ending: role
    for role, words in enumerate(_ROLES)
    for word in words
    for ending in ("", "_id", "_label", "_name", "_uri")
}


def role_of(name: object) -> int | None:
    """Which column of a triple a word names; None if none.

    Example:
        >>> role_of("Subject"), role_of("predicate"), role_of("note")
        (0, 1, None)
    """
    return _ROLE_OF.get(name.strip().lower()) if isinstance(name, str) else None


def named_columns(names: Iterable[object], width: int = 3) -> list[int] | None:
    """Positions of head, relation and tail by column names; None unless each occurs once.

    Other columns, besides the three, may have any name. Of a `width` of 2 they are the two ends of
    an edge, head and tail.

    Example:
        >>> named_columns(["Source", "target_id", "type"])
        [0, 2, 1]
        >>> named_columns(["weight", "from", "to"], 2)
        [1, 2]
    """
    roles = list(map(role_of, names))
    wanted = (0, 2) if width == 2 else (0, 1, 2)
    once = all(roles.count(role) == 1 for role in wanted)
    return [roles.index(role) for role in wanted] if once else None


def time_column(names: Iterable[object]) -> int | None:
    """Position of the times by column names; None unless exactly one column has such a name.

    Example:
        >>> time_column(["head", "relation", "tail", "Date"])
        3
    """
    names = list(names)
    of_triples = named_columns(names) or ()
    found = [
        i
        for i, name in enumerate(names)
        if isinstance(name, str) and name.strip().lower() in TIME_WORDS and i not in of_triples
    ]
    return found[0] if len(found) == 1 else None


def header_words(fields: Iterable[str]) -> list[int]:
    """Which fields of a line are words that name a column of triples.

    Example:
        >>> header_words(["entity1", "Relation", "entity2"])
        [1]
    """
    return [i for i, field in enumerate(fields) if field.strip().lower() in _ROLE_OF]


def forbidden(text: str) -> str:
    r"""The message about a text that `FORBIDDEN` is found in.

    Example:
        >>> print(forbidden("horror\tfilm"))
        'horror\tfilm': a label cannot contain a TAB, a line end or another control character
    """
    return f"{shown(text)}: a label cannot contain a TAB, a line end or another control character"


def check_labels(labels: Iterable[str], what: str = "") -> None:
    """Refuse labels that cannot be written to a line.

    Args:
        labels: The labels, or readable names.
        what: What the message begins with.

    Raises:
        UserError: One contains a control character.
    """
    labels = list(labels)
    if FORBIDDEN.search("".join(labels)):
        raise UserError(what + forbidden(next(filter(FORBIDDEN.search, labels))))


def as_label(value: object) -> str:
    """A label from text or a whole number; anything else, such as None or NaN, is refused.

    Raises:
        UserError: The value is none of them.

    Example:
        >>> as_label(np.int64(7))
        '7'
    """
    if type(value) is str:
        return value
    if isinstance(value, str | int | np.integer) and not isinstance(value, bool):
        return str(value)
    lacks = "the value is missing" if is_missing(value) else "expected text or a whole number"
    raise UserError(f"{shown(str(value))} is not a label: {lacks}")


def is_missing(value: object) -> bool:
    """Whether a frame holds nothing there: None, NaN, or pandas' NA or NaT."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")

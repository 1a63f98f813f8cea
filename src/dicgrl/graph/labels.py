"""What may be a label, and labelled triples as a program gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import UserError, shown

Triples = Iterable[Sequence[str | int]] | npt.NDArray[Any]

#: Control characters besides TAB and LF, line ends of other alphabets, halves of a character.
_OTHERS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
#: What no label may contain: exported labels and scores are lines of fields with TAB between them.
FORBIDDEN = re.compile(f"[\t\n{_OTHERS}]")
#: The same for whole lines, in which TAB and LF are no part of a label.
FORBIDDEN_IN_LINES = re.compile(f"[{_OTHERS}]")

#: What the columns of triples are called: head, relation, tail.
_ROLES = (
    ("head", "h", "subject", "s", "source", "src", "from"),
    ("relation", "rel", "r", "predicate", "p", "property", "type", "edge", "label"),
    ("tail", "t", "object", "o", "target", "dst", "to"),
)
_CALL = "three of them head, relation and tail"
_ROLE_OF = {
    word + ending: role
    for role, words in enumerate(_ROLES)
    for word in words
    for ending in ("", "_id", "_label", "_name", "_uri")
}


def named_columns(names: Iterable[object], width: int = 3) -> list[int] | None:
    """Where head, relation and tail stand by the names of columns; None unless each does once.

    Other columns, besides the three, may have any name. Of a `width` of 2 they are the two ends of
    an edge, head and tail.

    Example:
        >>> named_columns(["Source", "target_id", "type"])
        [0, 2, 1]
        >>> named_columns(["weight", "from", "to"], 2)
        [1, 2]
    """
    roles = [
        _ROLE_OF.get(name.strip().lower()) if isinstance(name, str) else None for name in names
    ]
    wanted = (0, 2) if width == 2 else (0, 1, 2)
    once = all(roles.count(role) == 1 for role in wanted)
    return [roles.index(role) for role in wanted] if once else None


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
    """A label from text or a whole number; nothing else is one, least of all None or NaN.

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
    raise UserError(f"{shown(str(value))} is no label: expected text or a whole number")


def as_labels(triples: Triples) -> list[tuple[str, str, str]]:
    """Labelled triples from a list, an array, a data frame (pandas, polars), or the like.

    The columns of a data frame are head, relation and tail, in this order unless their names tell
    another one (`named_columns`); then there may be others, which are not read. So it is with the
    keys of dicts.

    Raises:
        UserError: There is something else among them; the message says where.

    Example:
        >>> as_labels([("Alien", "year", 1979)])
        [('Alien', 'year', '1979')]
    """
    triples = frame_rows(triples)
    scalar = isinstance(triples, np.ndarray) and not triples.ndim
    if scalar or isinstance(triples, str | bytes | Mapping) or not isinstance(triples, Iterable):
        raise UserError(f"expected triples (head, relation, tail), found {shown(str(triples))}")
    found: list[tuple[str, str, str]] = []
    for triple in triples:
        try:
            found.append(_as_triple(triple))
        except UserError as error:
            raise UserError(f"triples[{len(found)}]: {error}") from None
    if FORBIDDEN.search("".join(chain.from_iterable(found))):
        for number, labels in enumerate(found):
            check_labels(labels, f"triples[{number}]: ")
    return found


def frame_rows(given: Any, width: int = 3) -> Any:
    """The rows of a data frame (pandas, polars, pyarrow); anything else as it is.

    Its columns are head, relation and tail, or of a `width` of 2 the ends of edges, in this order
    unless their names tell another one; then there may be others.

    Raises:
        UserError: They are more, or fewer, and their names do not tell which is what.
    """
    if hasattr(given, "itertuples"):  # pandas
        names, rows = list(given.columns), given.itertuples(index=False, name=None)
    elif hasattr(given, "iter_rows"):  # polars
        names, rows = list(given.columns), given.iter_rows()
    elif hasattr(given, "to_pylist") and hasattr(given, "column_names"):  # pyarrow
        names = list(given.column_names)
        rows = (tuple(row.values()) for row in given.to_pylist())
    else:
        return given
    order = named_columns(names, width)
    if order is None and len(names) != width:
        raise UserError(
            f"a data frame with the columns {', '.join(map(str, names))}: call "
            + ("two of them source and target" if width == 2 else _CALL)
        )
    return rows if order is None else (tuple(row[column] for column in order) for row in rows)


def _as_triple(triple: Any) -> tuple[str, str, str]:
    if isinstance(triple, Mapping):
        keys = list(triple)
        order = named_columns(keys)
        triple = [triple[keys[at]] for at in order] if order else triple
    apart = isinstance(triple, Iterable) and not isinstance(
        triple, str | bytes | Mapping | AbstractSet
    )
    labels = tuple(map(as_label, triple)) if apart else ()
    if len(labels) != 3 or "" in labels:
        raise UserError(f"expected (head, relation, tail), found {shown(str(triple))}")
    return labels

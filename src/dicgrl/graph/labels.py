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

    Raises:
        UserError: There is something else among them; the message says where.

    Example:
        >>> as_labels([("Alien", "year", 1979)])
        [('Alien', 'year', '1979')]
    """
    if hasattr(triples, "itertuples"):  # data frames give their columns otherwise: pandas
        triples = triples.itertuples(index=False, name=None)
    elif hasattr(triples, "iter_rows"):  # polars
        triples = triples.iter_rows()
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


def _as_triple(triple: Any) -> tuple[str, str, str]:
    apart = isinstance(triple, Iterable) and not isinstance(
        triple, str | bytes | Mapping | AbstractSet
    )
    labels = tuple(map(as_label, triple)) if apart else ()
    if len(labels) != 3 or "" in labels:
        raise UserError(f"expected (head, relation, tail), found {shown(str(triple))}")
    return labels

"""Checks of arrays for all kinds of parts."""

from __future__ import annotations

import numpy as np

from dicgrl.errors import UserError
from dicgrl.graph.arrays import IntArray, ids_in
from dicgrl.graph.vocabulary import Vocabulary


def check_ids(what: str, ids: IntArray, labels: Vocabulary, lowest: int = 0) -> None:
    """Refuse an id that has no label.

    Args:
        what: Name of the ids in the message.
        ids: The ids, [n].
        labels: Their labels.
        lowest: The lowest allowed id; -1 if there may be none.

    Raises:
        UserError: There is one; the message names its row.

    Example:
        >>> check_ids("train triples", np.array([0, 1]), Vocabulary(["a"], kind="entity"))
        Traceback (most recent call last):
        dicgrl.errors.UserError: train triples: row 1 has entity id 1; expected 0 <= id < 1
    """
    if ids.min(initial=0) < lowest or ids.max(initial=-1) >= len(labels):
        row = int(np.argmax((ids < lowest) | (ids >= len(labels))))
        raise UserError(
            f"{what}: row {row} has {labels.kind} id {ids[row]}; expected {lowest} <= id < "
            f"{len(labels)}"
        )


def check_range(what: str, ids: range, labels: Vocabulary) -> None:
    """Like `check_ids`, for a range; costs nothing if all is well."""
    if ids.start < 0 or ids.stop > len(labels):
        check_ids(what, ids_in(ids), labels)

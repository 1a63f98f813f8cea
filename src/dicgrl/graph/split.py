"""Which part each entity, node or fact of a static graph arrives with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import UserError, unknown_name
from dicgrl.graph.arrays import IntArray

WAYS = ("arrival", "time", "order", "class")


def first_mention(arrival: IntArray, mentions: IntArray, part_of: IntArray) -> None:
    """Set `arrival[x]` to the first part whose rows mention x; others keep their value."""
    flat = mentions.ravel()
    parts = np.repeat(part_of, mentions.shape[1])
    first = np.full(len(arrival), np.iinfo(np.int64).max)
    np.minimum.at(first, flat, parts)
    arrival[flat] = first[flat]


def assign(
    by: str,
    ratios: Sequence[float],
    times: npt.ArrayLike | None,
    count: int,
    generator: np.random.Generator,
    what: str,
) -> IntArray:
    """The part with which each of `count` things arrives, [count].

    Args:
        by: One of `WAYS`.
        ratios: Share of each part; they sum to 1.
        times: For `time`, one value for each thing; None for all other ways.
        count: How many things there are.
        generator: Makes the choice, for `arrival`.
        what: What messages call the things.

    Raises:
        UserError: One of these is wrong, or a part would be empty.
    """
    shares = np.asarray(ratios, dtype=np.float64)
    if shares.ndim != 1 or not ((shares > 0).all() and abs(shares.sum() - 1) <= 1e-6):  # nan fails
        raise UserError(f"ratios {list(ratios)}: they must be above 0 and sum to 1")
    if by not in WAYS:
        raise unknown_name("way to split", by, WAYS)
    if (by == "time") != (times is not None):
        raise UserError(f"by={by!r}: times are needed for 'time' and for nothing else")
    ends = np.round(np.cumsum(shares) * count).astype(np.int64)
    ends[-1] = count  # whatever the shares' rounding left over
    if by == "time":
        values: npt.NDArray[Any] = np.asarray(times)
        if values.shape != (count,):
            raise UserError(
                f"times has shape {values.shape}; expected one for each of {count} {what}"
            )
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        # A cut inside a run of equal times moves to the end of that run.
        inner = ends[:-1][ends[:-1] > 0]
        ends[:-1][ends[:-1] > 0] = np.searchsorted(ordered, ordered[inner - 1], side="right")
    elif by == "arrival":
        order = generator.permutation(count)
    else:
        order = np.arange(count)
    sizes = np.diff(ends, prepend=0)
    if (sizes <= 0).any():
        raise UserError(
            f"part {int(np.argmax(sizes <= 0))} of {len(shares)} would be empty: {count} {what} "
            f"are too few{' or their times too alike' if by == 'time' else ''}"
        )
    parts = np.empty(count, dtype=np.int64)
    parts[order] = np.repeat(np.arange(len(shares)), sizes)
    return parts

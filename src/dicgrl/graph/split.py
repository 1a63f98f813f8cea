"""Which part each entity, node or fact of a static graph arrives with, and how large parts are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import UserError, shown_value, unknown_name
from dicgrl.graph.arrays import IntArray

Shares = npt.NDArray[np.float64]

NETWORK_WAYS = ("arrival", "class", "nightly", "order", "time")  # and periods, which are times
GROWTH = ("entities", "relations", "facts", "hybrid", "nightly")
PERIODS = ("day", "week", "month", "year")
KNOWLEDGE_WAYS = ("arrival", *GROWTH, "order", "time")
_NEAR = 0.02  # how far from 1 the sum of ratios may be: 0.33, 0.33, 0.33
_MOST_PARTS = 1_000_000
_PARTS, _FIRST = 5, 0.8  # the paper's partitions
_NIGHTLY_PARTS, _NIGHTLY_FIRST = 41, 0.75


def check_way(
    by: str, ways: Collection[str], kind: str, times: npt.ArrayLike | None = None
) -> None:
    """Refuse a way to split that does not exist or not for this kind of graph.

    Args:
        by: The way.
        ways: Those that the kind of graph has.
        kind: What messages call the graph.
        times: Only a split by time has them.
    """
    if by not in ways:
        if by in (*KNOWLEDGE_WAYS, "class"):
            raise UserError(f"by={by!r}: {kind} can only be split by {', '.join(sorted(ways))}")
        raise unknown_name("way to split", by, [*ways, *PERIODS])
    if (by == "time") != (times is not None):
        raise UserError(f"by={by!r}: times are needed for 'time' and for nothing else")


def part_shares(
    by: str, ratios: Sequence[float] | None, parts: int | None, first: float | None
) -> Shares:
    """Share of each part, [parts].

    Args:
        by: Way to split; `nightly` has defaults of its own.
        ratios: The shares themselves; `parts` and `first` are then None.
        parts: How many parts, the first included. They are equal unless there is a `first`.
        first: Share of the first part; the others are equal.

    Raises:
        UserError: They contradict each other or are out of range.

    Example:
        >>> part_shares("facts", None, 3, 0.5)
        array([0.5 , 0.25, 0.25])
    """
    if ratios is None:
        return _counted_shares(*_with_defaults(by, parts, first))
    if parts is not None or first is not None:
        raise UserError("ratios together with parts or first: give the one or the other")
    return _given_shares(ratios)


def _given_shares(ratios: Sequence[float]) -> Shares:
    """Ratios as shares that sum to 1 exactly, but for rounding."""
    shares = np.asarray(ratios, dtype=np.float64)
    total = shares.sum()
    # Written so that nan fails.
    if shares.ndim != 1 or not ((shares > 0).all() and abs(total - 1) <= _NEAR):
        hint = "; these are per cent: divide them by 100" if abs(total - 100) < 1 else ""
        raise UserError(f"ratios {list(ratios)}: they must be above 0 and sum to 1{hint}")
    return shares / total if abs(total - 1) > 1e-6 else shares


def _with_defaults(by: str, parts: int | None, first: float | None) -> tuple[int, float | None]:
    """The number of parts and the share of the first, None for an equal one, where not given."""
    nightly = by == "nightly"
    usual_parts, usual_first = (_NIGHTLY_PARTS, _NIGHTLY_FIRST) if nightly else (_PARTS, _FIRST)
    if first is None and (parts is None or (nightly and parts > 1)):
        first = usual_first
    return usual_parts if parts is None else parts, first


def _counted_shares(parts: int, first: float | None) -> Shares:
    """Shares of so many parts, all equal or all but the first."""
    if parts < 1:
        raise UserError(f"parts={parts}: there must be at least one")
    if parts > _MOST_PARTS:
        raise UserError(f"parts={shown_value(parts)}: expected at most {_MOST_PARTS:,}")
    if first is None:
        return np.full(parts, 1 / parts)
    if not 0 < first < 1:
        raise UserError(f"first={first}: the share of the first part must lie between 0 and 1")
    if parts == 1:
        raise UserError(f"first={first}: a single part has everything")
    return np.array([first, *[(1 - first) / (parts - 1)] * (parts - 1)])


def part_ends(shares: Shares, count: int) -> IntArray:
    """Number of things, out of `count`, that have arrived by the end of each part, [parts]."""
    ends = np.round(np.cumsum(shares) * count).astype(np.int64)
    ends[-1] = count  # despite rounding of the shares
    return ends


def check_sizes(ends: IntArray, what: str, why: str = "") -> IntArray:
    """The size of each part, [parts]; one that would be empty is refused."""
    sizes = np.diff(ends, prepend=0)
    if (sizes <= 0).any():
        raise UserError(
            f"part {int(np.argmax(sizes <= 0))} of {len(ends)} would be empty: {ends[-1]} {what} "
            f"are too few{why}"
        )
    return sizes


def first_mention(arrival: IntArray, mentions: IntArray, part_of: IntArray) -> None:
    """Set `arrival[x]` to the first part whose rows mention x; others keep their value."""
    flat = mentions.ravel()
    parts = np.repeat(part_of, mentions.shape[1])
    first = np.full(len(arrival), np.iinfo(np.int64).max)
    np.minimum.at(first, flat, parts)
    arrival[flat] = first[flat]


def by_part(part_of: IntArray, parts: int) -> list[IntArray]:
    """Positions of what arrives with each part, in their order.

    Example:
        >>> by_part(np.array([1, 0, 1]), 3)
        [array([1]), array([0, 2]), array([], dtype=int64)]
    """
    ends = np.cumsum(np.bincount(part_of, minlength=parts))
    return np.split(np.argsort(part_of, kind="stable"), ends[:-1])


def assign(
    by: str,
    shares: Shares,
    times: npt.ArrayLike | None,
    count: int,
    generator: np.random.Generator,
    what: str,
) -> IntArray:
    """The part with which each of `count` things arrives, [count].

    Args:
        by: `time`, `arrival` (in random order), or anything else: as they stand.
        shares: Share of each part.
        times: For `time`, one value for each thing.
        count: How many things there are.
        generator: Makes the choice, for `arrival`.
        what: What messages call the things.

    Raises:
        UserError: The times are wrong, or a part would be empty.
    """
    ends = part_ends(shares, count)
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
    sizes = check_sizes(ends, what, " or their times too alike" if by == "time" else "")
    parts = np.empty(count, dtype=np.int64)
    parts[order] = np.repeat(np.arange(len(shares)), sizes)
    return parts

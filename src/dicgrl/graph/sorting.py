"""Sorting of many numbers in bounded memory.

A number and its position are packed into one of 64 bits where both fit, and sorted in place: that
is several times as fast as a sort of positions by what they refer to, and stable by itself. Where
they do not fit, lower digits are sorted before higher ones. Many numbers are first divided by
counting, so that what a sort needs besides them follows a block and not all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dicgrl.graph.arrays import BoolArray, IntArray, KeyArray, are_pairs

BLOCK = 1 << 24  # numbers that are sorted at a time
_BINS = 1 << 16
_WORD = 64


def stable_order(numbers: KeyArray) -> IntArray:
    """Like `np.argsort(numbers, kind="stable")`, but several times as fast for whole numbers.

    Example:
        >>> stable_order(np.array([3, 1, 3, 2])).tolist()
        [1, 3, 0, 2]
    """
    if len(numbers) < 2:
        return np.arange(len(numbers))
    if are_pairs(numbers):
        return np.argsort(numbers, kind="stable")
    low, high = int(numbers.min()), int(numbers.max())
    above = _above(numbers, low)
    place = (len(numbers) - 1).bit_length()
    left, digit = (high - low).bit_length(), _WORD - place
    order = _ordered(above & _ones(digit), place)
    while left > digit:
        left -= digit
        above = above >> np.uint64(digit)
        order = order[_ordered(above[order] & _ones(digit), place)]
    return order


def _ordered(digits: npt.NDArray[np.uint64], place: int) -> IntArray:
    """Positions in the order of digits that leave room for `place` bits."""
    digits <<= np.uint64(place)
    digits |= np.arange(len(digits), dtype=np.uint64)
    digits.sort()
    digits &= _ones(place)
    return digits.view(np.int64)


def _above(numbers: IntArray, low: int) -> npt.NDArray[np.uint64]:
    """How far numbers lie above the lowest; it wraps where it has to."""
    return (numbers.astype(np.int64) - low).view(np.uint64)


def _ones(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)


def blocks_in_order(numbers: KeyArray, block: int = 0) -> Iterator[IntArray]:
    """Positions of numbers in ascending order, in blocks; the order is stable.

    No value occurs in two blocks; of pairs, no first number does. A block is only larger than
    requested if one of 65,536 equal ranges of the numbers holds more.

    Example:
        >>> [some.tolist() for some in blocks_in_order(np.array([9, 1, 5, 1, 9]), 2)]
        [[1, 3], [2], [0, 4]]
    """
    block = block or BLOCK
    if len(numbers) <= block:
        if len(numbers):
            yield stable_order(numbers)
        return
    if are_pairs(numbers):
        for some in blocks_in_order(numbers.real.astype(np.int64), block):
            yield some[stable_order(numbers[some])]
        return
    low, high = int(numbers.min()), int(numbers.max())
    width = (high - low) // _BINS + 1
    pieces = range(0, len(numbers), block)
    counts = np.zeros(_BINS, np.int64)
    for first in pieces:
        bins = _above(numbers[first : first + block], low) // np.uint64(width)
        counts += np.bincount(bins.view(np.int64), minlength=_BINS)
    before = 0  # bins that are done
    while before < _BINS:
        within = np.searchsorted(np.cumsum(counts[before:]), block, side="right")
        after = before + max(int(within), 1)
        total = int(counts[before:after].sum())
        begin, end = low + before * width, min(low + after * width - 1, high)
        before = after
        if not total:
            continue
        chosen = np.empty(total, np.int64)
        done = 0
        for first in pieces:
            piece = numbers[first : first + block]
            found = np.flatnonzero((piece >= begin) & (piece <= end))
            chosen[done : done + len(found)] = found + first
            done += len(found)
        yield chosen[stable_order(numbers[chosen])]


def is_first(values: KeyArray) -> BoolArray:
    """Whether a value occurs for the first time, [n].

    Example:
        >>> is_first(np.array([3, 1, 3]))
        array([ True,  True, False])
    """
    first = np.zeros(len(values), dtype=np.bool_)
    for order in blocks_in_order(values):
        ordered = values[order]
        new = np.ones(len(ordered), np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
        first[order[new]] = True
    return first

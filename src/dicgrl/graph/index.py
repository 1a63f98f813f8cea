"""A growing multimap from keys to whole numbers, in sorted segments.

Keys are whole numbers, or pairs of them as complex numbers; a multimap has one kind of keys.

A new part becomes a segment of its own, at the cost of sorting that part. Segments of similar size
are merged (the logarithmic method), so that n entries in any number of parts are in at most about
log2(n) segments, and each entry is moved O(log n) times in total.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.common.room import room
from dicgrl.graph.arrays import BoolArray, IntArray, KeyArray, are_pairs, lies_close
from dicgrl.graph.sorting import BLOCK, blocks_in_order, stable_order

_FAR = 1 << 18  # in segments with more keys, queries are sorted before the search
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1


class _Segment:
    """Entries sorted by key; those of a key are found through a table, or by a search.

    Half of the memory of a graph is in its indices. So numbers take 32 bits if they fit, and a
    table, if there is one, replaces the keys. Entries are sorted in blocks, so that little
    additional memory is needed.

    Args:
        keys: In any order, [n].
        values: [n].
    """

    def __init__(self, keys: KeyArray, values: IntArray) -> None:
        self._count = len(keys)
        self._low, self._high = 0, 0  # what keys lie between, if they are no pairs
        self._keys: KeyArray | None = None
        self._starts: IntArray | None = None  # where each number from the lowest key on begins
        if are_pairs(keys):
            self._keys = room(len(keys), np.complex128)
        else:
            self._low, self._high = int(keys.min()), int(keys.max())
            if lies_close(self._low, self._high, len(keys)):
                self._starts = self._table(keys)
            else:
                self._keys = room(len(keys), _narrowest(self._low, self._high))
        self._values = room(len(values), _narrowest(int(values.min()), int(values.max())))
        done = 0
        for order in blocks_in_order(keys):
            filled = slice(done, done := done + len(order))
            self._values[filled] = values[order]
            if self._keys is not None:
                self._keys[filled] = keys[order]

    def _table(self, keys: IntArray) -> IntArray:
        starts = np.zeros(self._high - self._low + 2, np.int64)
        for first in range(0, len(keys), BLOCK):
            some = keys[first : first + BLOCK].astype(np.int64) - self._low + 1
            starts += np.bincount(some, minlength=len(starts))
        np.cumsum(starts, out=starts)
        return starts.astype(_narrowest(0, len(keys)))

    @property
    def keys(self) -> KeyArray:
        """The keys, sorted."""
        if self._keys is not None:
            return self._keys
        assert self._starts is not None
        numbers = np.arange(self._low, self._high + 1, dtype=_narrowest(self._low, self._high))
        return np.repeat(numbers, np.diff(self._starts))

    @property
    def values(self) -> IntArray:
        """The values."""
        return self._values

    def at(self, positions: IntArray) -> IntArray:
        """Values at some positions, as int64."""
        return _wide(self._values[positions])

    def __len__(self) -> int:
        return self._count

    def bounds(self, first: KeyArray, last: KeyArray) -> tuple[IntArray, IntArray]:
        """Begin and end of the entries with keys from `first` to `last`, for each pair of these."""
        if self._starts is not None:
            # Keys outside have an empty range.
            start = self._starts[first.clip(self._low, self._high + 1) - self._low]
            stop = self._starts[last.clip(self._low - 1, self._high) - self._low + 1]
            return _wide(start), np.maximum(_wide(stop), start)
        assert self._keys is not None
        kind: np.dtype[Any] = self._keys.dtype
        if kind != first.dtype:  # else all keys would become wide for the search
            first, last = (
                ends.clip(self._low - 1, self._high + 1).astype(kind) for ends in (first, last)
            )
        if self._count < _FAR:
            start = np.searchsorted(self._keys, first, "left")
            return _wide(start), _wide(np.searchsorted(self._keys, last, "right"))
        # In order a search begins where the last one ended, in what is in the cache.
        order = stable_order(first)
        found = np.empty((2, len(first)), np.int64)
        found[0, order] = np.searchsorted(self._keys, first[order], "left")
        found[1, order] = np.searchsorted(self._keys, last[order], "right")
        return found[0], found[1]


def _wide(numbers: npt.NDArray[Any]) -> IntArray:
    """Convert numbers to 64 bits."""
    return numbers.astype(np.int64, copy=False)


def _narrowest(low: int, high: int) -> Any:
    """32 bits if numbers between these fit, and their neighbours as well; otherwise 64."""
    return np.int32 if low > _LEAST and high < _MOST else np.int64


class SegmentIndex:
    """A multimap that is extended part by part and never rebuilt from scratch.

    Example:
        >>> index = SegmentIndex()
        >>> index.add(np.array([7, 3, 7]), np.array([0, 1, 2]))
        >>> index.add(np.array([7]), np.array([3]))
        >>> query, value = index.lookup(np.array([7, 5]))
        >>> query.tolist(), value.tolist()
        ([0, 0, 0], [0, 2, 3])
        >>> index.count(np.array([7, 5])).tolist()
        [3, 0]
    """

    def __init__(self) -> None:
        self._segments: list[_Segment] = []

    def fork(self) -> SegmentIndex:
        """A copy that can be extended independently."""
        made = SegmentIndex()
        made._segments = list(self._segments)  # segments do not change
        return made

    def add(self, keys: KeyArray, values: IntArray) -> None:
        """Append entries; equal keys keep their order of arrival."""
        if len(keys) == 0:
            return
        self._segments.append(_Segment(keys, values))
        while len(self._segments) > 1 and (2 * len(self._segments[-1]) >= len(self._segments[-2])):
            newer, older = self._segments.pop(), self._segments.pop()
            self._segments.append(_merge(older, newer))

    def renumber(self, numbers: IntArray) -> None:
        """Give every value another number, in one pass over all entries.

        Args:
            numbers: The new number of each old value, in order; -1 to remove its entries.

        Example:
            >>> index = SegmentIndex()
            >>> index.add(np.array([7, 3, 7]), np.array([0, 1, 2]))
            >>> index.renumber(np.array([-1, 0, 1]))
            >>> index.lookup(np.array([7, 3]))[1].tolist()
            [1, 0]
        """
        segments = []
        for segment in self._segments:
            values = numbers[segment.values]
            kept = values >= 0
            if kept.any():
                segments.append(_Segment(segment.keys[kept], values[kept]))
        self._segments = segments

    def drop(self, keys: IntArray, values: IntArray) -> None:
        """Remove entries, in one pass over all entries; keys and values must be below 2^31.

        Example:
            >>> index = SegmentIndex()
            >>> index.add(np.array([7, 3, 7]), np.array([0, 1, 2]))
            >>> index.drop(np.array([7]), np.array([0]))
            >>> index.lookup(np.array([7]))[1].tolist()
            [2]
        """
        gone = (_wide(keys) << 32) | values
        segments = []
        for segment in self._segments:
            kept = ~np.isin((_wide(segment.keys) << 32) | segment.values, gone)
            if kept.any():
                segments.append(_Segment(segment.keys[kept], segment.values[kept]))
        self._segments = segments

    def rekey(self, change: Callable[[KeyArray], KeyArray]) -> None:
        """Give every key another one, in one pass over all entries."""
        self._segments = [_Segment(change(some.keys), some.values) for some in self._segments]

    def lookup(self, queries: KeyArray, last: KeyArray | None = None) -> tuple[IntArray, IntArray]:
        """All entries of the queried keys.

        Args:
            queries: The keys.
            last: Last key of each query, if queries are ranges of keys.

        Returns:
            Positions in `queries` and the values, one pair per entry, ordered by query and then
            by arrival.
        """
        last = queries if last is None else last
        found = [_expand(segment, *segment.bounds(queries, last)) for segment in self._segments]
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        query = np.concatenate([pair[0] for pair in found])
        value = np.concatenate([pair[1] for pair in found])
        if len(found) > 1:
            order = np.argsort(query, kind="stable")
            query, value = query[order], value[order]
        return query, value

    def sample(
        self,
        queries: IntArray,
        most: int,
        generator: np.random.Generator,
        among: IntArray | None = None,
    ) -> tuple[IntArray, IntArray]:
        """Draw at most `most` entries of each queried key, without replacement.

        The cost depends on the number of drawn entries: if a key has more, they are a systematic
        sample with a random offset and a fixed stride.

        Args:
            queries: The keys.
            most: Most entries per key.
            generator: Source of randomness.
            among: For each key, only draw among this many entries that arrived first.

        Returns:
            As `lookup`.
        """
        total = self.count(queries) if among is None else among
        taken = np.minimum(total, most)
        query = np.repeat(np.arange(len(queries)), taken)
        nth = np.arange(len(query)) - np.repeat(np.cumsum(taken) - taken, taken)
        offset = generator.random(len(queries)) * (1 - 2**-20)  # so that it never rounds up
        stride = (total / np.maximum(taken, 1))[query]
        wanted = ((nth + offset[query]) * stride).astype(np.int64)
        value = np.empty(len(query), np.int64)
        for segment in self._segments:  # the wanted entry lies in one of them
            start, stop = segment.bounds(queries, queries)
            length = (stop - start)[query]
            here = (wanted >= 0) & (wanted < length)
            value[here] = segment.at(start[query[here]] + wanted[here])
            wanted = np.where(here, -1, wanted - length)
        return query, value

    def count(self, queries: KeyArray, last: KeyArray | None = None) -> IntArray:
        """How many entries each queried key has; see `lookup`."""
        last = queries if last is None else last
        total = np.zeros(len(queries), dtype=np.int64)
        for segment in self._segments:
            start, stop = segment.bounds(queries, last)
            total += stop - start
        return total

    def contains(self, queries: KeyArray) -> BoolArray:
        """Which of the queried keys have an entry."""
        return self.count(queries) > 0

    @property
    def segments(self) -> list[int]:
        """Sizes of the segments, oldest first."""
        return [len(segment) for segment in self._segments]

    def __len__(self) -> int:
        return sum(self.segments)


def _merge(older: _Segment, newer: _Segment) -> _Segment:
    """The entries of both; for equal keys, older entries come first."""
    return _Segment(_joined(older.keys, newer.keys), _joined(older.values, newer.values))


def _joined(older: KeyArray, newer: KeyArray) -> npt.NDArray[Any]:
    made: npt.NDArray[Any] = room(len(older) + len(newer), np.result_type(older, newer))
    return np.concatenate([older, newer], out=made)


def _expand(segment: _Segment, start: IntArray, stop: IntArray) -> tuple[IntArray, IntArray]:
    """Turn [start, stop) ranges into one (query, value) pair per entry, without a loop."""
    counts = stop - start
    query = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    position = np.arange(len(query)) - np.repeat(first - start, counts)
    return query, segment.at(position)

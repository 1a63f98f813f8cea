"""A growing multimap from int64 keys to int64 values, in sorted segments.

A new part becomes a segment of its own, at the cost of sorting that part. Segments of similar size
are merged (the logarithmic method), so that n entries in any number of parts never lie in more
than about log2(n) segments and each entry is moved O(log n) times in its life.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dicgrl.graph.arrays import BoolArray, IntArray, lies_close

_FAR = 1 << 18  # keys of a segment that is searched in the order of what is asked
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


class _Segment:
    """Entries in the order of their keys; those of a key are found in a table, or by a search.

    Numbers that fit take 32 bits, and where there is a table it stands for the keys: half of the
    memory of a graph is in its indices.

    Args:
        keys: Sorted, [n].
        values: [n].
    """

    def __init__(self, keys: IntArray, values: IntArray) -> None:
        self._count = len(keys)
        self._values = _narrow(values)
        self._low, self._high = int(keys[0]), int(keys[-1])
        self._keys: IntArray | None = None
        self._starts: IntArray | None = None  # where each number from the lowest key on begins
        if lies_close(self._low, self._high, len(keys)):
            starts = np.full(self._high - self._low + 3, len(keys))
            starts[0] = 0
            np.cumsum(np.bincount(keys - self._low), out=starts[1:-1])
            self._starts = _narrow(starts)
        else:
            self._keys = _narrow(keys)

    @property
    def keys(self) -> IntArray:
        """The keys, as int64."""
        if self._keys is not None:
            return _wide(self._keys)
        assert self._starts is not None
        numbers = np.arange(self._low, self._high + 1)
        return np.repeat(numbers, np.diff(self._starts[:-1]))

    @property
    def values(self) -> IntArray:
        """The values, as int64."""
        return _wide(self._values)

    def at(self, positions: IntArray) -> IntArray:
        """Values at some positions, as int64."""
        return _wide(self._values[positions])

    def __len__(self) -> int:
        return self._count

    def bounds(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        if self._starts is not None:
            # Whatever lies outside has an empty range behind the last entry.
            inside = (queries >= self._low) & (queries <= self._high)
            place = np.where(inside, queries - self._low, len(self._starts) - 2)
            return _wide(self._starts[place]), _wide(self._starts[place + 1])
        assert self._keys is not None
        if self._keys.dtype != queries.dtype:  # else all keys would become wide for the search
            queries = queries.clip(self._low - 1, self._high + 1).astype(self._keys.dtype)
        if self._count < _FAR:
            start, stop = (np.searchsorted(self._keys, queries, side) for side in _SIDES)
            return _wide(start), _wide(stop)
        # In order a search begins where the last one ended, in what is in the cache.
        order = np.argsort(queries)
        found = np.empty((2, len(queries)), np.int64)
        for bound, side in zip(found, _SIDES, strict=True):
            bound[order] = np.searchsorted(self._keys, queries[order], side)
        return found[0], found[1]


def _wide(numbers: npt.NDArray[Any]) -> IntArray:
    """The same numbers in 64 bits."""
    return numbers.astype(np.int64, copy=False)


def _narrow(numbers: IntArray) -> Any:
    """The same numbers in 32 bits where that is possible, and the numbers around them as well."""
    fits = len(numbers) and numbers.min() > _LEAST and numbers.max() < _MOST
    return numbers.astype(np.int32) if fits else numbers


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

    def add(self, keys: IntArray, values: IntArray) -> None:
        """Append entries; equal keys keep their order of arrival."""
        if len(keys) == 0:
            return
        order = np.argsort(keys, kind="stable")
        self._segments.append(_Segment(keys[order], values[order]))
        while len(self._segments) > 1 and (2 * len(self._segments[-1]) >= len(self._segments[-2])):
            newer, older = self._segments.pop(), self._segments.pop()
            self._segments.append(_merge(older, newer))

    def renumber(self, numbers: IntArray) -> None:
        """Give every value another number, in one pass over all entries.

        Args:
            numbers: The new number of each value, in the order of the old ones; -1 where its
                entries leave.

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
        """Remove entries, in one pass over all there are; both below 2^31.

        Example:
            >>> index = SegmentIndex()
            >>> index.add(np.array([7, 3, 7]), np.array([0, 1, 2]))
            >>> index.drop(np.array([7]), np.array([0]))
            >>> index.lookup(np.array([7]))[1].tolist()
            [2]
        """
        gone = (keys << 32) | values
        segments = []
        for segment in self._segments:
            kept = ~np.isin((segment.keys << 32) | segment.values, gone)
            if kept.any():
                segments.append(_Segment(segment.keys[kept], segment.values[kept]))
        self._segments = segments

    def lookup(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """All entries of the queried keys.

        Returns:
            Positions in `queries` and the values, one pair per entry, ordered by query and then
            by arrival.
        """
        found = [_expand(segment, *segment.bounds(queries)) for segment in self._segments]
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
        """At most `most` entries of each queried key, drawn evenly and without repeats.

        The cost follows the entries drawn, not those that exist: entries of a key with more are
        reached by one random offset and a fixed stride, a systematic sample.

        Args:
            queries: The keys.
            most: How many.
            generator: Source of randomness.
            among: Of each key, draw only among so many entries that arrived first.

        Returns:
            As `lookup`.
        """
        total = self.count(queries) if among is None else among
        taken = np.minimum(total, most)
        query = np.repeat(np.arange(len(queries)), taken)
        nth = np.arange(len(query)) - np.repeat(np.cumsum(taken) - taken, taken)
        offset = generator.random(len(queries)) * (1 - 2**-20)  # never rounds up to the next one
        stride = (total / np.maximum(taken, 1))[query]
        wanted = ((nth + offset[query]) * stride).astype(np.int64)
        value = np.empty(len(query), np.int64)
        for segment in self._segments:  # the wanted entry lies in one of them
            start, stop = segment.bounds(queries)
            length = (stop - start)[query]
            here = (wanted >= 0) & (wanted < length)
            value[here] = segment.at(start[query[here]] + wanted[here])
            wanted = np.where(here, -1, wanted - length)
        return query, value

    def count(self, queries: IntArray) -> IntArray:
        """How many entries each queried key has."""
        total = np.zeros(len(queries), dtype=np.int64)
        for segment in self._segments:
            start, stop = segment.bounds(queries)
            total += stop - start
        return total

    def contains(self, queries: IntArray) -> BoolArray:
        """Which of the queried keys have an entry."""
        return self.count(queries) > 0

    @property
    def segments(self) -> list[int]:
        """Sizes of the segments, oldest first."""
        return [len(segment) for segment in self._segments]

    def __len__(self) -> int:
        return sum(self.segments)


def _merge(older: _Segment, newer: _Segment) -> _Segment:
    # A stable sort of two sorted runs is one merge pass (radix or tim sort), older entries first.
    keys = np.concatenate([older.keys, newer.keys])
    order = np.argsort(keys, kind="stable")
    return _Segment(keys[order], np.concatenate([older.values, newer.values])[order])


def _expand(segment: _Segment, start: IntArray, stop: IntArray) -> tuple[IntArray, IntArray]:
    """Turn [start, stop) ranges into one (query, value) pair per entry, without a loop."""
    counts = stop - start
    query = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    position = np.arange(len(query)) - np.repeat(first - start, counts)
    return query, segment.at(position)

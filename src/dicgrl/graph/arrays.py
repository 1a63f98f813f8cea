"""Array types, helpers for arrays of ids, and an array that grows at its end."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import TypeIs

from dicgrl.common.room import room
from dicgrl.errors import UserError

#: Ids and counts: int64, or int32 if there are many. Combinations of ids are int64.
IntArray = npt.NDArray[np.signedinteger[Any]]
#: Keys of an index: whole numbers, or pairs of them as complex numbers (`graph.knowledge.keys`).
KeyArray = IntArray | npt.NDArray[np.complex128]
FloatArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]
_Scalar = TypeVar("_Scalar", bound=np.generic)
_DENSE = 4  # entries of a table per value
_MANY = 1 << 20  # rows


def are_pairs(keys: KeyArray) -> TypeIs[npt.NDArray[np.complex128]]:
    """Whether keys are pairs of whole numbers."""
    return keys.dtype.kind == "c"


def narrow(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert whole numbers to 32 bits if all of them fit; anything else is returned as it is.

    Example:
        >>> narrow(np.array([1, 2])).dtype, narrow(np.array([1 << 40])).dtype
        (dtype('int32'), dtype('int64'))
    """
    if numbers.dtype != np.int64 or not numbers.size:
        return numbers
    bounds = np.iinfo(np.int32)
    fits = numbers.min() >= bounds.min and numbers.max() <= bounds.max
    return numbers.astype(np.int32) if fits else numbers


def ids_in(ids: range, dtype: npt.DTypeLike = np.int64) -> IntArray:
    """The ids of a range as an array, which may be empty.

    Example:
        >>> ids_in(range(2, 4))
        array([2, 3])
    """
    return np.arange(ids.start, ids.stop, dtype=dtype)


def distinct(*values: IntArray) -> IntArray:
    """The sorted distinct values of several arrays.

    Example:
        >>> distinct(np.array([3, 1]), np.array([1, 2]))
        array([1, 2, 3])
    """
    table = _table(*values)
    if table is not None:
        low, there = table
        return np.flatnonzero(there) + low
    ordered = np.concatenate(values)
    ordered.sort()  # np.unique hashes and then sorts, which is much slower
    return ordered[_first_of_each(ordered)].astype(np.int64, copy=False)


def count_in(values: IntArray, queries: IntArray) -> IntArray:
    """How often each query occurs among sorted values."""
    last, first = (np.searchsorted(values, queries, side) for side in ("right", "left"))
    return (last - first).astype(np.int64, copy=False)


def mentions(ends: IntArray) -> IntArray:
    """The nodes at the ends [m, 2] of links, with repeats; a self loop counts once."""
    return np.concatenate([ends[:, 0], ends[ends[:, 0] != ends[:, 1], 1]])


def in_order_of_parts(rows: IntArray, sizes: IntArray) -> IntArray:
    """Convert rows counted within parts to positions if parts are concatenated.

    Args:
        rows: Rows, in any order.
        sizes: Number of rows of each part.

    Example:
        >>> in_order_of_parts(np.array([0, 1, 2, 0, 1, 2]), np.array([2, 1]))
        array([0, 1, 3, 4, 2, 5])
    """
    part = np.repeat(np.arange(len(sizes)), sizes)
    return np.argsort(part[rows], kind="stable")


def lies_close(low: int, high: int, count: int) -> bool:
    """Whether a table from the lowest to the highest value is faster than sort and search."""
    return high - low < _DENSE * count


class Groups:
    """Groups the positions of an array by value.

    Values that are close together are counted in a table, others are sorted once.

    Attributes:
        values: The distinct values, sorted.
        group: For each position of the array, the index of its value in `values`.

    Example:
        >>> groups = Groups(np.array([7, 5, 7]))
        >>> groups.values, groups.sum(np.array([1.0, 2.0, 3.0]))
        (array([5, 7]), array([2., 4.]))
    """

    def __init__(self, values: IntArray) -> None:
        table = _table(values)
        if table is not None:
            low, there = table
            self.values = np.flatnonzero(there) + low
            self.group = np.cumsum(there)[values - low] - 1
        else:
            order = np.argsort(values)
            is_first = _first_of_each(values[order])
            self.values = values[order[is_first]]
            self.group = np.empty(len(values), np.int64)
            self.group[order] = np.cumsum(is_first) - 1

    def union(self, bits: IntArray) -> IntArray:
        """Bitwise union in each group."""
        united = np.zeros(len(self.values), np.int64)
        np.bitwise_or.at(united, self.group, bits)
        return united

    def sum(self, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Sum in each group."""
        return np.bincount(self.group, numbers, len(self.values)).astype(np.float64)


def _table(*values: IntArray) -> tuple[int, BoolArray] | None:
    """The lowest value, and which numbers from it on occur; None if values are far apart."""
    filled = [some for some in values if len(some)]
    low = min((int(some.min()) for some in filled), default=0)
    high = max((int(some.max()) for some in filled), default=-1)
    if not lies_close(low, high, sum(map(len, filled))):
        return None
    there = np.zeros(high - low + 1, np.bool_)
    for some in filled:
        there[some - low if low else some] = True
    return low, there


def _first_of_each(ordered: IntArray) -> BoolArray:
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first


def as_triples(rows: npt.ArrayLike, what: str = "triples") -> IntArray:
    """Convert rows, possibly none, to an array of shape [n, 3]: int64, or int32 if they are.

    Args:
        rows: The rows.
        what: Their name in messages.

    Raises:
        UserError: They have another shape, or are not whole numbers.

    Example:
        >>> as_triples([]).shape
        (0, 3)
    """
    if isinstance(rows, np.ndarray) and rows.dtype == np.int32 and rows.shape[1:] == (3,):
        return np.ascontiguousarray(rows)
    return _as_rows(rows, (3,), what)


def as_edges(rows: npt.ArrayLike, what: str = "edges") -> IntArray:
    """Convert rows, possibly none, to an int64 array of shape [n, 2]; see `as_triples`."""
    return _as_rows(rows, (2,), what)


def as_ids(ids: npt.ArrayLike, what: str = "ids") -> IntArray:
    """Convert ids, possibly none, to an int64 array of shape [n]; see `as_triples`."""
    return _as_rows(ids, (), what)


def _as_rows(rows: npt.ArrayLike, width: tuple[int, ...], what: str) -> IntArray:
    array = np.asarray(rows)
    if array.size == 0:
        return np.empty((0, *width), dtype=np.int64)
    if array.ndim != 1 + len(width) or array.shape[1:] != width:
        shape = ", ".join(["n", *map(str, width)])
        raise UserError(f"{what} must have shape [{shape}], not {list(array.shape)}")
    if array.dtype.kind not in "iu":
        broken = array != np.trunc(array) if array.dtype.kind == "f" else np.zeros(1, np.bool_)
        row = int(np.argmax(broken.reshape(len(broken), -1).any(axis=1)))
        raise UserError(
            f"{what} must be whole numbers, not {array.dtype}: row {row} is {array[row].tolist()}"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def spread(length: int, most: int) -> IntArray:
    """At most so many positions below a length, evenly spread from the first to the last.

    Example:
        >>> spread(9, 3), spread(2, 3)
        (array([0, 4, 8]), array([0, 1]))
    """
    count = min(length, most)
    return np.arange(count, dtype=np.int64) * (length - 1) // max(count - 1, 1)


class GrowingArray(Generic[_Scalar]):
    """Rows that are appended; the buffer doubles, so appending is amortised O(rows).

    Much room is reserved at once, as memory is only used when it is written to.

    All other changes are rare, and cost a copy.

    Args:
        width: Shape of one row, `()` for scalars.
        dtype: The element type.

    Example:
        >>> rows = GrowingArray((3,), np.dtype(np.int64))
        >>> rows.append(np.array([[0, 0, 1], [1, 0, 2]]))
        >>> rows.view().shape
        (2, 3)
    """

    def __init__(self, width: tuple[int, ...], dtype: np.dtype[_Scalar]) -> None:
        self._buffer: npt.NDArray[_Scalar] = np.empty((0, *width), dtype=dtype)
        self._length = 0

    def fork(self) -> GrowingArray[_Scalar]:
        """A copy that can be extended independently.

        Room for more is shared, so that only one of the two may be extended while both are in use.
        """
        made: GrowingArray[_Scalar] = GrowingArray(self._buffer.shape[1:], self._buffer.dtype)
        made._buffer, made._length = self._buffer, self._length
        return made

    def append(self, rows: npt.NDArray[Any], kept: BoolArray | None = None) -> None:
        """Append `rows`, or those that are `kept` [n], block by block."""
        needed = self._length + (len(rows) if kept is None else int(np.count_nonzero(kept)))
        if needed > len(self._buffer):
            wanted = max(needed, 2 * len(self._buffer), needed * 5 // 4 if needed > _MANY else 0)
            grown = room((wanted, *self._buffer.shape[1:]), self._buffer.dtype)
            grown[: self._length] = self._buffer[: self._length]
            self._buffer = grown
        for first in range(0, len(rows), _MANY):
            some = rows[first : first + _MANY]
            if kept is not None:
                some = some[kept[first : first + _MANY]]
            self._buffer[self._length : self._length + len(some)] = some
            self._length += len(some)

    def keep(self, kept: BoolArray) -> None:
        """Drop the rows where `kept` [n] is False; existing views do not change."""
        self.replace(self._buffer[: self._length], kept)

    def replace(self, rows: npt.NDArray[Any], kept: BoolArray | None = None) -> None:
        """Replace all rows by others, or by those `kept` of them; existing views do not change."""
        self._buffer, self._length = self._buffer[:0], 0
        self.append(rows, kept)

    def put(self, at: IntArray, rows: npt.NDArray[Any], *, shared: bool = True) -> None:
        """Overwrite some rows.

        Args:
            at: Positions of the rows.
            rows: The new rows.
            shared: Whether existing views must not change, which costs a copy of all rows.
        """
        if shared:
            self.replace(self._buffer[: self._length])
        self._buffer[at] = rows

    def view(self) -> npt.NDArray[_Scalar]:
        """All rows so far, read-only and without a copy."""
        rows = self._buffer[: self._length]
        rows.flags.writeable = False
        return rows

    def __len__(self) -> int:
        return self._length

"""Array types, and an array that grows at its end at the cost of what is appended."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]
_Scalar = TypeVar("_Scalar", bound=np.generic)


def ids_in(ids: range) -> IntArray:
    """The ids of a range as an int64 array, also where it is empty.

    Example:
        >>> ids_in(range(2, 4))
        array([2, 3])
    """
    return np.arange(ids.start, ids.stop, dtype=np.int64)


def as_triples(rows: npt.ArrayLike) -> IntArray:
    """An int64 array of shape [n, 3], also where `rows` is empty.

    Example:
        >>> as_triples([]).shape
        (0, 3)
    """
    return _as_rows(rows, 3, "triples")


def as_edges(rows: npt.ArrayLike) -> IntArray:
    """An int64 array of shape [n, 2], also where `rows` is empty."""
    return _as_rows(rows, 2, "edges")


def _as_rows(rows: npt.ArrayLike, width: int, what: str) -> IntArray:
    array = np.asarray(rows, dtype=np.int64)
    if array.size == 0:
        return np.empty((0, width), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{what} must have shape [n, {width}], not {list(array.shape)}")
    return np.ascontiguousarray(array)


class GrowingArray(Generic[_Scalar]):
    """Rows that are only ever appended; the buffer doubles, so appending is amortised O(rows).

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

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Copy `rows` to the end."""
        needed = self._length + len(rows)
        if needed > len(self._buffer):
            grown = np.empty(
                (max(needed, 2 * len(self._buffer)), *self._buffer.shape[1:]), self._buffer.dtype
            )
            grown[: self._length] = self._buffer[: self._length]
            self._buffer = grown
        self._buffer[self._length : needed] = rows
        self._length = needed

    def view(self) -> npt.NDArray[_Scalar]:
        """All rows so far, read-only and without a copy."""
        rows = self._buffer[: self._length]
        rows.flags.writeable = False
        return rows

    def __len__(self) -> int:
        return self._length

"""The rows that are left after a history of arrivals and removals, computed by one sort.

A row that arrived is left unless a later change took it back. Nothing is indexed on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dicgrl.graph.arrays import IntArray, KeyArray

_NO_IDS: IntArray = np.empty(0, np.int32)


class Survivors:
    """Rows that arrive with parts, and may be removed later.

    Args:
        keys: Gives each row of several arrays a number of its own, the same for equal rows.
        none: No rows, of the right shape.

    Example:
        >>> nodes = Survivors(lambda *rows: rows, np.empty(0, np.int64))
        >>> nodes.add(np.array([5, 7]), part=0)
        >>> nodes.forget(np.array([7]), before=1)
        >>> nodes.add(np.array([8, 7]), part=1)
        >>> nodes.settled(2)
        (array([5, 8, 7]), [0, 1, 3])
    """

    def __init__(self, keys: Callable[..., Sequence[KeyArray]], none: IntArray) -> None:
        self._keys, self._none = keys, none
        self._rows, self._parts = [none], [_NO_IDS]
        self._forgotten, self._before = [none], [_NO_IDS]

    def add(self, rows: IntArray, part: int | IntArray) -> None:
        """Add rows with a part, or each with its own part."""
        if len(rows):
            self._rows.append(rows)
            self._parts.append(np.broadcast_to(np.asarray(part, np.int32), len(rows)))

    def forget(self, rows: IntArray, before: int) -> None:
        """Remove rows that arrived with a part before this one."""
        if not len(rows):
            return
        self._forgotten.append(rows)
        self._before.append(np.full(len(rows), before))

    def rewrite(
        self, change: Callable[[IntArray], IntArray], *, once: bool
    ) -> tuple[IntArray, IntArray]:
        """Replace all rows so far.

        Args:
            change: Gives a row for each row.
            once: Of rows that are the same then, only the first one stays.

        Returns:
            The rows that did not stay, and the parts that they came with.
        """
        rows, parts = self._settle()
        rows = change(rows)
        stays = np.ones(len(rows), np.bool_)
        if once:
            stays[:] = False
            (keys,) = self._keys(rows)
            stays[np.unique(keys, return_index=True)[1]] = True
        self._rows, self._parts = [rows[stays]], [parts[stays]]
        return rows[~stays], parts[~stays]

    def settled(self, num_parts: int) -> tuple[IntArray, list[int]]:
        """The rows that are left, oldest first, and the first row of each part; the end is last."""
        rows, parts = self._settle()
        wanted = np.arange(num_parts + 1, dtype=parts.dtype)  # of another type, all would be copied
        return rows, np.searchsorted(parts, wanted).tolist()

    def _settle(self) -> tuple[IntArray, IntArray]:
        rows, parts = _joined(self._rows), _joined(self._parts)
        before = np.concatenate(self._before)
        if len(before):
            keys, own = self._keys(np.concatenate(self._forgotten), rows)
            order = np.argsort(keys, kind="stable")  # of equal keys, the last one left last
            at = np.searchsorted(keys[order], own, side="right") - 1
            left = (at < 0) | (keys[order][at] != own) | (parts >= before[order][at])
            rows, parts = rows[left], parts[left]
        if (parts[1:] < parts[:-1]).any():  # some rows were added later
            order = np.argsort(parts, kind="stable")
            rows, parts = rows[order], parts[order]
        self._rows, self._parts = [rows], [parts]
        self._forgotten, self._before = [self._none], [_NO_IDS]
        return rows, parts


def _joined(arrays: list[IntArray]) -> IntArray:
    """Concatenate arrays, the first of which is empty, without a copy if there is only one more."""
    filled = [array for array in arrays if len(array)]
    return filled[0] if len(filled) == 1 else np.concatenate(filled or arrays)

"""A tensor that grows at its end at the cost of what is appended, on any device."""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.common.room import room


class GrowingTensor:
    """Rows that are appended part by part; older ones are copied only when the room is doubled.

    Args:
        device: Where they lie.

    Example:
        >>> rows = GrowingTensor("cpu")
        >>> rows.append(torch.tensor([1, 2]))
        >>> rows.append(torch.tensor([3]))
        >>> rows.view().tolist()
        [1, 2, 3]
    """

    def __init__(self, device: torch.device | str) -> None:
        self._device = torch.device(device)
        self._room: Tensor | None = None
        self._count = 0

    def __len__(self) -> int:
        """Number of rows."""
        return self._count

    def append(self, rows: Tensor) -> None:
        """Add rows [n, ...] of the shape and kind of all others."""
        count = self._count + len(rows)
        self.reserve(len(rows), rows)[self._count : count] = rows
        self._count = count

    def reserve(self, count: int, like: Tensor) -> Tensor:
        """Make room for so many more rows like these at once; gives all of the room."""
        count += self._count
        if self._room is None or count > len(self._room):
            wanted = count if self._room is None else max(count, 2 * len(self._room))
            longer = _room((wanted, *like.shape[1:]), like.dtype, self._device)
            if self._room is not None:
                longer[: self._count] = self._room[: self._count]
            self._room = longer
        return self._room

    def view(self) -> Tensor:
        """All rows; not to be written to."""
        assert self._room is not None, "nothing was appended"
        return self._room[: self._count]


def _room(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Room for rows; on the host it may be a file."""
    if device.type == "cpu" and dtype == torch.float32:
        return torch.from_numpy(room(shape, "float32"))
    return torch.empty(shape, dtype=dtype, device=device)

"""A table of trainable rows that grows, and whose gradients touch only the rows that were read.

A step on a table of five million rows costs what a step on fifteen thousand costs: reading rows
records which they were, the backward pass adds their gradients into a buffer that is zero
elsewhere, and the optimiser visits those rows alone. Nothing here waits for the device.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Table:
    """Rows of numbers with an optimiser's state beside them; rows are only ever appended.

    The buffers double when they are full, so that growing costs what is added (amortised), and an
    old row and its state stay bit for bit as they were.

    Args:
        width: Length of a row.
        device: Where the rows live.
        dtype: Their type.

    Example:
        >>> table = Table(2)
        >>> table.grow(torch.zeros(3, 2))
        >>> table.gather(torch.tensor([2, 0, 2])).sum().backward()
        >>> table.gradient[:3].tolist()
        [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]
    """

    def __init__(
        self,
        width: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.width = width
        self._length = 0
        self._buffers = {
            "rows": torch.empty(0, width, device=device, dtype=dtype),
            "gradient": torch.zeros(0, width, device=device, dtype=dtype),
        }
        self._touched: list[Tensor] = []
        self._movable: Tensor | None = None
        self._slowed = False
        self._resting: tuple[Tensor, Tensor] | None = None  # paces of all rows, awake and not
        self._woken: Tensor | None = None
        self._claims: Tensor | None = None
        #: Autograd calls our backward only if some input asks for a gradient.
        self.anchor = torch.zeros((), device=device, dtype=dtype, requires_grad=True)

    def gains(self, rows: int) -> int:
        """Rows that there will be memory for besides, once so many are appended."""
        room = len(self._buffers["rows"])
        needed = self._length + rows
        return 0 if needed <= room else max(needed, 2 * self._length) - room

    def grow(self, rows: Tensor) -> None:
        """Append rows [m, width]; their optimiser state starts at zero and they may change."""
        needed = self._length + len(rows)
        gained = self.gains(len(rows))
        if gained:
            capacity = len(self._buffers["rows"]) + gained
            for name, buffer in self._buffers.items():
                grown = buffer.new_zeros(capacity, *buffer.shape[1:])
                grown[: self._length] = buffer[: self._length]
                self._buffers[name] = grown
        self._buffers["rows"][self._length : needed] = rows
        self._length = needed

    def adopt(self, buffers: dict[str, Tensor]) -> None:
        """Take tensors as the rows of an empty table and their state; they are not copied.

        Raises:
            ValueError: They are not of one length, or of other rows.
        """
        rows = buffers["rows"]
        if rows.shape[1:] != (self.width,) or rows.dtype != self.rows.dtype:
            raise ValueError(f"rows of {tuple(rows.shape)} where {self.width} numbers are expected")
        if any(buffer.dim() != 2 or len(buffer) != len(rows) for buffer in buffers.values()):
            raise ValueError("the state of rows has another length than they")
        self._length = len(rows)
        self._buffers = {**buffers, "gradient": torch.zeros_like(rows)}

    def patch(self, name: str, ids: Tensor | None, values: Tensor) -> None:
        """Put values into some rows of a buffer, or into all for None; rows are made as needed."""
        self.clear()
        needed = len(values) if ids is None else int(ids.max()) + 1 if len(ids) else 0
        if needed > self._length:
            self.grow(self.rows.new_zeros(needed - self._length, self.width))
        place = self.rows.device
        rows = slice(None) if ids is None else ids.to(place)
        self.state(name, values.shape[1])[rows] = values.to(place)

    def restrict(self, ids: Tensor | None, pace: Tensor | None = None) -> None:
        """Let only some rows change; the others keep their bits whatever gradient they are given.

        Args:
            ids: Distinct rows that may change; None for all. Rows that grow later are not among
                them until this is called again.
            pace: Learning rate of each of these rows as a multiple of the others', above 0; 1
                unless given.
        """
        self._resting = self._woken = None
        if self._slowed:
            self._paces().zero_()
            self._slowed = False
        if self._movable is not None:
            self._paces().index_fill_(0, self._movable, 0)
        self._movable = ids
        if ids is not None:
            self._paces()[ids, 0] = 1.0 if pace is None else pace

    def slow(self, pace: Tensor) -> None:
        """Let all rows change, each at its own pace [n], above 0, until `restrict` is called."""
        self.restrict(None)
        self._paces()[:, 0] = pace
        self._slowed = True

    def rest(self, ids: Tensor, share: float = 0.0) -> None:
        """Let rows that may change rest until `restrict` is called: they do where `wake` says so.

        Args:
            ids: The rows.
            share: Of their pace that they keep while they rest.

        Example:
            >>> table = Table(2)
            >>> table.grow(torch.zeros(3, 2))
            >>> table.restrict(torch.tensor([0, 1, 2]))
            >>> table.rest(torch.tensor([0, 1]))
            >>> table.wake(torch.tensor([1]))
            >>> table.pace()[:, 0].tolist()
            [0.0, 1.0, 1.0]
        """
        paces = self._paces()
        awake = paces.clone()
        paces.index_copy_(0, ids, share * awake.index_select(0, ids))
        self._resting, self._woken = (awake, paces.clone()), None

    def wake(self, ids: Tensor) -> None:
        """Of the rows that rest let these change, [m], with repeats, and no others.

        On a GPU it does the same each time, so that a step may be recorded with it.
        """
        if self._resting is None:
            return
        paces, (awake, asleep) = self._paces(), self._resting
        if paces.is_cuda:
            paces.copy_(asleep)
        elif self._woken is not None:
            paces.index_copy_(0, self._woken, asleep.index_select(0, self._woken))
        paces.index_copy_(0, ids, awake.index_select(0, ids))
        self._woken = ids

    def pace(self, ids: Tensor | None = None) -> Tensor | None:
        """How fast rows (all for None) may change, [m, 1], 0 for not at all; None where all may.

        Where all may at a pace of their own, it is given as well.
        """
        if self._movable is None and not self._slowed:
            return None
        return self._paces() if ids is None else self._paces()[ids]

    def _paces(self) -> Tensor:
        return self.state("pace", width=1)

    def gather(self, ids: Tensor) -> Tensor:
        """Rows of the ids, [*ids.shape, width], differentiable."""
        if not torch.is_grad_enabled():
            return self.rows[ids]
        gathered: Tensor = _Gather.apply(self.anchor, self, ids)  # type: ignore[no-untyped-call]
        return gathered

    def state(self, name: str, width: int | None = None) -> Tensor:
        """A buffer that grows with the rows, zero where new; made when first asked for.

        Args:
            name: Its name, unique in the table.
            width: Row length of the buffer; the table's own unless given.
        """
        if name not in self._buffers:
            rows = self._buffers["rows"]
            self._buffers[name] = rows.new_zeros(len(rows), self.width if width is None else width)
        return self._buffers[name][: self._length]

    def accumulate(self, ids: Tensor, gradient: Tensor) -> None:
        """Add gradients of rows; an id may occur more than once."""
        flat = ids.reshape(-1)
        self._buffers["gradient"].index_add_(0, flat, gradient.reshape(-1, self.width))
        self.touch(flat)

    def touch(self, ids: Tensor) -> None:
        """Record rows [m] whose gradient was added to `gradient` directly."""
        self._touched.append(ids)

    def touched(self) -> Tensor | None:
        """Ids of the rows with a gradient, with repeats; None where there are none."""
        if len(self._touched) > 1:
            self._touched = [torch.cat(self._touched)]
        return self._touched[0] if self._touched else None

    def clear(self) -> None:
        """Set the gradient back to zero, at the cost of the rows that have one."""
        ids = self.touched()
        if ids is None:
            return
        if len(ids) < self._length:
            self._buffers["gradient"].index_fill_(0, ids, 0)
        else:
            self._buffers["gradient"].zero_()
        self.forget()

    def forget(self) -> None:
        """Take the touched rows off the record; their gradients were cleared already."""
        self._touched = []

    def claims(self) -> Tensor:
        """Zeros for the optimiser's kernel to mark rows in, [n]; they are no state."""
        if self._claims is None or len(self._claims) < self._length:
            rows = self._buffers["rows"]
            self._claims = torch.zeros(len(rows), device=rows.device, dtype=torch.int32)
        return self._claims

    def snapshot(self) -> dict[str, Tensor]:
        """Copies of the rows and the optimiser's state."""
        return self.read(None)

    def read(self, ids: Tensor | None, *, state: bool = True) -> dict[str, Tensor]:
        """Copies of some rows, and their state, by buffer; of all rows for None."""
        return {
            name: buffer[: self._length].clone() if ids is None else buffer.index_select(0, ids)
            for name, buffer in self._buffers.items()
            if name == "rows" or (state and name not in ("gradient", "pace"))
        }

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        """Put back a snapshot taken since the table last grew; gradients are dropped.

        State that was made after the snapshot is zero again, as if it had never been used.
        """
        self.write(None, snapshot)

    def write(self, ids: Tensor | None, values: dict[str, Tensor]) -> None:
        """Put back what `read` gave for the same rows; gradients are dropped."""
        self.clear()
        rows = slice(self._length) if ids is None else ids
        for name in values.keys() - self._buffers.keys():
            self.state(name, values[name].shape[1])
        for name, buffer in self._buffers.items():
            if name in values:
                buffer[rows] = values[name]
            elif name not in ("gradient", "pace"):
                buffer[rows] = 0

    @property
    def movable(self) -> Tensor | None:
        """Rows that may change; None for all."""
        return self._movable

    @property
    def frozen(self) -> bool:
        """Whether no row may change."""
        return self._movable is not None and not len(self._movable)

    @property
    def rows(self) -> Tensor:
        """All rows, [n, width]: a view that shares memory."""
        return self._buffers["rows"][: self._length]

    @property
    def gradient(self) -> Tensor:
        """Gradients of all rows so far in this step, [n, width]; of frozen rows not to be used."""
        return self._buffers["gradient"][: self._length]

    def __len__(self) -> int:
        return self._length


class RowCopies:
    """Copies of the rows of a table that may change, taken before they do.

    Call `cover` whenever more rows may move: until then they could not have changed.

    Args:
        table: The table.
        state: Copy the optimiser's state as well, for `restore`.
    """

    def __init__(self, table: Table, *, state: bool = True) -> None:
        self.table = table
        self._state = state
        self._none = torch.empty(0, dtype=torch.long, device=table.rows.device)
        self._movable: Tensor | None = self._none
        self.copies: list[tuple[Tensor, dict[str, Tensor]]] = []

    def cover(self) -> None:
        """Copy the rows that may change now and were not copied before."""
        table = self.table
        if table.movable is self._movable:
            return
        self._movable = table.movable
        ids = table.movable
        if ids is None:
            ids = torch.arange(len(table), device=self._none.device)
            if not self.copies:  # all of them, which is quicker than one by one
                self.copies.append((ids, table.read(None, state=self._state)))
                return
        if self.copies:
            ids = ids[~torch.isin(ids, torch.cat([copied for copied, _ in self.copies]))]
        self.copies.append((ids, table.read(ids, state=self._state)))

    def retake(self) -> None:
        """Forget the copies and copy the rows that may change as they are now."""
        self._movable, self.copies = self._none, []
        self.cover()

    def restore(self) -> None:
        """Put every copied row back."""
        for ids, values in self.copies:
            self.table.write(ids, values)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, _anchor: Tensor, table: Table, ids: Tensor) -> Tensor:
        ctx.table = table
        ctx.save_for_backward(ids)
        return table.rows[ids]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        (ids,) = ctx.saved_tensors
        ctx.table.accumulate(ids, gradient)
        return None, None, None

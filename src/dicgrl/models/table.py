"""A growing table of trainable rows, whose gradients only touch the rows that were read.

A step on a table of five million rows costs as much as one on fifteen thousand: reading rows
records them, the backward pass adds their gradients to a buffer that is zero elsewhere, and the
optimiser only visits these rows. Nothing here waits for the device.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from dicgrl.models.gradients import Gather, TouchedGradients, places_of
from dicgrl.models.rows import longer


class Table:
    """Rows of numbers with optimiser state; rows are only ever appended.

    Buffers double when they are full, so that the amortised cost of growing depends on what is
    added. Old rows and their state stay the same bit for bit.

    Attributes:
        dense_bytes: Size from which on only touched rows have a gradient.
        doubled_bytes: Size from which on a full buffer grows by a sixteenth instead of doubling.

    Args:
        width: Length of a row.
        device: Device of the rows.
        dtype: Type of the rows; those of 16 bits are read and trained as 32 bits.
        dense: Whether all rows have a gradient, whatever the size of the table.

    Example:
        >>> table = Table(2)
        >>> table.grow(torch.zeros(3, 2))
        >>> table.gather(torch.tensor([2, 0, 2])).sum().backward()
        >>> table.gradient[:3].tolist()
        [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]
    """

    dense_bytes: ClassVar[int] = 1 << 30
    doubled_bytes: ClassVar[int] = 1 << 30

    def __init__(
        self,
        width: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        *,
        dense: bool = False,
    ) -> None:
        self.width = width
        self._dense, self._length = dense, 0
        self._short = dtype in (torch.bfloat16, torch.float16)
        #: The type of rows when they are read, and of gradients and state.
        self.learned = torch.float32 if self._short else dtype
        self._buffers = {"rows": torch.empty(0, width, device=device, dtype=dtype)}
        self._touched: list[Tensor] = []
        self._places: TouchedGradients | None = None
        self._prepare_gradients()
        self._movable: Tensor | None = None
        self._slowed = False
        self._resting: tuple[Tensor, Tensor] | None = None  # paces of all rows, awake and resting
        self._woken: Tensor | None = None
        self._claims: Tensor | None = None
        #: Autograd only calls our backward if some input requires a gradient.
        self.anchor = torch.zeros((), device=device, dtype=self.learned, requires_grad=True)

    def gains(self, rows: int) -> int:
        """How many further rows will have memory after `rows` rows are appended."""
        room = len(self._buffers["rows"])
        needed = self._length + rows
        if needed <= room:
            return 0
        if needed * self.row_bytes > self.doubled_bytes:  # twice as many might not fit
            return needed + needed // 16 - room
        return max(needed, 2 * self._length) - room

    def reserve(self, rows: int) -> None:
        """Make room for further rows."""
        if not (gained := self.gains(rows)):
            return
        if self.sparse:
            self.clear()  # rows will get new places
        capacity = len(self._buffers["rows"]) + gained
        for name in list(self._buffers):  # one by one, as old and new may not fit together
            self._buffers[name] = longer(self._buffers.pop(name), capacity, self._length)
        self._prepare_gradients()

    def grow(self, rows: Tensor) -> None:
        """Append rows [m, width], which may change; their optimiser state is zero."""
        self.reserve(len(rows))
        self._buffers["rows"][self._length : self._length + len(rows)] = rows
        self._length += len(rows)

    def adopt(self, buffers: dict[str, Tensor]) -> None:
        """Use tensors, without copying them, as the rows and state of an empty table.

        Raises:
            ValueError: They differ in length, or rows have another width.
        """
        rows = buffers["rows"]
        if rows.shape[1:] != (self.width,) or rows.dtype != self.rows.dtype:
            raise ValueError(f"rows of {tuple(rows.shape)} where {self.width} numbers are expected")
        if any(buffer.dim() != 2 or len(buffer) != len(rows) for buffer in buffers.values()):
            raise ValueError("rows and their state differ in length")
        self._length = len(rows)
        self._buffers = dict(buffers)
        self._prepare_gradients()

    def patch(self, name: str, ids: Tensor | None, values: Tensor) -> None:
        """Set some rows of a buffer, or all if `ids` is None; missing rows are appended."""
        self.clear()
        needed = len(values) if ids is None else int(ids.max()) + 1 if len(ids) else 0
        if needed > self._length:
            self.grow(self.rows.new_zeros(needed - self._length, self.width))
        rows = slice(None) if ids is None else ids.to(self.rows.device)
        self.state(name, values.shape[1])[rows] = values.to(self.rows.device)

    def put(self, ids: Tensor, values: Tensor) -> None:
        """Set rows [m] to values [m, width] of the type of the table."""
        self.rows[ids] = values.to(self.rows.dtype)

    def _prepare_gradients(self) -> None:
        """Give each row a gradient while the table is small, else only touched rows."""
        rows = self._buffers["rows"]
        large = rows.numel() * rows.element_size() > self.dense_bytes
        if self._short or (large and not self._dense):
            if self._buffers.pop("gradient", None) is not None:
                self._touched = []
            if self._places is None:
                self._places = TouchedGradients(self.width, rows.device)
        elif "gradient" not in self._buffers:
            self._buffers["gradient"] = torch.zeros_like(rows)

    def restrict(self, ids: Tensor | None, pace: Tensor | None = None) -> None:
        """Let only some rows change; the others stay the same whatever their gradient.

        Args:
            ids: Distinct rows that may change; None for all. Rows that are appended later may not
                change until this is called again.
            pace: Learning rate of each of these rows as a multiple of the usual one, above 0; 1 by
                default.
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
        """Let all rows change, each at its own pace [n], until `restrict` is called."""
        self.restrict(None)
        self._paces()[:, 0] = pace
        self._slowed = True

    def rest(self, ids: Tensor, share: float = 0.0) -> None:
        """Let rows rest until `restrict` is called: they only change in steps that `wake` them.

        Args:
            ids: The rows, which may change.
            share: Share of their pace that they keep while resting.

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
        """Of the resting rows, let only these change, [m]; ids may be repeated.

        On a GPU the work is the same each time, so that it can be part of a recorded step.
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
        """How fast rows (all if None) may change, [m, 1], 0 for frozen ones.

        None if all rows may change at the usual rate.
        """
        if self._movable is None and not self._slowed:
            return None
        return self._paces() if ids is None else self._paces()[ids]

    def _paces(self) -> Tensor:
        return self.state("pace", width=1)

    def gather(self, ids: Tensor) -> Tensor:
        """Rows by id, [*ids.shape, width], differentiable."""
        if not torch.is_grad_enabled():
            return self.rows[ids].to(self.learned)
        gathered: Tensor = Gather.apply(self.anchor, self, ids)  # type: ignore[no-untyped-call]
        return gathered

    def state(self, name: str, width: int | None = None) -> Tensor:
        """A buffer that grows with the rows, zero in new rows; created when first used.

        Args:
            name: Name of the buffer, unique in the table.
            width: Row length of the buffer; that of the table by default.
        """
        if name not in self._buffers:
            shape = len(self._buffers["rows"]), self.width if width is None else width
            self._buffers[name] = self._buffers["rows"].new_zeros(shape, dtype=self.learned)
        return self._buffers[name][: self._length]

    def has(self, name: str) -> bool:
        """Whether there is such a buffer."""
        return name in self._buffers

    def drop(self, name: str) -> None:
        """Delete a buffer, if it exists; when used again it is zero."""
        self._buffers.pop(name, None)

    def accumulate(self, ids: Tensor, gradient: Tensor) -> None:
        """Add gradients of rows; ids may be repeated."""
        flat = ids.reshape(-1)
        if self._places is not None:
            places = places_of(flat, self.claim(flat))
            self._places.rows.index_add_(0, places, gradient.reshape(-1, self.width))
            return
        self._buffers["gradient"].index_add_(0, flat, gradient.reshape(-1, self.width))
        self.touch(flat)

    def pull(self, gradient: Tensor, first: int = 0) -> None:
        """Add the gradient of consecutive rows, [m, width], beginning with `first`."""
        ids = torch.arange(first, first + len(gradient), device=gradient.device)
        if self._places is not None:
            self.accumulate(ids, gradient)
            return
        self.gradient[first : first + len(gradient)].add_(gradient)
        self.touch(ids)

    def touch(self, ids: Tensor) -> None:
        """Record rows [m] whose gradient was added to `gradient` directly."""
        self._touched.append(ids)

    def claim(self, ids: Tensor) -> Tensor:
        """Touch rows [m] of a `sparse` table, and return the `claims` with their places."""
        assert self._places is not None
        self.touch(ids)
        return self._places.claim(ids, self.claims())

    def touched(self) -> Tensor | None:
        """Ids of the rows with a gradient, possibly repeated; None if there are none.

        In a `sparse` table they are in the order of their places.
        """
        if len(self._touched) > 1:
            self._touched = [torch.cat(self._touched)]
        return self._touched[0] if self._touched else None

    def gradient_of(self, ids: Tensor) -> Tensor:
        """Gradients of touched rows, [m, width]: a copy."""
        if self._places is None:
            return self.gradient.index_select(0, ids)
        return self._places.rows.index_select(0, places_of(ids, self.claims()))

    def add_gradient(self, ids: Tensor, gradient: Tensor) -> None:
        """Add to the gradients of touched rows; repeated ids must have the same value."""
        if self._places is None:
            self.gradient[ids] = self.gradient[ids] + gradient
        else:
            places = places_of(ids, self.claims())
            self._places.rows[places] = self._places.rows[places] + gradient

    def clear(self) -> None:
        """Set the gradient to zero, at a cost that depends on the rows that have one."""
        if (ids := self.touched()) is None:
            return
        if self._places is not None:
            self.claims().index_fill_(0, ids, 0)
            self._places.clear()
        elif len(ids) < self._length:
            self._buffers["gradient"].index_fill_(0, ids, 0)
        else:
            self._buffers["gradient"].zero_()
        self.forget()

    def forget(self) -> None:
        """Forget the touched rows, whose gradients have been cleared already."""
        self._touched = []
        if self._places is not None:
            self._places.forget()

    def claims(self) -> Tensor:
        """Zeros for the optimiser's kernel to mark rows in, [n]; not part of the state.

        In a `sparse` table, the place of each touched row plus 1.
        """
        if self._claims is None or len(self._claims) < self._length:
            rows = self._buffers["rows"]
            self._claims = torch.zeros(len(rows), device=rows.device, dtype=torch.int32)
        return self._claims

    def snapshot(self) -> dict[str, Tensor]:
        """Copies of the rows and the optimiser's state."""
        return self.read(None)

    def read(self, ids: Tensor | None, *, state: bool = True) -> dict[str, Tensor]:
        """Copies of some rows and their state, by buffer; of all rows if `ids` is None."""
        return {
            name: buffer[: self._length].clone() if ids is None else buffer.index_select(0, ids)
            for name, buffer in self._buffers.items()
            if name == "rows" or (state and name not in ("gradient", "pace"))
        }

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        """Restore a snapshot taken since the table last grew; gradients are dropped.

        State that was created after the snapshot is set to zero, as if it had never been used.
        """
        self.write(None, snapshot)

    def write(self, ids: Tensor | None, values: dict[str, Tensor]) -> None:
        """Restore what `read` returned for the same rows; gradients are dropped."""
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
        """All rows, [n, width]; a view."""
        return self._buffers["rows"][: self._length]

    @property
    def gradient(self) -> Tensor:
        """Gradients of all rows so far in this step, [n, width]; undefined for frozen rows.

        In a `sparse` table, only those of touched rows, by place.
        """
        if self._places is not None:
            return self._places.rows
        return self._buffers["gradient"][: self._length]

    @property
    def sparse(self) -> bool:
        """Whether only touched rows have a gradient, as the table is large or of 16 bits.

        Then no memory is needed for the gradients of the others.
        """
        return self._places is not None

    def bytes_of(self, *, state: bool = True) -> int:
        """Bytes of the rows, and of the optimiser's state."""
        buffers = {n: b for n, b in self._buffers.items() if n not in ("gradient", "pace")}
        kept = buffers if state else {"rows": buffers["rows"]}
        return sum(b[: self._length].numel() * b.element_size() for b in kept.values())

    @property
    def whole(self) -> int:
        """Number of rows on all ranks if several share a table, otherwise its own."""
        return self._length

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.width * self._buffers["rows"].element_size()

    def __len__(self) -> int:
        return self._length

"""Adam that updates only the rows that a step has touched, with state per number or per row.

Each row of a table counts its own steps, so that a row that is always touched moves exactly as
under dense Adam, and a new row starts as in a new model. Rows that were not touched keep their
moments unchanged, as do frozen rows. Dense parameters count as one row that is always touched.

This is `adam=rows`. With `dense`, every row that may change counts as touched in every step, with a
zero gradient if it has none: momentum and weight decay keep moving it, as in PyTorch's Adam over a
whole embedding matrix.

Adam keeps two moments per number, so that training takes three times the memory of the rows.
`rowwise` keeps one number per row instead, the running mean of its squared gradients, and no first
moment: in a large table a row is touched so rarely that there is little to smooth. Its steps are as
long as Adam's, so that a learning rate means the same.

`adagrad` keeps the sum of squared gradients of every number, and no first moment (Duchi et al.
2011): the more a row was moved, the smaller its steps become, while a new row starts with large
ones. It needs larger learning rates, around 0.1. Dense parameters always have Adam's moments.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from dicgrl.common.rounding import stochastic
from dicgrl.kernels import available
from dicgrl.models.table import Table

MOMENTS = ("moment1", "moment2", "square", "total", "steps")  # buffers that a table may have
_BLOCK = 1 << 17  # numbers of a buffer to process at a time on a CPU
_LARGE = 4 << 30  # bytes of a table from which on `auto` means rowwise

#: Kinds of optimiser state. `rowwise` only applies to the longest table, as the others are small.
RULES = ("auto", "adam", "rowwise", "adagrad")
_STATE = {"adam": ("moment1", "moment2"), "rowwise": ("square",), "adagrad": ("total",)}


class RowAdam:
    """Adam over tables and dense parameters, without work on untouched rows.

    Args:
        tables: Tables to train; the moments are kept in them and grow with them.
        parameters: Dense parameters to train.
        lr: Learning rate; may be changed at any time.
        betas: Decay of the two moments.
        eps: Added to the denominator.
        weight_decay: Pull towards zero, added to the gradient of touched rows.
        clip: Largest norm of the gradient of everything that may change; 0 for no limit.
        dense_rate: Learning rate of the dense parameters as a multiple of `lr`.
        every_row: Whether rows without a gradient move, too.
        anew: Whether to reset moments that earlier training left.
        rule: Optimiser state: two numbers per number of a table (`adam`), one (`adagrad`), one per
            row of the longest table (`rowwise`), or chosen by its size (`auto`).
    """

    def __init__(
        self,
        tables: Iterable[Table],
        parameters: Iterable[nn.Parameter] = (),
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        clip: float = 0.0,
        dense_rate: float = 1.0,
        every_row: bool = False,
        anew: bool = False,
        rule: str = "adam",
    ) -> None:
        self.tables = list(tables)
        longest = max(self.tables, key=lambda table: table.whole, default=None)
        usual = "adagrad" if rule == "adagrad" else "adam"
        self._rules = [
            "rowwise" if table is longest and is_rowwise(table, rule) else usual
            for table in self.tables
        ]
        self.parameters = list(parameters)
        self._rates: dict[torch.device, Tensor] = {}
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self.clip = clip
        self.dense_rate = dense_rate
        self.every_row = every_row
        if anew:
            for table in self.tables:
                for name in MOMENTS:
                    table.drop(name)
        self._dense: torch.optim.Adam | None = None
        if self.parameters:
            device = self.parameters[0].device
            # As for the rows' rate: a recorded step must see a change when it is replayed.
            self._dense = torch.optim.Adam(
                self.parameters,
                lr=torch.tensor(lr, device=device) if device.type == "cuda" else lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                capturable=device.type == "cuda",
            )
            # PyTorch would warn that its first steps are not recorded.
            self._dense._warned_capturable_if_run_uncaptured = True
        self.lr = lr

    @torch.no_grad()
    def step(self) -> None:
        """Update everything with a gradient, then clear the gradients."""
        if self.clip:
            self._clip()
        for table, rule in zip(self.tables, self._rules, strict=True):
            if self.every_row:
                _touch_all(table)
            ids = table.touched()
            if ids is None:
                continue
            state = _state(table, rule)
            if available(table.gradient):
                self._launch(table, ids, state, rule)
            else:
                for some in _movable_blocks(table, ids):
                    self._step_rows(table, some, state, rule)
                table.clear()
        if self._dense is not None:
            self._dense.step()
            self._dense.zero_grad()

    def _clip(self) -> None:
        """Clip the gradient of everything that may change, without waiting for the device."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        squares = [gradient.square().sum() for gradient in gradients]
        for table in self.tables:
            if (ids := table.touched()) is None:
                continue
            pace = table.pace(ids if table.sparse else None)  # where gradients are by place, too
            of_row = table.gradient.square().sum(1, keepdim=True)
            squares.append((of_row if pace is None else of_row * (pace > 0)).sum())
            gradients.append(table.gradient)
        if not gradients:
            return
        share = (self.clip / (torch.stack(squares).sum().sqrt() + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(share)

    @property
    def lr(self) -> float:
        """Learning rate."""
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._lr = value
        for rate in self._rates.values():
            rate.fill_(value)
        if self._dense is not None:
            group = self._dense.param_groups[0]
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(value * self.dense_rate)
            else:
                group["lr"] = value * self.dense_rate

    def _rate_on(self, device: torch.device) -> Tensor:
        """The learning rate as a number on a device, so that replayed steps see it change."""
        if device not in self._rates:
            self._rates[device] = torch.tensor(self._lr, device=device)
        return self._rates[device]

    def _launch(self, table: Table, ids: Tensor, state: tuple[Tensor, ...], rule: str) -> None:
        from dicgrl.kernels.adam import adam  # needs Triton

        adam(
            table.rows,
            table.gradient,
            state,
            table.pace(),
            table.claims(),
            ids,
            self._rate_on(table.rows.device),
            self.betas,
            self.eps,
            self.weight_decay,
            sparse=table.sparse,
            total=rule == "adagrad",
        )
        table.forget()

    def _step_rows(self, table: Table, ids: Tensor, state: tuple[Tensor, ...], rule: str) -> None:
        # On a GPU an id may be repeated; the same values are then computed and written again.
        *moments, steps = moved = [buffer.index_select(0, ids) for buffer in state]
        rows = table.rows.index_select(0, ids).to(table.learned)
        gradient, pace = table.gradient_of(ids), table.pace(ids)
        if self.weight_decay:
            gradient.add_(rows, alpha=self.weight_decay)
        beta1, beta2 = self.betas
        steps.add_(1)
        count = steps.double()
        # In float32, 1 - beta ** steps would lose half its digits in the first steps.
        bias1, bias2 = ((1 - beta**count).to(rows.dtype) for beta in self.betas)
        if rule == "adagrad":
            (second,) = moments
            second.addcmul_(gradient, gradient)
            change, bias2 = gradient, torch.ones_like(bias2)
        elif rule == "rowwise":
            (second,) = moments
            second.mul_(beta2).add_((gradient * gradient).mean(1, keepdim=True), alpha=1 - beta2)
            change = gradient
        else:
            first, second = moments
            first.lerp_(gradient, 1 - beta1)
            second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            change = first / bias1
        change.div_((second / bias2).sqrt_().add_(self.eps))
        rate = self._rate_on(rows.device) if rows.is_cuda else self.lr
        rows.sub_(change.mul_(rate if pace is None else rate * pace))
        if table.rows.dtype != rows.dtype:
            rows = stochastic(rows, ids, steps)
        for buffer, new in zip((table.rows, *state), (rows, *moved), strict=True):
            if pace is not None and ids.is_cuda:  # frozen rows may be among them
                new = torch.where(pace > 0, new, buffer[ids])
            buffer.index_copy_(0, ids, new)


def numbers_beside(table: Table, rule: str, rows: int = 0) -> float:
    """Numbers of optimiser state per number of a table, after `rows` rows are appended."""
    if is_rowwise(table, rule, rows):
        return 2 / table.width
    return (1 if rule == "adagrad" else 2) + 1 / table.width


def is_rowwise(table: Table, rule: str, rows: int = 0) -> bool:
    """Whether a table has one number of state per row, after `rows` rows are appended."""
    if rule == "auto":
        return (table.whole + rows) * table.width * 4 >= _LARGE
    return rule == "rowwise"


def state_bytes(table: Table, rule: str, precision: str, rows: int) -> float:
    """Bytes per number of a table with its gradient and state, after `rows` rows are appended.

    Gradients are counted if every row has one.
    """
    number = 2 if precision == "bfloat16" else 4
    moments = 4 * numbers_beside(table, rule, rows)
    gradients = 4 / table.width if will_be_sparse(table, precision, rows) else 4
    return number + moments + gradients


def will_be_sparse(table: Table, precision: str, rows: int) -> bool:
    """Whether only touched rows have a gradient, after `rows` rows are appended."""
    return precision == "bfloat16" or (len(table) + rows) * table.width * 4 > table.dense_bytes


def _touch_all(table: Table) -> None:
    """Give every row without a gradient a zero gradient."""
    every = torch.arange(len(table), device=table.gradient.device)
    if table.sparse:
        table.accumulate(every, table.gradient.new_zeros(len(table), table.width))
    else:
        table.touch(every)


def _state(table: Table, rule: str) -> tuple[Tensor, ...]:
    """The buffers of a table's moments and steps; buffers of another rule are dropped."""
    mine = _STATE[rule]
    others = [name for names in _STATE.values() for name in names if name not in mine]
    if any(table.has(name) for name in others):
        for name in (*others, "steps"):
            table.drop(name)
    width = 1 if rule == "rowwise" else None
    return (*(table.state(name, width) for name in mine), table.state("steps", 1))


def _movable_blocks(table: Table, ids: Tensor) -> tuple[Tensor, ...]:
    """Touched rows that may change, each once, in blocks that fit in a CPU's cache.

    On a GPU, all touched rows in one block, as selecting some would wait for the device.
    """
    if ids.is_cuda:
        return (ids,)
    if table.sparse:  # one of the mentions of a row has kept its place
        ids = ids[table.claims()[ids] == torch.arange(1, len(ids) + 1)]
        pace = table.pace(ids)
        ids = ids if pace is None else ids[pace[:, 0] > 0]
    elif 16 * len(ids) < len(table):  # cheaper to sort than to look at every row
        ids = torch.unique(ids)
        pace = table.pace(ids)
        ids = ids if pace is None else ids[pace[:, 0] > 0]
    else:
        mask = torch.zeros(len(table), dtype=torch.bool)
        mask[ids] = True
        pace = table.pace()
        ids = (mask if pace is None else mask & (pace[:, 0] > 0)).nonzero()[:, 0]
    return torch.split(ids, max(_BLOCK // table.width, 1)) if len(ids) else ()

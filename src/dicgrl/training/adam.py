"""Adam that updates only the rows that a step has touched, with a state of rows or of numbers.

Each row of a table counts its own steps, so that a row that is always touched moves exactly as
under dense Adam, and a new row starts like one in a new model. Moments of rows that were not
touched rest, as do rows that a table does not let change. Dense parameters are one row that is
always touched.

That is `adam=rows`. With `dense` every row that may change is touched in every step, by a gradient
of zero where it has none: its momentum and the weight decay move it on, as in PyTorch's Adam over a
whole embedding matrix.

Adam keeps two moments of every number, three times the memory of the rows. `rowwise` keeps one
number of a row instead, the running mean of its squared gradients, and no first moment: in a large
table a row is touched so rarely that there is little to smooth. Steps are as long as Adam's, so
that a learning rate means the same.

`adagrad` keeps the sum of the squared gradients of every number, and no first moment (Duchi et al.
2011): what was moved often moves ever less, and a row that is new as far as any did at first. Its
learning rates are larger, around 0.1. Dense parameters have Adam's moments in each case.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from dicgrl.common.rounding import stochastic
from dicgrl.kernels import available
from dicgrl.models.table import Table

MOMENTS = ("moment1", "moment2", "square", "total", "steps")  # what a table may keep for it
_BLOCK = 1 << 17  # numbers of a buffer that are worked on at a time on a CPU
_LARGE = 4 << 30  # bytes of a table from which on `auto` keeps one number for each row

#: What state there is beside a table. `rowwise` is of the longest alone: others are small.
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
        clip: Largest norm of the gradient of all that may change; 0 for none.
        dense_rate: Learning rate of the dense parameters as a multiple of `lr`.
        every_row: Whether rows without a gradient move on, too.
        anew: Whether rows forget the moments that earlier training left.
        rule: What there is of state: two numbers for each of a table's own (`adam`), one for each
            (`adagrad`), one for each row of the longest table (`rowwise`), or what fits its size
            (`auto`).
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
            # As with the rows' rate: a step that is recorded and replayed must see a change.
            self._dense = torch.optim.Adam(
                self.parameters,
                lr=torch.tensor(lr, device=device) if device.type == "cuda" else lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                capturable=device.type == "cuda",
            )
            # Its first steps are not recorded, which it would warn about.
            self._dense._warned_capturable_if_run_uncaptured = True
        self.lr = lr

    @torch.no_grad()
    def step(self) -> None:
        """Update what has a gradient, then clear the gradients."""
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
        """Shorten the gradient of all that may change to `clip`; the host waits for nothing."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        squares = [gradient.square().sum() for gradient in gradients]
        for table in self.tables:
            pace = None if table.sparse else table.pace()  # there frozen rows count as well
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
        """The learning rate as a number there: a step that is replayed must see it change."""
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
        # On a GPU an id may be repeated: it computes and writes the same values again.
        *moments, steps = moved = [buffer.index_select(0, ids) for buffer in state]
        rows = table.rows.index_select(0, ids).to(table.learned)
        gradient, pace = table.gradient_of(ids), table.pace(ids)
        if self.weight_decay:
            gradient.add_(rows, alpha=self.weight_decay)
        beta1, beta2 = self.betas
        steps.add_(1)
        count = steps.double()
        # In float32 the difference to 1 would lose half its digits in the first steps.
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
    """Numbers of state for each number of a table, once so many rows are appended."""
    if is_rowwise(table, rule, rows):
        return 2 / table.width
    return (1 if rule == "adagrad" else 2) + 1 / table.width


def is_rowwise(table: Table, rule: str, rows: int = 0) -> bool:
    """Whether a table has one number of state for each row, once so many rows are appended."""
    if rule == "auto":
        return (table.whole + rows) * table.width * 4 >= _LARGE
    return rule == "rowwise"


def state_bytes(table: Table, rule: str, precision: str, rows: int) -> float:
    """Bytes for each number of a table, with its gradient and state, once so many rows are new.

    Gradients are counted where every row has one.
    """
    number = 2 if precision == "bfloat16" else 4
    moments = 4 * numbers_beside(table, rule, rows)
    large = (len(table) + rows) * table.width * number > table.dense_bytes
    gradients = 4 / table.width if number == 2 or large else 4
    return number + moments + gradients


def _touch_all(table: Table) -> None:
    """Give every row a gradient, of zero where it has none."""
    every = torch.arange(len(table), device=table.gradient.device)
    if table.sparse:
        table.accumulate(every, table.gradient.new_zeros(len(table), table.width))
    else:
        table.touch(every)


def _state(table: Table, rule: str) -> tuple[Tensor, ...]:
    """The buffers of a table's moments, and of its steps; those of another rule are dropped."""
    mine = _STATE[rule]
    others = [name for names in _STATE.values() for name in names if name not in mine]
    if any(table.has(name) for name in others):
        for name in (*others, "steps"):
            table.drop(name)
    width = 1 if rule == "rowwise" else None
    return (*(table.state(name, width) for name in mine), table.state("steps", 1))


def _movable_blocks(table: Table, ids: Tensor) -> tuple[Tensor, ...]:
    """Touched rows that may change, each once, in blocks that stay in a CPU's cache.

    On a GPU all touched rows at once, as they are: choosing some would wait for the device.
    """
    if ids.is_cuda:
        return (ids,)
    if table.sparse:  # of the mentions of a row, one has kept its place
        ids = ids[table.claims()[ids] == torch.arange(1, len(ids) + 1)]
        pace = table.pace(ids)
        ids = ids if pace is None else ids[pace[:, 0] > 0]
    elif 16 * len(ids) < len(table):  # sorting costs less than a look at every row
        ids = torch.unique(ids)
        pace = table.pace(ids)
        ids = ids if pace is None else ids[pace[:, 0] > 0]
    else:
        mask = torch.zeros(len(table), dtype=torch.bool)
        mask[ids] = True
        pace = table.pace()
        ids = (mask if pace is None else mask & (pace[:, 0] > 0)).nonzero()[:, 0]
    return torch.split(ids, max(_BLOCK // table.width, 1)) if len(ids) else ()

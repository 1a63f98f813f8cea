"""Adam that updates only the rows that a step has touched.

Each row of a table counts its own steps, so that a row that is always touched moves exactly as
under dense Adam, and a new row starts like one in a new model. Moments of rows that were not
touched rest, as do rows that a table does not let change. Dense parameters are one row that is
always touched.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from dicgrl.kernels import available
from dicgrl.models.table import Table


class RowAdam:
    """Adam over tables and dense parameters, without work on untouched rows.

    Args:
        tables: Tables to train; the moments are kept in them and grow with them.
        parameters: Dense parameters to train.
        lr: Learning rate; may be changed at any time.
        betas: Decay of the two moments.
        eps: Added to the denominator.
        weight_decay: Pull towards zero, added to the gradient of touched rows.
        clip: Largest norm of the gradient of dense parameters; 0 for none.
        dense_rate: Learning rate of the dense parameters as a multiple of `lr`.
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
    ) -> None:
        self.tables = list(tables)
        self.parameters = list(parameters)
        self._rates: dict[torch.device, Tensor] = {}
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self.clip = clip
        self.dense_rate = dense_rate
        self._dense: torch.optim.Adam | None = None
        if self.parameters:
            device = self.parameters[0].device
            # As with the rows' rate: a step that is recorded and replayed must see a change.
            self._dense = torch.optim.Adam(
                self.parameters,
                lr=torch.tensor(lr * dense_rate, device=device) if device.type == "cuda" else lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                capturable=device.type == "cuda",
            )
        self.lr = lr

    @torch.no_grad()
    def step(self) -> None:
        """Update what has a gradient, then clear the gradients."""
        for table in self.tables:
            ids = table.touched()
            if ids is None:
                continue
            if available(table.rows):
                self._launch(table, ids)
            else:
                self._step_table(table, ids)
                table.clear()
        if self._dense is not None:
            if self.clip:
                nn.utils.clip_grad_norm_(self.parameters, self.clip)
            self._dense.step()
            self._dense.zero_grad()

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

    def _launch(self, table: Table, ids: Tensor) -> None:
        from dicgrl.kernels.adam import adam  # needs Triton

        device = table.rows.device
        if device not in self._rates:
            # A step that is recorded and replayed must see a rate that changes: keep it there.
            self._rates[device] = torch.tensor(self.lr, device=device)
        adam(
            table.rows,
            table.gradient,
            (table.state("moment1"), table.state("moment2")),
            table.state("steps", width=1),
            table.pace(),
            table.claims(),
            ids,
            self._rates[device],
            self.betas,
            self.eps,
            self.weight_decay,
        )
        table.forget()

    def _step_table(self, table: Table, ids: Tensor) -> None:
        first, second = table.state("moment1"), table.state("moment2")
        steps = table.state("steps", width=1)
        if len(ids) < len(table):
            # A repeated id computes and writes the same values again: no need to make ids unique.
            before = (table.rows[ids], first[ids], second[ids], steps[ids])
            pace = table.pace(ids)
            moved = self._moved(pace, before[0], table.gradient[ids], *before[1:])
            for buffer, old, new in zip(
                (table.rows, first, second, steps), before, moved, strict=True
            ):
                buffer[ids] = new if pace is None else torch.where(pace > 0, new, old)
        else:
            mask = torch.zeros(len(table), 1, dtype=torch.bool, device=ids.device)
            mask[ids] = True
            pace = table.pace()
            mask = mask if pace is None else mask & (pace > 0)
            moved = self._moved(pace, table.rows, table.gradient, first, second, steps)
            for buffer, values in zip((table.rows, first, second, steps), moved, strict=True):
                torch.where(mask, values, buffer, out=buffer)

    def _moved(
        self,
        pace: Tensor | None,
        rows: Tensor,
        gradient: Tensor,
        first: Tensor,
        second: Tensor,
        steps: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        beta1, beta2 = self.betas
        if self.weight_decay:
            gradient = gradient + self.weight_decay * rows
        steps = steps + 1
        first = first.lerp(gradient, 1 - beta1)
        second = beta2 * second + (1 - beta2) * gradient * gradient
        # In float32 the difference to 1 would lose half its digits in the first steps.
        count = steps.double()
        bias1, bias2 = ((1 - beta**count).to(rows.dtype) for beta in self.betas)
        denominator = (second / bias2).sqrt_().add_(self.eps)
        rate = self.lr if pace is None else self.lr * pace
        rows = rows - rate * (first / bias1) / denominator
        return rows, first, second, steps

"""The training loop: epochs of batches, early stopping on validation data, a guard against NaN.

It knows examples, an objective and an optimiser; not what a triple or a node is. Inside an epoch
nothing waits for the device: losses are summed there and read once, when the epoch ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from dicgrl.errors import FailureError
from dicgrl.models.table import Table
from dicgrl.training.adam import RowAdam


class Trainable(Protocol):
    """What the loop needs of a model."""

    def tables(self) -> dict[str, Table]:
        """Its tables by name."""

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Its dense parameters by name."""

    def train(self, mode: bool = True) -> object:
        """Switch dropout and the like."""


Objective = Callable[[Tensor, Tensor], Tensor]  # examples [b, ...], weights [b] -> loss


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to train.

    Attributes:
        epochs: Passes over the examples, at most.
        batch: Examples per step.
        lr: Learning rate of Adam.
        halve_every: Epochs after which the learning rate is halved; 0 for never.
        weight_decay: Pull of the weights towards zero.
        clip: Largest norm of the gradient of dense parameters; 0 for none.
        dense_rate: Learning rate of dense parameters, such as filters, as a multiple of `lr`: they
            are in every step, a row only in some.
        validate_every: Epochs between two looks at the validation data.
        patience: Validations without a better result after which training stops; 0 for never.
    """

    epochs: int = 100
    batch: int = 1024
    lr: float = 1e-3
    halve_every: int = 0
    weight_decay: float = 0.0
    clip: float = 0.0
    dense_rate: float = 1.0
    validate_every: int = 5
    patience: int = 5


@dataclass(slots=True)
class EpochReport:
    """What an epoch did.

    Attributes:
        epoch: Its number, counted from 1.
        loss: Mean loss over its examples.
        rate: Examples per second.
        validation: The validation metric, where it was measured.
    """

    epoch: int
    loss: float
    rate: float
    validation: float | None = None


Monitor = Callable[[EpochReport], None]


@dataclass(slots=True)
class FitReport:
    """What training did.

    Attributes:
        epochs: Epochs trained.
        best_epoch: The epoch whose weights were kept.
        best: Its validation metric; None without validation.
        seconds: Time of training alone, validation left out.
        history: Every epoch.
    """

    epochs: int = 0
    best_epoch: int = 0
    best: float | None = None
    seconds: float = 0.0
    history: list[EpochReport] = field(default_factory=list)


class DivergedError(FailureError):
    """The loss or a weight is no longer a finite number; the model is back at its last good state.

    Attributes:
        step: The step, counted from 1, at which the loss was first not finite.
    """

    def __init__(self, epoch: int, step: int, what: str) -> None:
        self.epoch = epoch
        self.step = step
        super().__init__(
            f"training diverged: {what} is not finite at step {step} (epoch {epoch}); the last "
            "good weights are kept. A smaller learning rate (lr) or gradient clipping (clip) may "
            "help"
        )


def fit(
    model: Trainable,
    objective: Objective,
    examples: Tensor,
    schedule: Schedule,
    generator: torch.Generator,
    *,
    weight: Tensor | None = None,
    validate: Callable[[], float] | None = None,
    monitor: Monitor | None = None,
) -> FitReport:
    """Train a model on examples; with validation, keep the weights of the best epoch.

    Args:
        model: What is trained.
        objective: Loss of a batch.
        examples: The examples, [n, ...], on the model's device.
        schedule: How long and how fast.
        generator: Shuffles; on the device of `examples`.
        weight: Weight of each example, [n]; all 1 unless given.
        validate: Measures the model, higher is better.
        monitor: Told about every epoch.

    Raises:
        DivergedError: The loss or a weight is not finite.
    """
    devices = [examples.device] if examples.is_cuda else []
    with torch.random.fork_rng(devices=devices):
        # Dropout draws from PyTorch's global generator: seed it here and leave no trace outside.
        torch.default_generator.manual_seed(generator.initial_seed())
        if examples.is_cuda:
            torch.cuda.manual_seed(generator.initial_seed())
        return _fit(model, objective, examples, schedule, generator, weight, validate, monitor)


def _fit(
    model: Trainable,
    objective: Objective,
    examples: Tensor,
    schedule: Schedule,
    generator: torch.Generator,
    weight: Tensor | None,
    validate: Callable[[], float] | None,
    monitor: Monitor | None,
) -> FitReport:
    report = FitReport()
    weight = torch.ones(len(examples), device=examples.device) if weight is None else weight
    tables = list(model.tables().values())
    parameters = [parameter for _, parameter in model.named_parameters()]
    optimiser = RowAdam(
        tables,
        parameters,
        lr=schedule.lr,
        weight_decay=schedule.weight_decay,
        clip=schedule.clip,
        dense_rate=schedule.dense_rate,
    )
    good = _Snapshot(tables, parameters)
    step, waited = 0, 0
    model.train()
    for epoch in range(1, schedule.epochs + 1):
        if schedule.halve_every:
            optimiser.lr = schedule.lr * 0.5 ** ((epoch - 1) // schedule.halve_every)
        started = time.perf_counter()
        total = torch.zeros((), device=examples.device)
        first_bad = torch.full((), 1 << 62, dtype=torch.long, device=examples.device)
        for batch in _batches(len(examples), schedule.batch, generator):
            step += 1
            loss = objective(examples[batch], weight[batch])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            loss = loss.detach()
            total += loss * len(batch)
            first_bad.copy_(torch.where(loss.isfinite(), first_bad, first_bad.clamp(max=step)))
        mean, bad = total.item() / max(len(examples), 1), int(first_bad.item())
        seconds = time.perf_counter() - started
        report.seconds += seconds
        report.epochs = epoch
        if bad <= step:
            good.restore()
            raise DivergedError(epoch, bad, "the loss")
        entry = EpochReport(epoch, mean, len(examples) / max(seconds, 1e-9))
        report.history.append(entry)
        last = epoch == schedule.epochs
        if validate is not None and (epoch % schedule.validate_every == 0 or last):
            if not _finite(tables, parameters):
                good.restore()
                raise DivergedError(epoch, step, "a weight")
            entry.validation = validate()
            waited += 1
            if report.best is None or entry.validation > report.best:
                report.best, report.best_epoch, waited = entry.validation, epoch, 0
                good.take()
        elif (
            validate is None
            and epoch % schedule.validate_every == 0
            and _finite(tables, parameters)
        ):
            good.take()
        if monitor:
            monitor(entry)
        if schedule.patience and waited >= schedule.patience:
            break
    if validate is None:
        report.best_epoch = report.epochs
        if not _finite(tables, parameters):
            good.restore()
            raise DivergedError(report.epochs, step, "a weight")
    elif report.best_epoch != report.epochs:
        good.restore()
    return report


def _batches(count: int, size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    order = torch.randperm(count, generator=generator, device=generator.device)
    return torch.split(order, size)


def _finite(tables: list[Table], parameters: list[nn.Parameter]) -> bool:
    weights = [table.rows for table in tables] + [p.detach() for p in parameters]
    return bool(torch.stack([w.isfinite().all() for w in weights]).all())


class _Snapshot:
    """The last good state of tables and dense parameters."""

    def __init__(self, tables: list[Table], parameters: list[nn.Parameter]) -> None:
        self._tables, self._parameters = tables, parameters
        self.take()

    def take(self) -> None:
        self._rows = [table.snapshot() for table in self._tables]
        self._dense = [parameter.detach().clone() for parameter in self._parameters]

    @torch.no_grad()
    def restore(self) -> None:
        for table, rows in zip(self._tables, self._rows, strict=True):
            table.restore(rows)
        for parameter, values in zip(self._parameters, self._dense, strict=True):
            parameter.copy_(values)

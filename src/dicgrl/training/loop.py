"""The training loop: epochs of batches, early stopping, a guard against weights without sense.

It knows training sets, a model and an optimiser; not what a triple or a node is. A `TrainingSet`
says what is learned in each epoch; strategies of continual learning bring their own. Inside an
epoch nothing waits for the device: losses are summed there and read once, when the epoch ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, Self

import torch
from torch import Tensor, nn
from typing_extensions import override

from dicgrl.common.options import Section, option
from dicgrl.common.seeding import seeded
from dicgrl.errors import FailureError, UserError
from dicgrl.models.table import Table
from dicgrl.training.adam import RULES, RowAdam
from dicgrl.training.positives import Positives
from dicgrl.training.snapshot import Snapshot
from dicgrl.training.stepper import Objective, Stepper


class Trainable(Protocol):
    """What the loop needs of a model."""

    def tables(self) -> dict[str, Table]:
        """Its tables by name."""

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Its dense parameters by name."""

    def train(self, mode: bool = True) -> object:
        """Switch dropout and the like."""


class TrainingSet:
    """Weighted examples and the objective they are learned by.

    Strategies extend it: other batches, gradients that are changed before a step, work between
    epochs.

    Args:
        objective: Loss of a batch.
        examples: The examples, [n, ...], on the model's device.
        weight: Weight of each example, [n]; all 1 unless given.
        old: How many of the examples are of earlier parts; it changes nothing but the report.
    """

    def __init__(
        self, objective: Objective, examples: Tensor, weight: Tensor | None = None, old: int = 0
    ) -> None:
        self.objective = objective
        self.examples = examples
        self._old = old
        self.weight = (
            torch.ones(len(examples), device=examples.device) if weight is None else weight
        )

    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterable[tuple[Objective, Tensor, Tensor]]:
        """The steps of an epoch, counted from 1: an objective, its examples and their weights."""
        del epoch
        for chosen in shuffled(len(self.examples), size, generator):
            yield self.objective, self.examples[chosen], self.weight[chosen]

    def old_in_epoch(self) -> int:
        """How many of the examples that the last epoch took are of earlier parts."""
        return self._old

    @property
    def capturable(self) -> bool:
        """Whether a step does the same on the host each time, so that a GPU may replay it.

        A training set of another kind that knows this of its objectives and of `adjust` may say so.
        """
        return type(self).adjust is TrainingSet.adjust and type(self).batches is TrainingSet.batches

    def adjust(self) -> None:
        """Change the gradients of a step; called between the backward pass and the optimiser."""

    def end_epoch(self, epoch: int) -> None:
        """Look after the model when an epoch is over, before it is validated."""


def shuffled(
    count: int, size: int, generator: torch.Generator, most: int = 0
) -> tuple[Tensor, ...]:
    """The numbers below `count` in random order, in batches; so many at most, or all for 0."""
    order = torch.randperm(count, generator=generator, device=generator.device)
    return torch.split(order[: most or count], size) if count else ()


_FASTEST = 3e37  # of a learning rate, which Adam's first step divides by 0.1 in float32


@dataclass(frozen=True)
class Schedule(Section):
    """How long and how fast to train."""

    epochs: int = option(100, "Passes over the training examples, at most.", least=1)
    batch: int = option(1024, "Examples per step.", least=1)
    lr: float = option(1e-3, "Learning rate of Adam.", above=0)
    halve_every: int = option(
        0, "Epochs after which the learning rate is halved; 0 for never.", least=0
    )
    decay: float = option(
        0.0,
        "How much of the learning rate is taken away, evenly, until the last epoch: 0 to 1.",
        least=0,
        most=1,
    )
    weight_decay: float = option(0.0, "Pull of the weights towards zero.", least=0)
    clip: float = option(
        0.0, "Largest norm of the gradient of all that may change; 0 for none.", least=0
    )
    adam: str = option(
        "rows",
        "Rows that a step of Adam moves: rows (those with a gradient; the others rest) or dense "
        "(all that may change, by momentum and weight decay, as PyTorch's does).",
        choices=("rows", "dense"),
        needs="rows",
    )
    moments: str = option(
        "kept",
        "Adam's moments of rows when another part is learned: kept, or new as in an optimiser of "
        "its own. Those of dense parameters are always new.",
        choices=("kept", "new"),
        needs="rows",
    )
    dense_rate: float = option(
        1.0,
        "Learning rate of dense parameters, such as filters, as a multiple of lr: they are in "
        "every step, a row only in some.",
        least=0,
        needs="rows",
    )
    optimizer: str = option(
        "auto",
        "What is kept beside a table of rows: adam (two moments of every number), rowwise (one "
        "number for each row of the largest table, and no first moment), auto (rowwise where these "
        "rows take 4 GiB or more, else adam) or adagrad (the sum of the squared gradients of every "
        "number: its steps become ever shorter, and an lr of 0.1 is usual).",
        choices=RULES,
        needs="rows",
    )
    validate_every: int = option(5, "Epochs between two validations.", least=1)
    patience: int = option(
        5, "Validations without progress after which training stops; 0 for never.", least=0
    )
    least_epochs: int = option(0, "Epochs before which training is not stopped.", least=0)

    @override
    def check(self) -> None:
        if self.lr * self.dense_rate > _FASTEST:
            raise UserError(
                f"lr={self.lr} times dense_rate={self.dense_rate}: expected at most {_FASTEST:g}"
            )

    def fitted(self, examples: int) -> Self:
        """The schedule for so many training examples, where something was left to their number."""
        del examples
        return self

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 1.

        Example:
            >>> Schedule(epochs=10, lr=1.0, decay=1.0).rate(6)
            0.5
        """
        halved = 0.5 ** ((epoch - 1) // self.halve_every) if self.halve_every else 1.0
        return self.lr * halved * (1 - self.decay * (epoch - 1) / self.epochs)


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
        validate_seconds: Time of validation.
        positives: Examples of all epochs together.
        history: Every epoch.
    """

    epochs: int = 0
    best_epoch: int = 0
    best: float | None = None
    seconds: float = 0.0
    validate_seconds: float = 0.0
    positives: Positives = field(default_factory=Positives)
    history: list[EpochReport] = field(default_factory=list)


class DivergedError(FailureError):
    """The loss or a weight is not finite, or a weight far too large.

    The model is back at its last good state, if there was memory for a copy of it.

    Args:
        epoch: The epoch, counted from 1.
        step: The step, counted from 1, at which the loss was first not finite, or before which a
            weight went wrong.
        what: What is wrong.
        kept: Whether the last good state was kept.
    """

    def __init__(self, epoch: int, step: int, what: str, *, kept: bool = True) -> None:
        self.epoch = epoch
        self.step = step
        good = "the last good weights are kept" if kept else "there was no memory for a copy"
        super().__init__(
            f"training diverged: {what} at step {step} (epoch {epoch}); {good}. A smaller "
            "learning rate (lr) or gradient clipping (clip) may help"
        )


_LARGEST = 1e6  # of a weight; around it float32 has steps of 0.06, too coarse to learn with


def fit(
    model: Trainable,
    training_set: TrainingSet,
    schedule: Schedule,
    generator: torch.Generator,
    *,
    validate: Callable[[], float] | None = None,
    monitor: Monitor | None = None,
) -> FitReport:
    """Train a model; with validation, keep the weights of the best epoch.

    Args:
        model: What is trained.
        training_set: What it learns.
        schedule: How long and how fast.
        generator: Shuffles; on the device of the examples.
        validate: Measures the model, higher is better.
        monitor: Told about every epoch.

    Raises:
        DivergedError: The loss or a weight is not finite, or a weight far too large.
    """
    with seeded(generator.initial_seed(), generator.device):  # dropout draws from the global one
        try:
            return _fit(model, training_set, schedule, generator, validate, monitor)
        finally:
            model.train(False)  # threads that look at it later need not switch it back and forth


def _fit(
    model: Trainable,
    training_set: TrainingSet,
    schedule: Schedule,
    generator: torch.Generator,
    validate: Callable[[], float] | None,
    monitor: Monitor | None,
) -> FitReport:
    report = FitReport()
    tables = list(model.tables().values())
    parameters = [parameter for _, parameter in model.named_parameters()]
    optimiser = RowAdam(
        tables,
        [parameter for parameter in parameters if parameter.requires_grad],
        weight_decay=schedule.weight_decay,
        clip=schedule.clip,
        dense_rate=schedule.dense_rate if tables else 1.0,  # else there are no rows beside
        every_row=schedule.adam == "dense",
        anew=schedule.moments == "new",
        rule=schedule.optimizer,
    )
    good = Snapshot(tables, parameters)
    recorded_by = generator if training_set.capturable else None
    stepper = Stepper(training_set.adjust, optimiser, recorded_by)
    step, waited = 0, 0
    model.train()
    for epoch in range(1, schedule.epochs + 1):
        optimiser.lr = schedule.rate(epoch)
        started = time.perf_counter()
        losses, sizes = [], []
        for objective, examples, weight in training_set.batches(epoch, schedule.batch, generator):
            good.cover()
            losses.append(stepper(objective, examples, weight))
            sizes.append(len(examples))
        training_set.end_epoch(epoch)
        stepper.end_epoch()
        mean, bad = _summed(losses, sizes)
        seconds = time.perf_counter() - started
        report.seconds += seconds
        report.epochs = epoch
        taken, old = sum(sizes), training_set.old_in_epoch()
        report.positives += Positives(taken - old, old)
        if bad:
            good.restore()
            raise DivergedError(epoch, step + bad, "the loss is not finite", kept=good.kept)
        step += len(losses)
        entry = EpochReport(epoch, mean, taken / max(seconds, 1e-9))
        report.history.append(entry)
        last = epoch == schedule.epochs
        if validate is not None and (epoch % schedule.validate_every == 0 or last):
            if wrong := _unsound(tables, parameters):
                good.restore()
                raise DivergedError(epoch, step, wrong, kept=good.kept)
            started = time.perf_counter()
            entry.validation = validate()
            report.validate_seconds += time.perf_counter() - started
            waited += 1
            if report.best is None or entry.validation > report.best:
                report.best, report.best_epoch, waited = entry.validation, epoch, 0
                if not last:  # nothing could go wrong any more
                    good.take()
        elif (
            validate is None
            and epoch % schedule.validate_every == 0
            and not last
            and not _unsound(tables, parameters)
        ):
            good.take()
        if monitor:
            monitor(entry)
        if 0 < schedule.patience <= waited and epoch >= schedule.least_epochs:
            break
    if validate is None:
        report.best_epoch = report.epochs
        if wrong := _unsound(tables, parameters):
            good.restore()
            raise DivergedError(report.epochs, step, wrong, kept=good.kept)
    elif report.best_epoch != report.epochs and good.kept:
        good.restore()
    else:
        report.best_epoch = report.epochs
    return report


def _summed(losses: list[Tensor], sizes: list[int]) -> tuple[float, int]:
    """Mean loss over the examples, and the first step, counted from 1, that has none; 0 for none.

    Read from the device once.
    """
    if not losses:
        return 0.0, 0
    values = torch.stack(losses).double()
    weight = torch.tensor(sizes, dtype=values.dtype).to(values.device, non_blocking=True)
    bad = ~values.isfinite()
    first = torch.where(bad.any(), bad.long().argmax() + 1, 0)
    mean, number = torch.stack([(values * weight).sum() / weight.sum(), first.double()]).tolist()
    return mean, int(number)


def _unsound(tables: list[Table], parameters: list[nn.Parameter]) -> str:
    """What is wrong with weights that may have changed; empty where they can be used.

    Read from the device once.
    """
    weights = [
        table.rows if table.movable is None else table.rows.index_select(0, table.movable)
        for table in tables
    ]
    weights += [parameter.detach() for parameter in parameters]
    ends = [torch.stack(w.aminmax()).double() for w in weights if w.numel()]  # NaN, if there is one
    largest = torch.stack(ends).abs().max().item() if ends else 0.0
    if not math.isfinite(largest):
        return "a weight is not finite"
    return f"a weight has the size {largest:.1e}" if largest > _LARGEST else ""

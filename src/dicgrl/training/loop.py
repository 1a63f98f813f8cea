"""The training loop: epochs of batches, early stopping, and a guard against divergence.

It knows training sets, a model and an optimiser, but not what a triple or a node is. A
`TrainingSet` says what is learned in each epoch; strategies have their own. Within an epoch nothing
waits for the device: losses are summed there and read once, when the epoch ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import torch
from torch import Tensor, nn

from dicgrl.common.seeding import seeded
from dicgrl.errors import FailureError
from dicgrl.models.table import Table
from dicgrl.training.adam import RowAdam
from dicgrl.training.positives import Positives
from dicgrl.training.schedule import Schedule
from dicgrl.training.snapshot import Snapshot
from dicgrl.training.stepper import Objective, Stepper


class Trainable(Protocol):
    """What the loop requires of a model."""

    def tables(self) -> dict[str, Table]:
        """Its tables by name."""

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Its dense parameters by name."""

    def train(self, mode: bool = True) -> object:
        """Switch between training and evaluation, as for dropout."""


class TrainingSet:
    """Weighted examples and the objective to learn them with.

    Strategies extend it, with other batches, changes to gradients before a step, or work between
    epochs.

    Args:
        objective: Loss of a batch.
        examples: The examples, [n, ...], on the model's device.
        weight: Weight of each example, [n]; 1 by default.
        old: How many of the examples are from earlier parts; only used in reports.
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
        """How many examples of the last epoch were from earlier parts."""
        return self._old

    @property
    def capturable(self) -> bool:
        """Whether a step does the same work on the host each time, so that a GPU may replay it.

        A subclass may override this if it is true of its objectives and its `adjust`.
        """
        return type(self).adjust is TrainingSet.adjust and type(self).batches is TrainingSet.batches

    def adjust(self) -> None:
        """Change the gradients of a step; called between the backward pass and the optimiser."""

    def end_epoch(self, epoch: int) -> None:
        """Called after each epoch, before the model is validated."""

    def largest(self, found: float) -> float:
        """The largest value that any of the processes found; here there is only one process."""
        return found


def shuffled(
    count: int, size: int, generator: torch.Generator, most: int = 0
) -> tuple[Tensor, ...]:
    """The numbers below `count` in random order, in batches of at most `size`; 0 for one batch."""
    order = torch.randperm(count, generator=generator, device=generator.device)
    return torch.split(order[: most or count], size) if count else ()


@dataclass(slots=True)
class EpochReport:
    """Report of an epoch.

    Attributes:
        epoch: Number of the epoch, from 1.
        loss: Mean loss over its examples.
        rate: Examples per second.
        validation: The validation metric, if it was measured.
    """

    epoch: int
    loss: float
    rate: float
    validation: float | None = None


Monitor = Callable[[EpochReport], None]


@dataclass(slots=True)
class FitReport:
    """Report of a training run.

    Attributes:
        epochs: Number of epochs trained.
        best_epoch: The epoch whose weights were kept.
        best: Its validation metric; None without validation.
        seconds: Time of training, without validation.
        validate_seconds: Time of validation.
        positives: Number of examples of all epochs together.
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
    """The loss or a weight is not finite, or a weight is far too large.

    The model has been reset to its last good state, if there was memory for a copy of it.

    Args:
        epoch: The epoch, from 1.
        step: The first step, from 1, whose loss was not finite, or before which a weight was wrong.
        what: Description of the problem.
        kept: Whether the last good state was restored.
    """

    def __init__(self, epoch: int, step: int, what: str, *, kept: bool = True) -> None:
        self.epoch = epoch
        self.step = step
        good = "the last good weights are kept" if kept else "there was no memory for a copy"
        super().__init__(
            f"training diverged: {what} at step {step} (epoch {epoch}); {good}. A smaller "
            "learning rate (lr) or gradient clipping (clip) may help"
        )


_LARGEST = 1e6  # largest weight; float32 has steps of 0.06 there, too coarse to learn with


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
        schedule: How long and how fast to train.
        generator: Shuffles the examples; on their device.
        validate: Measures the model; higher is better.
        monitor: Told about every epoch.

    Raises:
        DivergedError: The loss or a weight is not finite, or a weight is far too large.
    """
    with seeded(generator.initial_seed(), generator.device):  # dropout uses the global generator
        try:
            return _Training(model, training_set, schedule, generator, validate).run(monitor)
        finally:
            model.train(False)  # so that threads which use it later need not switch modes


class _Training:
    """A training run in progress: takes steps, validates and keeps the best weights."""

    def __init__(
        self,
        model: Trainable,
        training_set: TrainingSet,
        schedule: Schedule,
        generator: torch.Generator,
        validate: Callable[[], float] | None,
    ) -> None:
        self.training_set, self.schedule, self.generator = training_set, schedule, generator
        self.validate = validate
        self.tables = list(model.tables().values())
        self.parameters = [parameter for _, parameter in model.named_parameters()]
        self.optimiser = RowAdam(
            self.tables,
            [parameter for parameter in self.parameters if parameter.requires_grad],
            weight_decay=schedule.weight_decay,
            clip=schedule.clip,
            dense_rate=schedule.dense_rate if self.tables else 1.0,  # relative to rows, if any
            every_row=schedule.adam == "dense",
            anew=schedule.moments == "new",
            rule=schedule.optimizer,
        )
        self.good = Snapshot(self.tables, self.parameters)
        recorded_by = generator if training_set.capturable else None
        self.stepper = Stepper(training_set.adjust, self.optimiser, recorded_by)
        self.report = FitReport()
        self.steps = 0  # of all epochs
        self.waited = 0  # validations without progress
        model.train()

    def run(self, monitor: Monitor | None) -> FitReport:
        schedule = self.schedule
        for epoch in range(1, schedule.epochs + 1):
            entry = self._epoch(epoch)
            if epoch % schedule.validate_every == 0 or epoch == schedule.epochs:
                self._look(entry, last=epoch == schedule.epochs)
            if monitor:
                monitor(entry)
            if 0 < schedule.patience <= self.waited and epoch >= schedule.least_epochs:
                break
        self._keep_the_best()
        return self.report

    def _epoch(self, epoch: int) -> EpochReport:
        """Take the steps of an epoch."""
        self.optimiser.lr = self.schedule.rate(epoch)
        started = time.perf_counter()
        losses, sizes = [], []
        batches = self.training_set.batches(epoch, self.schedule.batch, self.generator)
        for objective, examples, weight in batches:
            self.good.cover()
            losses.append(self.stepper(objective, examples, weight))
            sizes.append(len(examples))
        self.training_set.end_epoch(epoch)
        self.stepper.end_epoch()
        mean, bad = _summed(losses, sizes)
        seconds = time.perf_counter() - started
        taken, old = sum(sizes), self.training_set.old_in_epoch()
        self.report.seconds += seconds
        self.report.epochs = epoch
        self.report.positives += Positives(taken - old, old)
        if bad:
            self._give_up("the loss is not finite", self.steps + bad)
        self.steps += len(losses)
        entry = EpochReport(epoch, mean, taken / max(seconds, 1e-9))
        self.report.history.append(entry)
        return entry

    def _look(self, entry: EpochReport, *, last: bool) -> None:
        """Validate, and copy the weights if they are the best or, without validation, sound."""
        if self.validate is None:
            if not last and not self._wrong():
                self.good.take()
            return
        self._check_weights()
        started = time.perf_counter()
        entry.validation = self.validate()
        self.report.validate_seconds += time.perf_counter() - started
        self.waited += 1
        if self.report.best is None or entry.validation > self.report.best:
            self.report.best, self.report.best_epoch = entry.validation, entry.epoch
            self.waited = 0
            if not last:  # after the last epoch no copy is needed
                self.good.take()

    def _keep_the_best(self) -> None:
        report = self.report
        if self.validate is None:
            self._check_weights()
        elif report.best_epoch != report.epochs and self._has_copies():
            self.good.restore()
            return
        report.best_epoch = report.epochs

    def _check_weights(self) -> None:
        if wrong := self._wrong():
            self._give_up(wrong, self.steps)

    def _wrong(self) -> str:
        return _unsound(self.training_set.largest(_largest(self.tables, self.parameters)))

    def _has_copies(self) -> bool:
        """Whether there was memory for copies, in all processes."""
        return not self.training_set.largest(float(not self.good.kept))

    def _give_up(self, what: str, step: int) -> NoReturn:
        self.good.restore()
        raise DivergedError(self.report.epochs, step, what, kept=self.good.kept)


def _summed(losses: list[Tensor], sizes: list[int]) -> tuple[float, int]:
    """Mean loss over the examples, and the first step, from 1, whose loss is not finite, else 0.

    Reads from the device once.
    """
    if not losses:
        return 0.0, 0
    values = torch.stack(losses).double()
    weight = torch.tensor(sizes, dtype=values.dtype).to(values.device, non_blocking=True)
    bad = ~values.isfinite()
    first = torch.where(bad.any(), bad.long().argmax() + 1, 0)
    mean, number = torch.stack([(values * weight).sum() / weight.sum(), first.double()]).tolist()
    return mean, int(number)


def _largest(tables: list[Table], parameters: list[nn.Parameter]) -> float:
    """Size of the largest weight that may have changed; NaN if any is NaN. Reads once."""
    weights = [
        table.rows if table.movable is None else table.rows.index_select(0, table.movable)
        for table in tables
    ]
    weights += [parameter.detach() for parameter in parameters]
    ends = [torch.stack(w.aminmax()).double() for w in weights if w.numel()]  # NaN propagates
    return torch.stack(ends).abs().max().item() if ends else 0.0


def _unsound(largest: float) -> str:
    """What is wrong if the largest weight has this size; empty if nothing is."""
    if not math.isfinite(largest):
        return "a weight is not finite"
    return f"a weight has the size {largest:.1e}" if largest > _LARGEST else ""

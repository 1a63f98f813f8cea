"""A progress bar for training: loss, rate and validation; quiet when nobody looks."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dicgrl.report.terminal import is_terminal
from dicgrl.training import EpochReport


@contextlib.contextmanager
def training_bar(
    title: str, epochs: int, metric: str, unit: str
) -> Iterator[Callable[[EpochReport], None]]:
    """Show a bar on the terminal while epochs are reported to what this yields.

    Args:
        title: What is trained.
        epochs: How many epochs there are at most.
        metric: Name of the validation metric.
        unit: What is counted per second.
    """
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[status]}"),
        console=Console(stderr=True),
        disable=not is_terminal(sys.stderr),
    ) as bar:
        task = bar.add_task(title, total=epochs, status="")
        best: list[float] = []

        def update(report: EpochReport) -> None:
            if report.validation is not None:
                best[:] = [max([*best, report.validation])]
            status = f"loss {report.loss:.4f}  {report.rate:,.0f} {unit}/s"
            if best:
                status += f"  best valid {metric} {best[0]:.4f}"
            bar.update(task, completed=report.epoch, status=status)

        yield update

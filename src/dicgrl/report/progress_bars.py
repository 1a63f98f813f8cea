"""Progress bars of training and of many runs; lines of a log if there is no terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from dicgrl.report.progress_lines import Tell, is_quiet, progress_lines
from dicgrl.report.terminal import is_terminal
from dicgrl.tasks import Task
from dicgrl.training import EpochReport


def units(task: Task) -> tuple[str, str]:
    """Name of a task's validation metric, and what is counted per second."""
    return task.judged_by, task.examples


def _bar(*columns: ProgressColumn) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        TextColumn("{task.fields[status]}"),
        console=Console(stderr=True),
        disable=not is_terminal(sys.stderr) or is_quiet(),
    )


def _lines(title: str) -> contextlib.AbstractContextManager[Tell]:
    return progress_lines(title, wanted=not is_terminal(sys.stderr))


@contextlib.contextmanager
def at_work(title: str) -> Iterator[None]:
    """Say now and then that work goes on, of which no steps are told; nothing on a terminal."""
    with _lines(title):
        yield


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
    with _bar(MofNCompleteColumn(), TimeRemainingColumn()) as bar, _lines(title) as tell:
        task = bar.add_task(title, total=epochs, status="")
        best: list[float] = []

        def update(report: EpochReport) -> None:
            if report.validation is not None:
                best[:] = [max([*best, report.validation])]
            status = f"loss {report.loss:.4f}  {report.rate:,.0f} {unit}/s"
            if best:
                status += f"  best valid {metric} {best[0]:.4f}"
            bar.update(task, completed=report.epoch, status=status)
            tell(f"epoch {report.epoch} of {epochs}  {status}")

        yield update


OnEpoch = Callable[[int, EpochReport], None]
Pause = Callable[[], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def parts_bar(title: str, parts: int, metric: str, unit: str) -> Iterator[tuple[OnEpoch, Pause]]:
    """Show how many parts are learned, and the epochs of the one that is being learned.

    Args:
        title: What is trained.
        parts: How many parts there are.
        metric: Name of the validation metric.
        unit: What is counted per second.

    Yields:
        What to tell about every epoch, and a context in which the bar is out of the way.
    """
    with _bar() as bar, _lines(title) as tell:
        task = bar.add_task(title, total=parts, status="")

        def update(part: int, report: EpochReport) -> None:
            status = f"part {part}, epoch {report.epoch}  loss {report.loss:.4f}"
            status += f"  {report.rate:,.0f} {unit}/s"
            if report.validation is not None:
                status += f"  valid {metric} {report.validation:.4f}"
            bar.update(task, completed=part, status=status)
            tell(status)

        @contextlib.contextmanager
        def pause() -> Iterator[None]:
            bar.stop()
            yield
            bar.start()

        yield update, pause


Hear = Callable[[object], None]


@contextlib.contextmanager
def runs_bar(total: int) -> Iterator[tuple[Hear, Hear]]:
    """Show how many runs are finished, and those that are under way.

    Args:
        total: How many runs there are.

    Yields:
        What to tell when a run begins, and when it ends.
    """
    with _bar(MofNCompleteColumn(), TimeRemainingColumn()) as bar, _lines("runs") as tell:
        task = bar.add_task("runs", total=total, status="")
        active: list[str] = []
        finished = 0

        def begin(run: object) -> None:
            active.append(str(run))
            bar.update(task, status="; ".join(active))
            tell(f"{finished} of {total} finished, at work: {'; '.join(active)}")

        def end(run: object) -> None:
            nonlocal finished
            active.remove(str(run))
            finished += 1
            bar.update(task, advance=1, status="; ".join(active))
            tell(f"{finished} of {total} finished, at work: {'; '.join(active)}")

        yield begin, end

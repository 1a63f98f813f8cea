"""Runs cells, one or several at a time; those that are finished are not run again.

Several cells run in processes of their own: one that is killed (by a lack of memory, say) fails
alone. A failing cell is reported at the end and the others go on.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from dicgrl.common.devices import pick_device
from dicgrl.datasets import check_there
from dicgrl.errors import UserError
from dicgrl.research.cells import FIRST, Cell, RunCell, load_cell, run_cell


@dataclass(slots=True)
class Outcome:
    """What became of cells.

    Attributes:
        kept: Cells that were finished before.
        ran: Cells that were run now.
        failed: Cells that failed, with the reason.
        left: Cells that the time did not allow to begin.
    """

    kept: list[Cell] = field(default_factory=list)
    ran: list[Cell] = field(default_factory=list)
    failed: dict[Cell, str] = field(default_factory=dict)
    left: list[Cell] = field(default_factory=list)


_LONGEST = 4000  # characters of a reason: a pipe takes no more than a page before it is read
Hear = Callable[[object], None]
Watch = Callable[[int], contextlib.AbstractContextManager[tuple[Hear, Hear]]]


def run_cells(
    cells: Iterable[Cell],
    folder: Path,
    *,
    device: str = "auto",
    jobs: int | None = None,
    minutes: float | None = None,
    watch: Watch | None = None,
    run: RunCell = run_cell,
) -> Outcome:
    """Run the cells that are not finished yet.

    Args:
        cells: What to run; a cell that is named twice is run once.
        folder: Where results are kept.
        device: auto, cpu or cuda.
        jobs: How many at a time; None for 3 on a GPU, which one cell does not fill, else 1.
        minutes: After how many no further cell begins; those that have begun end. None for no
            bound.
        watch: Given how many cells there are to run, a context with what is told about each cell
            when it begins and when it ends.
        run: What runs a cell; it must be importable by a process of its own.
    """
    outcome = Outcome()
    place = pick_device(device).type
    todo: list[Cell] = []
    for cell in {cell.key(): cell for cell in cells}.values():
        finished = load_cell(folder, cell) is not None
        (outcome.kept if finished else todo).append(cell)
    for dataset in dict.fromkeys(cell.dataset for cell in todo):
        check_there(dataset)
    todo = _spread(todo)
    jobs = max(1, min(jobs or (3 if place == "cuda" else 1), len(todo)))
    allowed = _while_time_is_left(todo, minutes, outcome)
    with (watch or _quiet)(len(todo)) as (begins, ends):
        if jobs == 1:
            ended = _in_turn(allowed, folder, place, run, begins)
        else:
            ended = _side_by_side(allowed, folder, place, jobs, run, begins)
        for cell, reason in ended:
            ends(cell)
            if reason is None:
                outcome.ran.append(cell)
            else:
                outcome.failed[cell] = reason
    if not outcome.failed and not outcome.left:
        shutil.rmtree(folder / FIRST, ignore_errors=True)  # nobody needs them any more
    return outcome


def _while_time_is_left(
    cells: Sequence[Cell], minutes: float | None, outcome: Outcome
) -> Iterator[Cell]:
    """The cells, as long as there is time to begin one; the others are noted."""
    ends = math.inf if minutes is None else time.monotonic() + 60 * minutes
    for cell in cells:
        if time.monotonic() < ends:
            yield cell
        else:
            outcome.left.append(cell)


def _spread(cells: Sequence[Cell]) -> list[Cell]:
    """Cells in an order in which those that share a first part do not begin together."""
    seen: dict[str, int] = {}
    turns = []
    for cell in cells:
        key = cell.first_key()
        seen[key] = seen.get(key, 0) + 1
        turns.append(seen[key])
    return [cells[i] for i in sorted(range(len(cells)), key=lambda i: turns[i])]


@contextlib.contextmanager
def _quiet(count: int) -> Iterator[tuple[Hear, Hear]]:
    del count
    yield (lambda _: None), (lambda _: None)


def _in_turn(
    cells: Iterable[Cell], folder: Path, device: str, run: RunCell, begins: Hear
) -> Iterator[tuple[Cell, str | None]]:
    for cell in cells:
        begins(cell)
        yield cell, _attempt(run, folder, cell, device, 1)


def _attempt(run: RunCell, folder: Path, cell: Cell, device: str, at_once: int) -> str | None:
    """Run a cell; gives the reason if it fails."""
    try:
        run(folder, cell, device, at_once)
    except UserError as error:
        return str(error)
    except Exception as error:  # whatever it is, the other cells are not concerned
        return f"{type(error).__name__}: {error}"
    return None


def _side_by_side(
    cells: Iterator[Cell], folder: Path, device: str, jobs: int, run: RunCell, begins: Hear
) -> Iterator[tuple[Cell, str | None]]:
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    running: dict[int, tuple[BaseProcess, Connection, Cell]] = {}
    try:
        while True:
            while len(running) < jobs and (cell := next(cells, None)) is not None:
                ours, theirs = context.Pipe(duplex=False)
                arguments = (theirs, run, folder, cell, device, jobs)
                process: BaseProcess = context.Process(target=_child, args=arguments, daemon=True)
                process.start()
                theirs.close()
                running[process.sentinel] = (process, ours, cell)
                begins(cell)
            if not running:
                return
            for sentinel in wait(list(running)):
                assert isinstance(sentinel, int)
                process, ours, cell = running.pop(sentinel)
                process.join()
                yield cell, _last_words(process, ours)
    finally:
        for process, _, _ in running.values():  # interrupted: nobody waits for them any more
            process.terminate()
            process.join()


def _child(
    reply: Connection, run: RunCell, folder: Path, cell: Cell, device: str, at_once: int
) -> None:
    torch.set_num_threads(max(1, torch.get_num_threads() // at_once))
    reason = _attempt(run, folder, cell, device, at_once)
    reply.send(reason and reason[:_LONGEST])


def _last_words(process: BaseProcess, reply: Connection) -> str | None:
    """The reason why a cell failed; None where it did not."""
    try:
        said: str | None = reply.recv()
    except EOFError:
        return f"its process ended with exit code {process.exitcode}"
    finally:
        reply.close()
    return said

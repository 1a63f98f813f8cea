"""Runs cells, one or several at a time; those that are finished are not run again.

Several cells run in processes of their own: one that is killed (by a lack of memory, say) fails
alone. A failing cell is reported at the end and the others go on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import shutil
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
    """

    kept: list[Cell] = field(default_factory=list)
    ran: list[Cell] = field(default_factory=list)
    failed: dict[Cell, str] = field(default_factory=dict)


_LONGEST = 4000  # characters of a reason: a pipe takes no more than a page before it is read
Hear = Callable[[object], None]
Watch = Callable[[int], contextlib.AbstractContextManager[tuple[Hear, Hear]]]


def run_cells(
    cells: Iterable[Cell],
    folder: Path,
    *,
    device: str = "auto",
    jobs: int | None = None,
    watch: Watch | None = None,
    run: RunCell = run_cell,
) -> Outcome:
    """Run the cells that are not finished yet.

    Args:
        cells: What to run; a cell that is named twice is run once.
        folder: Where results are kept.
        device: auto, cpu or cuda.
        jobs: How many at a time; None for 3 on a GPU, which one cell does not fill, else 1.
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
    with (watch or _quiet)(len(todo)) as (begins, ends):
        if jobs == 1:
            ended = _in_turn(todo, folder, place, run, begins)
        else:
            ended = _side_by_side(todo, folder, place, jobs, run, begins)
        for cell, reason in ended:
            ends(cell)
            if reason is None:
                outcome.ran.append(cell)
            else:
                outcome.failed[cell] = reason
    if not outcome.failed:
        shutil.rmtree(folder / FIRST, ignore_errors=True)  # nobody needs them any more
    return outcome


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
    cells: Sequence[Cell], folder: Path, device: str, run: RunCell, begins: Hear
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
    cells: Sequence[Cell], folder: Path, device: str, jobs: int, run: RunCell, begins: Hear
) -> Iterator[tuple[Cell, str | None]]:
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    running: dict[int, tuple[BaseProcess, Connection, Cell]] = {}
    waiting = list(reversed(cells))
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                cell = waiting.pop()
                ours, theirs = context.Pipe(duplex=False)
                arguments = (theirs, run, folder, cell, device, jobs)
                process: BaseProcess = context.Process(target=_child, args=arguments, daemon=True)
                process.start()
                theirs.close()
                running[process.sentinel] = (process, ours, cell)
                begins(cell)
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

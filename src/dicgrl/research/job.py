"""The job of `dicgrl reproduce`: run what is missing, then write a report of what is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dicgrl.common.locks import locked
from dicgrl.errors import UserError, shown, unknown_name
from dicgrl.research.cells import Cell, RunCell, run_cell
from dicgrl.research.engine import Outcome, Watch, run_cells
from dicgrl.research.report import write_report
from dicgrl.research.target import Content, Options, Target
from dicgrl.trainers.snapshots import PROTOCOLS


def reproduce(
    targets: Sequence[Target],
    options: Options,
    folder: Path,
    *,
    only: str = "",
    device: str = "auto",
    jobs: int | None = None,
    minutes: float | None = None,
    watch: Watch | None = None,
    run: RunCell = run_cell,
) -> tuple[Outcome, list[tuple[dict[str, Any], Content]]]:
    """Run the cells of targets that are not finished, and write a report of each target.

    Args:
        targets: The targets; cells that several of them need are run once.
        options: Recipe, seeds and changed settings.
        folder: Where cells and reports go.
        only: Run only cells whose name contains this text; reports show whatever is finished.
        device: auto, cpu or cuda.
        jobs: How many cells at a time.
        minutes: After how many no further cell begins.
        watch: See `run_cells`.
        run: What runs a cell.

    Returns:
        What became of the cells, and the reports of the targets that have something to show.

    Raises:
        BusyError: Another command is at work in the folder; processes of this one are not.
    """
    if options.protocol not in PROTOCOLS:
        raise unknown_name("protocol", options.protocol, PROTOCOLS)
    cells = [cell for target in targets for cell in target.cells(options)]
    chosen = _chosen(cells, only)
    options.check(chosen)
    if options.protocol != Options().protocol and not any(
        cell.protocol == options.protocol for cell in chosen
    ):
        raise UserError(
            f"--protocol {options.protocol} is about knowledge graphs that are learned part by "
            "part; none is here"
        )
    with locked(folder):
        outcome = run_cells(
            chosen, folder, device=device, jobs=jobs, minutes=minutes, watch=watch, run=run
        )
        reports = [write_report(target, options, folder) for target in targets]
    return outcome, [entry for entry in reports if entry[1].tables]


def _chosen(cells: Sequence[Cell], only: str) -> list[Cell]:
    found = [cell for cell in cells if only.lower() in str(cell).lower()]
    if cells and not found:
        raise UserError(f"--only {shown(only)}: no cell's name contains it; one is {cells[0]}")
    return found

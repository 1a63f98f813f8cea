"""Learning curves: whole and average metrics over the parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from dicgrl.common.atomic import replacing_file
from dicgrl.errors import UserError
from dicgrl.report.results_text import SHOWN, Results, main_metrics, run_labels, run_title

_ENDINGS = (".png", ".svg", ".pdf")


def check_picture(path: Path) -> None:
    """Refuse the name of a picture that cannot be drawn.

    Raises:
        UserError: It has another ending.
    """
    if path.suffix not in _ENDINGS:
        raise UserError(f"--out {path}: expected a name that ends with .png, .svg or .pdf")


def draw_curves(runs: Sequence[Results], path: Path) -> None:
    """Draw whole and average metrics over the parts, one line per run; PNG, SVG or PDF by ending.

    Args:
        runs: Results of the runs.
        path: The picture to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # no window, no global state
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    metrics = main_metrics(runs)
    figure = Figure(figsize=(10, 3.6 * len(metrics) or 2), layout="constrained")
    FigureCanvasAgg(figure)
    labels = run_labels(runs)
    if not metrics:
        figure.text(0.5, 0.4, "no test sets: nothing was measured", ha="center")
    # Whole and average share their scale, so that one can be read against the other.
    grid: Any = figure.subplots(len(metrics), 2, squeeze=False, sharey="row") if metrics else []
    for row, metric in zip(grid, metrics, strict=True):
        for axes, scope in zip(row, ("average", "whole"), strict=True):
            for run, label, marker in zip(runs, labels, cycle("oDs^vPX*"), strict=False):
                measured = [part for part in run["parts"] if metric in part[scope]]
                numbers = [part["part"] for part in measured]
                values = [part[scope][metric] * 100 for part in measured]
                axes.plot(numbers, values, marker=marker, alpha=0.8, label=label)
            axes.set_title(f"{SHOWN[metric]}, {scope}")
            axes.set_xlabel("after part")
            axes.set_ylabel("per cent")
            axes.grid(alpha=0.3)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(runs) > 1 and metrics:
        handles, names = grid[0][0].get_legend_handles_labels()
        columns = max(1, min(len(names), 110 // (max(map(len, names)) + 8)))
        figure.legend(handles, names, loc="outside lower center", ncols=columns)
    figure.suptitle(", ".join(sorted({run_title(run, len(runs) == 1) for run in runs})))
    with replacing_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix("."), dpi=120)

"""Reliability diagram: what probabilities say beside what comes true, after each part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dicgrl.common.atomic import replacing_file
from dicgrl.report.results_text import Results, run_title

_SHOWN = 4  # panels: the first part and the last ones


def draw_reliability(run: Results, path: Path) -> bool:
    """Draw the reliability of first answers on test examples; PNG, SVG or PDF by ending.

    Args:
        run: Results of a run.
        path: The picture to write.

    Returns:
        Whether there was anything to draw.
    """
    parts = [part for part in run["parts"] if (part.get("calibration") or {}).get("bins")]
    if not parts:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # no window, no global state
    from matplotlib.figure import Figure

    parts = parts if len(parts) <= _SHOWN else [parts[0], *parts[1 - _SHOWN :]]
    figure = Figure(figsize=(3.4 * len(parts), 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    grid: Any = figure.subplots(1, len(parts), squeeze=False, sharey="row")
    for axes, part in zip(grid[0], parts, strict=True):
        found = part["calibration"]
        said = [each["said"] for each in found["bins"]]
        right = [each["right"] for each in found["bins"]]
        errors = [
            (p * (1 - p) / each["count"]) ** 0.5
            for p, each in zip(said, found["bins"], strict=True)
        ]
        axes.plot([0, 1], [0, 1], color="gray", linewidth=1)
        axes.errorbar(said, right, yerr=errors, marker="o", capsize=2)
        axes.set_title(f"after part {part['part']}: ECE {100 * found['ece']:.1f} %", fontsize=10)
        axes.set_xlabel("probability of the first answer")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.grid(alpha=0.3)
    grid[0][0].set_ylabel("share that is right")
    figure.suptitle(
        f"{run_title(run)}: bins of equal size, bars of one standard error", fontsize=10
    )
    with replacing_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix("."), dpi=120)
    return True

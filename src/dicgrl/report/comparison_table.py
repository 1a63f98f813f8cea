"""The table of several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table

from dicgrl.report.results_text import (
    SHOWN,
    Results,
    main_metrics,
    percent_text,
    positives_text,
    run_labels,
    sample_text,
    seconds_text,
)
from dicgrl.report.terminal import titled


def comparison_table(runs: Sequence[Results]) -> Group:
    """Several runs side by side after their last part."""
    same = {run["dataset"] for run in runs}
    table = Table()
    metrics = main_metrics(runs)[:2]
    table.add_column("run")
    for name in metrics:
        table.add_column(f"{SHOWN[name]} whole", justify="right")
        table.add_column(f"{SHOWN[name]} average", justify="right")
    for heading in (
        "forgetting",
        "retention",
        "replayed",
        "positives per later part",
        "s per later part",
    ):
        table.add_column(heading, justify="right")
    for run, label in zip(runs, run_labels(runs), strict=True):
        last = run["parts"][-1]
        cells = []
        for name in metrics:
            cells += [
                percent_text(last["whole"].get(name)),
                percent_text(last["average"].get(name)),
            ]
        later = run["parts"][1:]
        seconds = sum(part["learn_seconds"] for part in later) / max(len(later), 1)
        table.add_row(
            label,
            *cells,
            percent_text(run["forgetting"]),
            percent_text(run["retention"]),
            f"{sum(part['replayed_examples'] for part in later):,}",
            positives_text(later),
            seconds_text(seconds) if later else "",
        )
    samples = [
        f"{label}: measured {sample}"
        for run, label in zip(runs, run_labels(runs), strict=True)
        if (sample := sample_text(run["parts"][-1]))
    ]
    title = f"{', '.join(sorted(same))}: after the last part, in per cent"
    return titled(title, table, "; ".join(samples))

"""The table of several runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    """Several runs side by side after their last part, or the last that was measured."""
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
    notes = []
    for run, label in zip(runs, run_labels(runs), strict=True):
        last = _last_measured(run)
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
            percent_text(last["forgetting"]),
            percent_text(last["retention"]),
            f"{sum(part['replayed_examples'] for part in later):,}",
            positives_text(later),
            seconds_text(seconds) if later else "",
        )
        if note := _measured_text(run, last):
            notes.append(f"{label}: {note}")
    title = f"{', '.join(sorted(same))}: after the last part, in per cent"
    return titled(title, table, "; ".join(notes))


def _last_measured(run: Results) -> Mapping[str, Any]:
    """The last part after which something was measured; the last of all if there is none."""
    parts: list[dict[str, Any]] = run["parts"]
    return ([part for part in parts if part["tests"]] or parts)[-1]


def _measured_text(run: Results, last: Mapping[str, Any]) -> str:
    """On what the numbers of a run were measured; empty for everything, after its last part."""
    if not last["tests"]:
        return "nothing was measured"
    sample = sample_text(last)
    if last is run["parts"][-1]:
        return f"measured {sample}" if sample else ""
    told = " ".join(filter(None, ["measured", sample, f"after part {last['part']} and not since"]))
    return f"{told}; `dicgrl learn` measures now, even if its facts are all known"

"""The table of `dicgrl evaluate`."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table

from dicgrl.report.results_text import SHOWN, table_metrics
from dicgrl.report.terminal import titled


def evaluation_table(source: str, found: dict[str, Any]) -> Group:
    """Metrics of triples in per cent, and those of each relation where they are there."""
    everything = {**found, "relation": "all", "asked": "both"}
    rows = (everything, *found.get("relations", ()))
    columns = [name for name in table_metrics(rows) if name in SHOWN]
    table = Table()
    for heading in ("relation", "asked for"):
        table.add_column(heading)
    for heading in ("triples", *(SHOWN[name] for name in columns)):
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [f"{100 * row[name]:.1f}" for name in columns]
        table.add_row(row["relation"], row["asked"], f"{row['count']:,}", *cells)
    notes = [
        f"{found[key]:,} {words}"
        for key, words in (
            ("unknown", "with an unknown label, left out"),
            ("known", "learned already"),
        )
        if found[key]
    ]
    return titled(f"{source}: filtered ranks, in per cent", table, "; ".join(notes))

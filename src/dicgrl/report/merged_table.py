"""The table of a run that merged all parts."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from dicgrl.report.results_text import SHOWN
from dicgrl.report.terminal import titled


def merged_table(results: dict[str, Any]) -> Group:
    """Metrics in per cent on validation and test data, the published ones below."""
    form = "disentangled" if results["settings"]["components"] else "plain"
    title = f"{results['dataset']}, {results['model']} ({form}), all parts merged, in per cent"
    links = results["task"] == "link-prediction"
    columns = {k: v for k, v in SHOWN.items() if (k != "accuracy") == links}
    table = Table()
    table.add_column("")
    for heading in columns.values():
        table.add_column(heading, justify="right")
    for name in ("validation", "test", "published"):
        values = results[name]
        if values:
            scale = 1 if name == "published" else 100
            cells = [f"{values[k] * scale:.1f}" if k in values else "" for k in columns]
            table.add_row("paper (test)" if name == "published" else name, *cells)
    measured = table if table.row_count else Text("no validation or test set: nothing was measured")
    caption = (
        f"best of {results['epochs']} epochs: {results['best_epoch']}; learned in "
        f"{results['learn_seconds']:.1f} s on {results['device']}"
    )
    return titled(title, measured, caption)

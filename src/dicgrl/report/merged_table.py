"""The table of a run that merged all parts."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from dicgrl.report.results_text import SHOWN, table_metrics
from dicgrl.report.terminal import titled


def merged_table(results: dict[str, Any]) -> Group:
    """Metrics in per cent on validation and test data, the published ones below."""
    form = "disentangled" if results["settings"].get("components") else "plain"
    title = f"{results['dataset']}, {results['model']} ({form}), all parts merged, in per cent"
    columns = table_metrics([results[name] or {} for name in ("validation", "test", "published")])
    table = Table()
    table.add_column("")
    for name in columns:
        table.add_column(SHOWN[name], justify="right")
    for name in ("validation", "test", "published"):
        values = results[name]
        if values:
            scale = 1 if name == "published" else 100
            cells = [f"{values[k] * scale:.1f}" if k in values else "" for k in columns]
            table.add_row("paper (test)" if name == "published" else name, *cells)
    content = table if table.row_count else Text("no validation or test set: nothing was measured")
    caption = (
        f"best of {results['epochs']} epochs: {results['best_epoch']}; learned in "
        f"{results['learn_seconds']:.1f} s on {results['device']}"
    )
    return titled(title, content, caption)

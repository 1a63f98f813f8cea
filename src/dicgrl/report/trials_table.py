"""The table of a sweep."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table

from dicgrl.jobs.sweep import Sweep
from dicgrl.report.results_text import SHOWN
from dicgrl.report.terminal import titled


def trials_table(found: Sweep) -> Group:
    """Trials, best first."""
    settings = found.settings
    how = "all parts merged" if found.merged else f"{settings.strategy}, mean of the parts"
    title = f"{found.dataset}, {settings.model}, {how}: validation {SHOWN[found.metric]}, per cent"
    table = Table()
    table.add_column("", justify="right")
    for key in found.trials[0].values:
        table.add_column(key, justify="right")
    table.add_column(SHOWN[found.metric], justify="right")
    for number, trial in enumerate(found.trials, 1):
        value = trial.state if trial.value is None else f"{100 * trial.value:.2f}"
        table.add_row(str(number), *trial.values.values(), value)
    return titled(title, table)

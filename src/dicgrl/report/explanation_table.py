"""Tables of an explanation."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table

from dicgrl.ask.explain import Explanation
from dicgrl.report.terminal import titled


def explanation_tables(found: Explanation) -> list[Group]:
    """The components that a triple uses, and the old triples that it would activate."""
    used = Table()
    used.add_column("component", justify="right")
    used.add_column("attention", justify="right")
    for component, weight in sorted(found.components.items(), key=lambda item: -item[1]):
        used.add_row(str(component), f"{weight:.3f}")
    kind = "known" if found.known else "held out to measure with" if found.held_out else "new"
    state = f"score {found.score:.3f}, {kind}"
    title = f"Would activate {sum(found.activated.values()):,} of {found.candidates:,} old triples"
    title += " (" + ", ".join(f"order {k}: {v:,}" for k, v in found.activated.items()) + ")"
    table = Table()
    table.add_column("old triple")
    table.add_column("order", justify="right")
    table.add_column("shared components")
    table.add_column("merit", justify="right")
    for entry in found.best:
        shared = ", ".join(map(str, entry.shared))
        table.add_row(" -- ".join(entry.triple), str(entry.order), shared, f"{entry.merit:.4f}")
    return [titled(" -- ".join(found.triple), used, state), titled(title, table)]

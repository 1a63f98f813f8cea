"""The table of `dicgrl map`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table

from dicgrl.report.terminal import titled
from dicgrl.store.maps import StoredMap


def maps_table(folder: str, made: Sequence[StoredMap]) -> Group:
    """A row for each map: who is on it, who came, and how far the others moved."""
    table = Table()
    for heading in ("version", "shown", "came", "moved", "95 % within", "seconds"):
        table.add_column(heading, justify="right")
    for each in made:
        about = each.about
        moved = about.get("moved")
        table.add_row(
            str(each.version),
            f"{about['shown']:,}",
            f"{about['came']:,}",
            f"{moved['median']:.1%}" if moved else "",
            f"{moved['most']:.1%}" if moved else "",
            f"{about['seconds']:.1f}",
        )
    note = "moved: how far half of the old points moved at most, as a share of the map's spread"
    return titled(f"maps of {folder}", table, note)

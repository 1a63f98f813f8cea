"""The tables of `dicgrl log` and `dicgrl diff`."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table

from dicgrl.report.terminal import titled


def log_table(folder: str, versions: list[dict[str, Any]]) -> Group:
    """A row for each version, the newest last."""
    table = Table()
    for heading in ("version", "kind", "time", "brought", "model", "tags", "message"):
        table.add_column(heading, justify="right" if heading == "version" else "left")
    for version in versions:
        brought = ", ".join(
            f"{count:,} {name.replace('_', ' ')}" for name, count in version["counts"].items()
        )
        table.add_row(
            str(version["version"]),
            version["kind"],
            version["time"].removesuffix("+00:00").replace("T", " "),
            brought,
            "kept" if version["model"] else "",
            ", ".join(version["tags"]),
            version["message"],
        )
    return titled(folder, table, "times in UTC; --at VERSION asks an earlier one")


def diff_tables(found: dict[str, Any]) -> list[Group]:
    """What changed between two versions: facts, labels and vectors."""
    before, after = found["from"], found["to"]
    facts = Table()
    facts.add_column("")
    facts.add_column("fact")
    for sign, side in (("+", "added"), ("-", "removed")):
        for fact in found["facts"][side]["some"]:
            facts.add_row(sign, " -- ".join(fact))
    told = ", ".join(f"{found['facts'][side]['count']:,} {side}" for side in ("added", "removed"))
    tables = [titled(f"version {before} to {after}: facts", facts, told)]
    for name, rows in found["vectors"].items():
        table = Table()
        for heading in ("label", "moved"):
            table.add_column(heading, justify="right" if heading == "moved" else "left")
        for mover in rows["movers"]:
            table.add_row(mover["name"], f"{mover['distance']:.4g}")
        caption = f"{rows['changed']:,} of {rows['rows']:,} rows changed, {rows['new']:,} are new"
        tables.append(titled(f"version {before} to {after}: {name}", table, caption))
    return tables

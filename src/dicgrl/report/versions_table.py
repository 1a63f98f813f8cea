"""The tables of `dicgrl log` and `dicgrl diff`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.table import Table

from dicgrl.graph.change import FORGET, RENAME, REPLACE
from dicgrl.report.terminal import counted, number_of, titled

_LEAVE = ("triples", "edges", "nodes")  # the facts of a change that are known no more


def log_table(folder: str, versions: list[dict[str, Any]]) -> Group:
    """A row for each version, the newest last."""
    table = Table()
    for heading in ("version", "kind", "time", "brought", "model", "tags", "message"):
        table.add_column(heading, justify="right" if heading == "version" else "left")
    for version in versions:
        table.add_row(
            str(version["version"]),
            version["kind"],
            version["time"].removesuffix("+00:00").replace("T", " "),
            brought(version["kind"], version["counts"]),
            "kept" if version["model"] else "",
            ", ".join(version["tags"]),
            version["message"],
        )
    return titled(folder, table, "times in UTC; --at VERSION asks an earlier one")


def brought(kind: str, counts: Mapping[str, int]) -> str:
    """What a version brought or took, in words.

    Example:
        >>> brought("learn", {"facts": 3, "new_entities": 1, "new_relations": 0})
        '3 facts, 1 new entity'
        >>> brought("replace", {"facts": 1, "new_entities": 0, "triples": 2})
        '1 fact, 2 triples gone'
        >>> brought("merge", {"ids": 1}), brought("restore", {"restored": 4})
        ('1 pair', 'what version 4 was')
    """
    said = []
    for name, count in counts.items():
        if name == "restored":
            said.append(f"what version {count} was")
        elif name == "dated":
            said.append(counted(count, "date"))
        elif name == "again":
            said.append(f"{count:,} again")
        elif name == "ids":
            said.append(counted(count, "label" if kind == RENAME else "pair"))
        elif count:
            gone = " gone" if kind in (FORGET, REPLACE) and name in _LEAVE else ""
            said.append(number_of(count, name.replace("_", " ")) + gone)
    return ", ".join(said)


def diff_tables(found: dict[str, Any]) -> list[Group]:
    """What changed between two versions: facts, labels and vectors."""
    before, after = found["from"], found["to"]
    facts = Table()
    facts.add_column("")
    facts.add_column("fact")
    facts.add_column("date")
    for sign, side in (("+", "added"), ("-", "removed")):
        shown = found["facts"][side]
        for fact, date in zip(shown["some"], shown["dates"], strict=True):
            facts.add_row(sign, " -- ".join(fact), date)
    told = ", ".join(f"{found['facts'][side]['count']:,} {side}" for side in ("added", "removed"))
    told += f", {found['facts']['redated']:,} of another date" if found["facts"]["redated"] else ""
    if missing := sorted(set(found["not_kept"])):
        one = f"the model of version {missing[0]} was"
        whose = one if len(missing) == 1 else f"the models of versions {before} and {after} were"
        told += f"; vectors cannot be compared: {whose} not kept"
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

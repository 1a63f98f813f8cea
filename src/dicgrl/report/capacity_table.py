"""The tables of `dicgrl plan`."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table


def capacity_table(found: dict[str, Any]) -> Group:
    """Memory by what it is for, times, and advice."""
    memory = Table()
    memory.add_column("memory")
    memory.add_column("GB", justify="right")
    for place, parts in found["memory"].items():
        for name, size in parts.items():
            memory.add_row(f"{place}: {name}", f"{size / 1e9:,.2f}")
    memory.add_row("run folder, one version", f"{found['store_bytes'] / 1e9:,.2f}")
    free = found["free_bytes"]
    here = "" if free is None else f"; {free / 1e9:,.1f} GB are free"
    spilled = found["spilled_bytes"]
    lines: list[RenderableType] = [
        f"{found['entities']:,} entities, {found['triples']:,} triples: {found['model']}, "
        f"dim={found['dim']}, on {found['device']}{_each(found)}, read from {found['source']}",
        memory,
        f"{found['needed_bytes'] / 1e9:,.1f} GB on the device at one time{here}: "
        + ("it fits" if found["fits"] else f"as much as {found['devices']:,} such have free"),
    ]
    if spilled:
        lines.append(f"{spilled / 1e9:,.1f} GB of triples and index are on a disk: DICGRL_SPILL.")
    if found["seconds"] is not None:
        lines += _times(found)
    if found["ranks"] > 1:
        lines.append(
            f"Each process sends {found['sent_bytes'] / 1e9:,.2f} GB to others in an epoch, at "
            "most; the time of that is not counted."
        )
    lines += [f"- {line}" for line in found["advice"]]
    return Group(*lines)


def _each(found: dict[str, Any]) -> str:
    return f", each of {found['ranks']:,} processes" if found["ranks"] > 1 else ""


def _times(found: dict[str, Any]) -> list[RenderableType]:
    times = Table()
    times.add_column("time")
    times.add_column("", justify="right")
    for name, seconds in found["seconds"].items():
        if name != "epochs":
            times.add_row(_called(name, found), spoken(seconds))
    rates = found["rates"]
    return [
        times,
        f"Measured here with {rates['rows']:,} entities: {rates['positives']:,.0f} positives/s, "
        f"{rates['indexed']:,.0f} triples/s taken in, {rates['ranked']:,.0f} pairs/s ranked; a "
        "larger table is slower where it leaves a cache.",
    ]


def _called(name: str, found: dict[str, Any]) -> str:
    if name == "training":
        return f"training, {found['seconds']['epochs']} epochs"
    return f"update with {found['part']:,} facts" if name == "update" else name


def spoken(seconds: float) -> str:
    """Seconds as people say them.

    Example:
        >>> spoken(0.04), spoken(75), spoken(5400), spoken(400_000)
        ('0.04 s', '75 s', '1.5 h', '4.6 days')
    """
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.2f} s" if seconds < 10 else f"{seconds:,.0f} s"

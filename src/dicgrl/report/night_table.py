"""What `dicgrl nightly` prints, and the trends of `dicgrl info`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from dicgrl.report.night_text import (
    Night,
    foretold_text,
    gate_state,
    gate_text,
    left_out,
    measures,
    metrics_shown,
    retraining_text,
    verdict,
)
from dicgrl.report.results_text import SHOWN
from dicgrl.report.sparkline import sparkline
from dicgrl.report.terminal import counted, titled


def night_table(night: Night) -> Group:
    """What became of a night."""
    facts, held_out = night["facts"], night.get("held_out", {})
    lines = [f"{counted(facts['learned'], 'fact')} learned of {facts['given']:,} given"]
    lines[0] += "".join(f", {said}" for said in left_out(night))
    if facts["new"] > facts["learned"]:
        lines[0] += f", {facts['new']:,} new"
    if facts["new"]:
        lines.append(foretold_text(night))
    if moved := night["moved"].get("mean"):
        lines.append(f"what was there before moved by {100 * moved:.1f} % on average")
    table = _held_out_table(night)
    after = [f"warning: {doubt}" for doubt in night["doubts"]]
    after += [
        f"gate {gate['gate']}: {gate_state(gate)}, {gate_text(gate)}" for gate in night["gates"]
    ]
    after += [text for text in [retraining_text(night)] if text]
    if held_out.get("retention") is not None:
        after.insert(0, f"retention {100 * held_out['retention']:.1f}")
    title = f"{night['dataset']}, night {night['night']}: {verdict(night)}"
    return Group(
        Text(title),
        *map(Text, lines),
        *([table] if table else []),
        *map(Text, after),
    )


def _held_out_table(night: Night) -> Table | None:
    held_out = night.get("held_out", {})
    names = [name for name in metrics_shown(night) if name in held_out.get("metrics", {})]
    if not names:
        return None
    table = Table()
    table.add_column("held-out facts")
    table.add_column("count", justify="right")
    for name in names:
        table.add_column(SHOWN[name], justify="right")
    rows = [("before tonight", "before"), ("the same, now", "same"), ("all", "")]
    for title, key in rows:
        found = held_out[key] if key else held_out
        if found["metrics"]:
            cells = [f"{100 * found['metrics'][name]:.1f}" for name in names]
            table.add_row(title, f"{found['asked']:,}", *cells)
    return table


def night_summary(night: Night) -> dict[str, Any]:
    """A night in a few values, ready for JSON."""
    about = {name: night[name] for name in ("night", "version", "time", "kept")}
    return about | {each.name: each.of(night) for each in measures([night])}


def trends_table(nights: Sequence[Night]) -> Group:
    """A small picture of each measure over the nights, the newest on the right."""
    table = Table()
    for heading in ("nightly", "", "least", "most", "last"):
        right = heading in ("least", "most", "last")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for each in measures(nights):
        series = [each.of(night) for night in nights]
        known = [value for value in series if value is not None]
        ends = (min(known), max(known), known[-1])
        table.add_row(each.title, sparkline(series), *map(each.shown, ends))
    refused = sum(not night["kept"] for night in nights)
    caption = f"{counted(len(nights), 'night')}, {refused:,} refused; in per cent but for counts"
    told = retraining_text(nights[-1])
    return titled("", table, caption + (f"\n{told}" if told else ""))

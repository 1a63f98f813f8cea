"""The table of `dicgrl info`."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table

from dicgrl.report.results_text import (
    SHOWN,
    main_metrics,
    others_text,
    positives_text,
    sample_text,
)
from dicgrl.report.sparkline import sparkline
from dicgrl.report.terminal import titled

_FEW = 3  # values, or there is no trend
_COUNTS = {"new_examples": "examples", "replayed_examples": "replayed"}


def overview_table(found: dict[str, Any]) -> Group:
    """A line about a run, and a row for each of its parts."""
    parts = found["parts"]
    metrics = main_metrics([{"parts": [part for part in parts if "whole" in part]}])[:1]
    kinds = _kinds(parts)
    size = f"{found['folder']}: {found['bytes'] / 1e6:,.1f} MB"
    facts = "; ".join(filter(None, [_totals(parts, kinds), size]))
    caption = facts + _last_sample(parts) + _others_at_the_end(parts)
    lines = [caption, *_trends(parts, metrics)]
    return titled(_title(found), _table(parts, kinds, metrics), "\n".join(lines))


def _kinds(parts: list[dict[str, Any]]) -> list[str]:
    """What parts bring besides examples, by the keys of their counts: new_entities, ..."""
    if not parts:
        return []
    return [key for key in parts[0] if key.startswith("new_") and key not in _COUNTS]


def _table(parts: list[dict[str, Any]], kinds: list[str], metrics: list[str]) -> Table:
    """A row for each part: what it brought, and what was measured after it."""
    counts = [*kinds, *_COUNTS]
    scopes = [(scope, name) for name in metrics for scope in ("whole", "average")]
    table = Table()
    table.add_column("part")
    for heading in (
        *(_COUNTS.get(key, key.replace("_", " ")) for key in counts),
        "positives",
        "seconds",
        *(f"{SHOWN[name]} {scope}" for scope, name in scopes),
        "retention",
        "calibration error",
    ):
        table.add_column(heading, justify="right")
    for part in parts:
        table.add_row(
            _part(part),
            *(_shown(part.get(key), ",") for key in counts),
            positives_text([part]),
            _shown(part.get("learn_seconds"), ".1f"),
            *(_shown(part.get(scope, {}).get(name), ".1f", 100) for scope, name in scopes),
            _shown(part.get("retention"), ".1f", 100),
            _shown((part.get("calibration") or {}).get("ece"), ".1f", 100),
        )
    return table


def _totals(parts: list[dict[str, Any]], kinds: list[str]) -> str:
    """How much of each kind all parts brought together."""
    totals = {key.removeprefix("new_"): sum(part.get(key, 0) for part in parts) for key in kinds}
    return ", ".join(f"{total:,} {kind}" for kind, total in totals.items())


def _last_sample(parts: list[dict[str, Any]]) -> str:
    """Of how many test examples the last measurement was; earlier ones are alike."""
    for part in reversed(parts):
        if sample := sample_text(part):
            return f"; after part {part['part']} measured {sample}"
    return ""


def _others_at_the_end(parts: list[dict[str, Any]]) -> str:
    """What was measured last, besides the main metric."""
    for part in reversed(parts):
        if part.get("whole"):
            others = others_text(part["whole"])
            return f"; at the end {others}" if others else ""
    return ""


def _trends(parts: list[dict[str, Any]], metrics: list[str]) -> list[str]:
    """Small pictures of what was measured after each part, where there are enough of them."""
    series = {f"{SHOWN[name]} whole": [part.get("whole", {}).get(name) for part in parts]
              for name in metrics}  # fmt: skip
    series["retention"] = [part.get("retention") for part in parts]
    return [
        f"{title}: {sparkline(values)}"
        for title, values in series.items()
        if sum(value is not None for value in values) >= _FEW
    ]


def _part(part: dict[str, Any]) -> str:
    """The number of a part, and what was done after it where it was no part that arrived."""
    kind = part.get("kind", "learn")
    return str(part["part"]) if kind == "learn" else f"{part['part']} {kind}"


def _title(found: dict[str, Any]) -> str:
    settings = found["settings"]
    form = "plain"
    if settings.get("components"):
        form = f"{settings['top']} of {settings['components']} components"
    if "vector" in found:
        active, length = found["vector"]["active"], found["vector"]["length"]
        form += f", {length} numbers" if active == length else f", {active} of {length} numbers"
    merged = ", all parts merged" if found["whole"] else ""
    return (
        f"{found['dataset']}{merged}: {found['model']} ({form}), {found['strategy']}, "
        f"recipe {found['recipe']}, seed {found['seed']}"
    )


def _shown(value: float | None, how: str, scale: int = 1) -> str:
    return "" if value is None else format(value * scale, how)

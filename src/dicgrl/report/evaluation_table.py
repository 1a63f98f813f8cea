"""The tables of `dicgrl evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from dicgrl.evaluation.continual import Evaluation
from dicgrl.report.results_text import SHOWN, table_metrics
from dicgrl.report.terminal import titled


def evaluation_table(source: str, found: dict[str, Any]) -> Group:
    """Metrics of triples in per cent, and those of each relation where they are there."""
    everything = {**found, "relation": "all", "asked": "both"}
    rows = (everything, *found.get("relations", ()))
    columns = [name for name in table_metrics(rows) if name in SHOWN]
    table = Table()
    for heading in ("relation", "asked for"):
        table.add_column(heading)
    for heading in ("triples", *(SHOWN[name] for name in columns)):
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [f"{100 * row[name]:.1f}" for name in columns]
        table.add_row(row["relation"], row["asked"], f"{row['count']:,}", *cells)
    notes = [
        f"{found[key]:,} {words}"
        for key, words in (
            ("unknown", "with an unknown label, left out"),
            ("known", "learned already"),
        )
        if found[key]
    ]
    return titled(f"{source}: filtered ranks, in per cent", table, "; ".join(notes))


def tests_table(source: str, found: Evaluation) -> Group:
    """Metrics of the test sets of all parts, in per cent."""
    if not found.tests:
        return titled(source, Text(str(found)))
    table = test_sets(found.tests, found.whole, found.average, found.sampled)
    return titled(f"{source}: its test sets, in per cent", table)


def test_sets(
    tests: Sequence[Mapping[str, Any]],
    whole: Mapping[str, float],
    average: Mapping[str, float],
    sampled: int | None,
) -> Table:
    """A row for every test set, and what they make together, in per cent."""
    table = Table()
    table.add_column("test set")
    table.add_column("count", justify="right")
    columns = table_metrics([whole, average])
    for name in columns:
        table.add_column(SHOWN[name], justify="right")
    for test in tests:
        cells = [f"{test[name] * 100:.1f}" for name in columns]
        table.add_row(f"part {test['part']}", _count(test.get("sampled"), test["count"]), *cells)
    table.add_section()
    pooled = _count(sampled, sum(test["count"] for test in tests))
    for label, values in (("whole", whole), ("average", average)):
        cells = [f"{values[column] * 100:.1f}" for column in columns]
        table.add_row(label, pooled if label == "whole" else "", *cells)
    return table


def _count(sampled: int | None, count: int) -> str:
    return f"{count:,}" if sampled is None else f"{sampled:,} of {count:,}"

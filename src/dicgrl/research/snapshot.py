"""Tables of `dicgrl reproduce --protocol snapshot`: what stands beside those of our protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dicgrl.evaluation.metrics import SNAPSHOT
from dicgrl.report.results_text import SHOWN
from dicgrl.research.cells import Cell
from dicgrl.research.tables import Compared, Table
from dicgrl.research.target import Found, Options

METRICS = ("mrr", "hits@1", "hits@10")


def snapshot_tables(
    title: str, rows: Iterable[tuple[Mapping[str, str], Cell]], options: Options, found: Found
) -> list[Table]:
    """A table of what was measured by protocol snapshot after the last part; none where it was not.

    Args:
        title: What is shown.
        rows: What each row is called, and its cell.
        options: What was chosen.
        found: The cells that are finished.
    """
    if options.protocol != "snapshot":
        return []
    table: Table | None = None
    for names, template in rows:
        last = [done.results["parts"][-1] for done in options.found(template, found)]
        if not last or "mrr" + SNAPSHOT not in last[0]["whole"]:
            continue
        judged = {
            pooled: {
                metric: Compared([100 * part[pooled][metric + SNAPSHOT] for part in last])
                for metric in METRICS
            }
            for pooled in ("whole", "average")
        }
        if table is None:
            heads = [f"{short} {SHOWN[metric]}" for metric in METRICS for short in "WA"]
            header = [*names, *heads]
            words = f"{title}, protocol snapshot: per cent, W whole, A average"
            table = Table(words, header, labels=len(names))
        cells = [values[metric].shown() for metric in METRICS for values in judged.values()]
        data = {
            pooled: {metric: value.data() for metric, value in values.items()}
            for pooled, values in judged.items()
        }
        table.add([*names.values(), *cells], {**names, "protocol": "snapshot", **data})
    return [] if table is None else [table]

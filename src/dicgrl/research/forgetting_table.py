"""The target of `dicgrl reproduce forgetting`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from dicgrl.report.results_text import SHOWN
from dicgrl.research.cells import Cell
from dicgrl.research.forgetting import KINDS, ROWS
from dicgrl.research.tables import Compared, Table
from dicgrl.research.target import Content, Found, Options, Target

_METRICS = ("hits@10", "mrr")
_MILLION = 1_000_000


@dataclass(frozen=True)
class ForgettingTable(Target):
    """Facts kept, added and removed, and the test set, ranked apart by each of the models.

    Attributes:
        rows: A cell for each dataset.
    """

    rows: tuple[Cell, ...]

    @override
    def templates(self) -> list[Cell]:
        return list(self.rows)

    @override
    def content(self, options: Options, found: Found) -> Content:
        heads = [f"{kind} {SHOWN[metric]}" for kind in KINDS for metric in _METRICS]
        header = ["dataset", "model", *heads, "positives, millions", "seconds"]
        table = Table(f"{self.title}: per cent", header, labels=2)
        told = []
        for template in self.rows:
            runs = [done.results for done in options.found(template, found)]
            for row in ROWS if runs else ():
                _add(table, template.stream_name, row, [run["rows"][row] for run in runs])
            told += [_told(template.stream_name, run) for run in runs[:1]]
        if not table.cells:
            return Content()
        return Content([table], notes=[*told, _WHAT])


_WHAT = (
    "Wrong facts are right ones with another head or tail. never: has not seen them, and learns "
    "the added facts as its next part; knows: has learned them, and learns the added facts; "
    "replaced: has learned them, and has them replaced by the added facts; retrained: learns the "
    "right facts from scratch. Positives and seconds are those of the last step. Each ranks at "
    "most 2,000 facts of a kind, filtered by what it knows then."
)


def _told(dataset: str, run: dict[str, Any]) -> str:
    counts = run["counts"]
    settings = run["settings"]
    return (
        f"{dataset}: {counts['kept']:,} facts kept, {counts['added']:,} added, "
        f"{counts['removed']:,} removed; {settings['model']} of {settings['dim']} numbers, "
        f"{settings['epochs']} epochs, {settings['strategy']}."
    )


def _add(table: Table, dataset: str, row: str, runs: list[dict[str, Any]]) -> None:
    quality = {
        kind: {
            metric: Compared([100 * run["metrics"][kind][metric] for run in runs])
            for metric in _METRICS
        }
        for kind in KINDS
    }
    positives = Compared([run["positives"] / _MILLION for run in runs], digits=2)
    seconds = Compared([run["seconds"] for run in runs])
    shown = [value.shown() for values in quality.values() for value in values.values()]
    data = {
        kind: {metric: value.data() for metric, value in values.items()}
        for kind, values in quality.items()
    }
    names = {"dataset": dataset, "model": row}
    costs = {"positives": positives.data(), "seconds": seconds.data()}
    table.add([dataset, row, *shown, positives.shown(), seconds.shown()], names | data | costs)

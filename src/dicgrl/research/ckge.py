"""`dicgrl reproduce ckge`: the streams on which continual embeddings are compared, and all rivals.

Two groups of rows on each stream. With their published settings (recipe `published`) rivals show
whether they are built right: do they reach what was published? With equal care all have our loss,
as many numbers for a triple and the start from neighbours, so that what is left is the strategy.
Both are measured by both protocols: `snapshot`, as published, and `seen`, ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import override

from dicgrl.errors import UserError, shown
from dicgrl.evaluation.metrics import SNAPSHOT
from dicgrl.recipes import published_numbers
from dicgrl.report.results_text import SHOWN
from dicgrl.research.cells import Cell
from dicgrl.research.growth import METRICS, Compare, Reached
from dicgrl.research.tables import Compared, Table
from dicgrl.research.target import Content, Found, Options, Target

OURS = "fresh"  # the row that is compared with the best published one
NEAR = 1.0  # points of MRR within which a published number counts as reached
_JUDGED = {"whole": "W", "average": "A"}


def rival_rows(dataset: str) -> dict[str, Cell]:
    """What was published, with the settings that were published; variants where these differ."""
    rows = {name: _cell(dataset, name) for name in ("lower", "ewc", "emr", "gem", "lkge")}
    rows["lkge, start=neighbours"] = _cell(dataset, "lkge", "start=neighbours")
    rows["incde"] = _cell(dataset, "incde")
    rows["incde, facts=file"] = _cell(dataset, "incde", "facts=file")
    return rows | {"fastkge": _cell(dataset, "fastkge")}


def equal_rows(dataset: str) -> dict[str, Cell]:
    """Every strategy with our loss; what differs is how later parts are learned."""
    names = ("lower", "ewc", "emr", "gem", "lkge", "incde", "fastkge", "fresh", "dicgrl", "warm")
    rows = {name: _cell(dataset, name, "dim=200", "start=neighbours") for name in names}
    rows["dicgrl"] = replace(rows["dicgrl"], form="disentangled")
    return rows | {"upper": _cell(dataset, "upper", "dim=200")}


def _cell(dataset: str, strategy: str, *changes: str) -> Cell:
    return Cell(dataset, "transe", strategy, changes=changes, protocol="snapshot")


@dataclass(frozen=True)
class Rivals(Target):
    """Two groups of rows on several streams, each by two protocols.

    Attributes:
        streams: Names of the streams.
    """

    streams: Sequence[str]

    def _groups(self) -> Iterator[tuple[str, str, dict[str, dict[str, Cell]]]]:
        """Title, recipe and rows by stream of each group."""
        yield (
            "With their published settings",
            "published",
            {name: rival_rows(name) for name in self.streams},
        )
        yield "With equal care", "best", {name: equal_rows(name) for name in self.streams}

    @override
    def cells(self, options: Options) -> list[Cell]:
        if options.recipe != Options().recipe:
            raise UserError(
                f"--recipe {shown(options.recipe)}: {self.name} has a group of rows by the recipe "
                "published, and one by best; leave --recipe out"
            )
        return [
            cell
            for _, recipe, rows in self._groups()
            for cells in rows.values()
            for template in cells.values()
            for cell in replace(options, recipe=recipe).cells(template)
        ]

    @override
    def content(self, options: Options, found: Found) -> Content:
        content = Content()
        for title, recipe, rows in self._groups():
            taken = replace(options, recipe=recipe)
            runs = {
                (stream, label): reached
                for stream, cells in rows.items()
                for label, template in cells.items()
                if (reached := _reached(taken, template, found))
            }
            for protocol in ("snapshot", "seen") if runs else ():
                content.tables.append(_table(title, protocol, rows, runs))
            if runs:
                told = _near if recipe == "published" else _ahead
                content.notes += told(runs)
        if content.tables:
            content.notes += NOTES
        return content


NOTES = (
    "W is the mean over all test triples, as in the published tables; A the mean over the parts. "
    "Protocol snapshot ranks each test set among the entities of its own part, filtered by what "
    "was known then; protocol seen ranks all of them among all entities, filtered by all facts.",
    "Published numbers are those of table 2 of the IncDE paper; FastKGE's paper has a mean MRR "
    "over the four streams alone, 21.0. Their selection was by test data where LKGE's code was "
    "used; here it is by validation data throughout.",
    "Positives are examples x epochs of all parts but the first, new and old together; seconds are "
    "those of learning these parts, validation left out.",
    "Equal care: our loss and schedule, 200 numbers for a triple, new rows start from their "
    "neighbours, settings of a strategy as it has them by default. What it does not have: as many "
    "trials of its settings for each strategy.",
)


def _reached(options: Options, template: Cell, found: Found) -> dict[int, Reached]:
    """What the finished seeds of a row reached, by both protocols."""
    every = [*METRICS, *(metric + SNAPSHOT for metric in METRICS)]
    cells = [cell for cell in options.cells(template) if cell in found]
    return {cell.seed: Reached.of(found[cell].results, every) for cell in cells}


Runs = Mapping[tuple[str, str], Mapping[int, Reached]]


def _table(title: str, protocol: str, rows: Mapping[str, Mapping[str, Cell]], runs: Runs) -> Table:
    suffix = SNAPSHOT if protocol == "snapshot" else ""
    against = ["published", "difference"] if suffix else []
    heads = [f"{short} {SHOWN[metric]}" for metric in METRICS for short in _JUDGED.values()]
    header = [
        "dataset",
        "strategy",
        heads[0],
        *against,
        *heads[1:],
        "positives, millions",
        "seconds",
    ]
    table = Table(f"{title}, protocol {protocol}: per cent", header, labels=2)
    for stream, cells in rows.items():
        for label, template in cells.items():
            if (stream, label) not in runs:
                continue
            compare = Compare(runs[stream, label], {})
            quality = {
                judged: {metric: compare.quality(judged, metric + suffix) for metric in METRICS}
                for judged in _JUDGED
            }
            if suffix:
                numbers = published_numbers(stream, str(template.strategy))
                for metric, value in quality["whole"].items():
                    known = Compared(value.values, numbers.get(metric))
                    quality["whole"][metric] = known
            shown = [quality[judged][m].shown() for m in METRICS for judged in _JUDGED]
            beside = quality["whole"]["mrr"].cells()[1 : 1 + len(against)]
            costs = [compare.positives.shown(), compare.seconds.shown()]
            table.add(
                [stream, label, shown[0], *beside, *shown[1:], *costs],
                _data(stream, label, protocol, quality, compare),
            )
    return table


def _data(
    stream: str,
    label: str,
    protocol: str,
    quality: Mapping[str, Mapping[str, Compared]],
    compare: Compare,
) -> dict[str, Any]:
    named: dict[str, Any] = {"dataset": stream, "strategy": label, "protocol": protocol}
    for judged, values in quality.items():
        named[judged] = {metric: value.data() for metric, value in values.items()}
    return named | {"positives": compare.positives.data(), "seconds": compare.seconds.data()}


def _near(runs: Runs) -> list[str]:
    """Which rivals reach what was published, and by how much the others do not."""
    apart: list[str] = []
    reached = 0
    for (stream, label), seeds in runs.items():
        published = published_numbers(stream, label.partition(",")[0]).get("mrr")
        ours = Compare(seeds, {}).quality("whole", "mrr" + SNAPSHOT)
        difference = Compared(ours.values, published).difference
        if difference is None:
            continue
        near = abs(difference) <= NEAR
        reached += near
        apart += [] if near else [f"{stream} {label} {difference:+.1f}"]
    if not reached + len(apart):
        return []
    text = (
        f"{reached} of {reached + len(apart)} rows are within {NEAR:g} point of the published MRR"
    )
    return [f"{text}; the others: {', '.join(apart)}." if apart else f"{text}."]


def _ahead(runs: Runs) -> list[str]:
    """How far our default is from the best that was published."""
    told = []
    for (stream, label), seeds in runs.items():
        if label != OURS:
            continue
        best = max(numbers["mrr"] for numbers in published_numbers(stream).values())
        ours = [
            Compare(seeds, {}).quality("whole", "mrr" + suffix).mean for suffix in (SNAPSHOT, "")
        ]
        if None in ours:
            continue
        shown = " and ".join(f"{value:.1f}" for value in ours)
        told.append(f"{stream} {shown} (published {best:.1f})")
    return [f"W MRR of {OURS} under snapshot and seen: {'; '.join(told)}."] if told else []

"""Targets about kinds of growth: what later parts reach and cost beside retraining.

Cost is counted in positives (examples x epochs) of all later parts; what is shown in per cent of
`upper` is compared seed by seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from typing_extensions import override

from dicgrl.models.components import Components
from dicgrl.report.results_text import SHOWN
from dicgrl.research.cells import Cell, Results
from dicgrl.research.figures import EffortPlot, draw_efforts
from dicgrl.research.snapshot import snapshot_tables
from dicgrl.research.tables import Compared, Table
from dicgrl.research.target import Content, Found, Options, Picture, Target

METRICS = ("mrr", "hits@1", "hits@10")
UPPER = "upper"  # what all else is compared with
_JUDGED = ("whole", "average")
_SHOWN = {"whole": "W", "average": "A"}
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Reached:
    """What one run has after its last part, and what its later parts cost in all.

    Attributes:
        quality: Metrics by `whole` and `average`, in per cent.
        retention: Share of the first part's right answers that are still right, in per cent.
        positives: In millions; None where a part has no count.
        seconds: Of learning.
    """

    quality: Mapping[str, Mapping[str, float]]
    retention: float | None
    positives: float | None
    seconds: float

    @classmethod
    def of(cls, results: Results, metrics: Sequence[str] = METRICS) -> Reached:
        """What a run's results say."""
        last, later = results["parts"][-1], results["parts"][1:]
        counted = [part.get("positives") for part in later]
        kept = results["retention"]
        return cls(
            {
                judged: {metric: 100 * last[judged][metric] for metric in metrics}
                for judged in _JUDGED
            },
            None if kept is None else 100 * kept,
            sum(sum(c.values()) for c in counted) / _MILLION if all(counted) else None,
            sum(part["learn_seconds"] for part in later),
        )


def _runs(options: Options, template: Cell, found: Found) -> dict[int, Reached]:
    """What the finished seeds of a cell reached, by seed."""
    cells = [cell for cell in options.cells(template) if cell in found]
    return {cell.seed: Reached.of(found[cell].results) for cell in cells}


@dataclass(frozen=True, slots=True)
class Compare:
    """Runs of a cell beside those of `upper` with the same seeds."""

    runs: Mapping[int, Reached]
    upper: Mapping[int, Reached]

    def quality(self, judged: str, metric: str) -> Compared:
        """A metric in per cent."""
        return Compared([run.quality[judged][metric] for run in self.runs.values()])

    @property
    def retention(self) -> Compared:
        """Retention in per cent."""
        return Compared([k for run in self.runs.values() if (k := run.retention) is not None])

    @property
    def positives(self) -> Compared:
        """Positives in millions."""
        counted = [p for run in self.runs.values() if (p := run.positives) is not None]
        return Compared(counted, digits=2)

    @property
    def seconds(self) -> Compared:
        """Seconds of learning."""
        return Compared([run.seconds for run in self.runs.values()])

    def share(self, judged: str, metric: str = "mrr") -> Compared:
        """A metric in per cent of upper's."""
        return Compared(
            [
                100 * ours.quality[judged][metric] / most
                for ours, upper in self._pairs()
                if (most := upper.quality[judged][metric])
            ]
        )

    @property
    def cost(self) -> Compared:
        """Positives in per cent of upper's."""
        pairs = [(ours.positives, upper.positives) for ours, upper in self._pairs()]
        return Compared([100 * p / most for p, most in pairs if p is not None and most])

    def _pairs(self) -> Iterator[tuple[Reached, Reached]]:
        return ((run, self.upper[s]) for s, run in self.runs.items() if s in self.upper)


@dataclass(frozen=True)
class GrowthTable(Target):
    """Rows of several streams beside retraining: quality, retention, positives and seconds.

    Attributes:
        rows: By stream, cells by what their rows are called; one is `upper`.
        varies: What the names of rows are.
    """

    rows: Mapping[str, Mapping[str, Cell]]
    varies: str = "strategy"

    @override
    def templates(self) -> list[Cell]:
        return [cell for cells in self.rows.values() for cell in cells.values()]

    @override
    def content(self, options: Options, found: Found) -> Content:
        heads = [f"{_SHOWN[judged]} {SHOWN[metric]}" for metric in METRICS for judged in _JUDGED]
        header = [
            "dataset",
            self.varies,
            *heads,
            "retention",
            "positives, millions",
            "% of upper's",
        ]
        header += ["seconds", "W MRR, % of upper's", "A MRR, % of upper's"]
        title = f"{self.title}: per cent, W whole, A average; positives and seconds of later parts"
        table = Table(title, header, labels=2)
        for dataset, cells in self.rows.items():
            upper = _runs(options, cells[UPPER], found)
            for label, template in cells.items():
                runs = _runs(options, template, found)
                if runs:
                    names = {"dataset": dataset, self.varies: label}
                    _add(table, names, Compare(runs, upper))
        if not table.cells:
            return Content()
        first = next(iter(self.rows.values()))
        rows = [
            ({"dataset": dataset, self.varies: label}, template)
            for dataset, cells in self.rows.items()
            for label, template in cells.items()
        ]
        beside = snapshot_tables(self.title, rows, options, found)
        return Content([table, *beside], notes=[_what_is_compared(options, first)])


def _add(table: Table, names: dict[str, str], compare: Compare) -> None:
    quality = {
        judged: {metric: compare.quality(judged, metric) for metric in METRICS}
        for judged in _JUDGED
    }
    besides = {
        "retention": compare.retention,
        "positives": compare.positives,
        "positives_share": compare.cost,
        "seconds": compare.seconds,
        "whole_share": compare.share("whole"),
        "average_share": compare.share("average"),
    }
    cells = [quality[judged][metric].shown() for metric in METRICS for judged in _JUDGED]
    data: dict[str, Any] = {
        judged: {metric: value.data() for metric, value in values.items()}
        for judged, values in quality.items()
    }
    table.add(
        [*names.values(), *cells, *(value.shown() for value in besides.values())],
        names | data | {name: value.data() for name, value in besides.items()},
    )


def _what_is_compared(options: Options, cells: Mapping[str, Cell]) -> str:
    """Which rows have plain vectors and which divided ones, and how much of them a triple uses."""
    forms: dict[str, list[str]] = {}
    for label, template in cells.items():
        settings = options.cells(template)[0].settings().settings
        count, top, words = settings.components, settings.top, f"plain vectors of {settings.dim}"
        if count:
            used = top * Components(count, top).size(settings.dim)
            words = f"divided vectors, of which a triple uses {top} of {count} components ({used}"
            words += " numbers)"
        else:
            words += " numbers"
        forms.setdefault(words, []).append(label)
    told = "; ".join(f"{', '.join(labels)}: {words}" for words, labels in forms.items())
    return (
        "Settings are the defaults, what a graph without a recipe gets, but for what a row or "
        "--set names. "
        f"{told}. Positives are examples x epochs of all parts but the first, new and old "
        "together; seconds are those of learning these parts."
    )


@dataclass(frozen=True)
class Ablation(GrowthTable):
    """The same with one seed for rows that each change one thing."""

    varies: str = "variant"
    one_seed: ClassVar[bool] = True


@dataclass(frozen=True)
class EffortCurves(Target):
    """Quality over cost: strategies that are told how much a later part may process.

    Attributes:
        upper: Retraining, by stream.
        strategies: By stream, the cells of each strategy; they get their efforts here.
        efforts: Per cent of what retraining would process.
        marked: The strategy that is shown with its own effort, too.
        columns: How many plots stand side by side.
    """

    upper: Mapping[str, Cell]
    strategies: Mapping[str, Mapping[str, Cell]]
    efforts: Sequence[int]
    marked: str
    columns: int = 3
    one_seed: ClassVar[bool] = True

    def _cells(self, dataset: str) -> Iterator[tuple[str, str, Cell]]:
        """Strategy, effort and cell of each row of a stream."""
        yield UPPER, "", self.upper[dataset]
        for name, cell in self.strategies[dataset].items():
            for share in self.efforts:
                effort = f"{share}%"
                yield name, effort, replace(cell, changes=(*cell.changes, f"effort={effort}"))
            if name == self.marked:
                yield name, "default", cell

    @override
    def templates(self) -> list[Cell]:
        return [cell for dataset in self.upper for _, _, cell in self._cells(dataset)]

    @override
    def content(self, options: Options, found: Found) -> Content:
        header = ["dataset", "strategy", "effort", "positives, millions", "% of upper's"]
        header += ["W MRR", "A MRR", "W MRR, % of upper's", "A MRR, % of upper's"]
        table = Table(f"{self.title}: MRR in per cent, positives of later parts", header, labels=3)
        plots: list[EffortPlot] = []
        for dataset, retrained in self.upper.items():
            upper = _runs(options, retrained, found)
            plot = EffortPlot(dataset, {}, None)
            for name, effort, template in self._cells(dataset):
                runs = _runs(options, template, found)
                if not runs:
                    continue
                compare = Compare(runs, upper)
                _add_effort(table, dataset, name, effort, compare)
                plot = _with_point(plot, name, effort, compare)
            if plot.lines:
                plots.append(plot)
        if not table.cells:
            return Content()
        content = Content([table])
        if plots:
            title = "W MRR over the positives of later parts, both in per cent of retraining's"
            content.pictures.append(Picture(title, lambda: draw_efforts(plots, self.columns)))
        content.notes.append(
            "An effort is what later parts may process, in per cent of what retraining would; a "
            "strategy may take a little more or less, and the picture shows what it took. "
            f"{self.marked} with its default effort is marked."
        )
        return content


def _add_effort(table: Table, dataset: str, name: str, effort: str, compare: Compare) -> None:
    values = {
        "positives": compare.positives,
        "positives_share": compare.cost,
        "whole": compare.quality("whole", "mrr"),
        "average": compare.quality("average", "mrr"),
        "whole_share": compare.share("whole"),
        "average_share": compare.share("average"),
    }
    names = {"dataset": dataset, "strategy": name, "effort": effort}
    table.add(
        [*names.values(), *(value.shown() for value in values.values())],
        names | {key: value.data() for key, value in values.items()},
    )


def _with_point(plot: EffortPlot, name: str, effort: str, compare: Compare) -> EffortPlot:
    """The plot with another point; as it is where retraining is not finished, or is meant."""
    cost, quality = compare.cost.mean, compare.share("whole").mean
    if name == UPPER or not cost or quality is None:
        return plot
    if effort == "default":
        return replace(plot, marked=(cost, quality))
    lines = {**plot.lines, name: [*plot.lines.get(name, ()), (cost, quality)]}
    return replace(plot, lines=lines)

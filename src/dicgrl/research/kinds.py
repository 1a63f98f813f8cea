"""Three kinds of targets: after the last part, on the merged parts, and over the parts.

They know no dataset: what they are about is given to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from dicgrl.report.results_text import SHOWN
from dicgrl.research.cells import Cell, Finished, Results
from dicgrl.research.figures import CostPlot, Line, Plot, Priced, draw_costs, draw_plots
from dicgrl.research.rows import PUBLISHED, conditions_of, is_besides, label_of
from dicgrl.research.snapshot import snapshot_tables
from dicgrl.research.tables import Compared, Table
from dicgrl.research.target import Content, Found, Options, Picture, Target

CONDITIONS = ("active", "start", "budget")
_JUDGED = ("average", "whole")


@dataclass(frozen=True)
class PartsTable(Target):
    """Whole and average metric after the last part (the paper's tables 1 and 2).

    MRR, where there is one, stands first: A, the paper's main metric, before W.

    Attributes:
        groups: Tables: title and cells.
        metric: The metric that the paper has.
    """

    groups: Mapping[str, Sequence[Cell]]
    metric: str

    @override
    def templates(self) -> list[Cell]:
        return [cell for cells in self.groups.values() for cell in cells]

    @override
    def templates_for(self, options: Options) -> list[Cell]:
        return [cell for cell in self.templates() if _has_row(options, cell)]

    @override
    def content(self, options: Options, found: Found) -> Content:
        content = Content()
        reached: list[bool] = []
        priced: dict[str, list[Priced]] = {}  # by the title of their plot
        seconds = 0.0
        for title, templates in self.groups.items():
            table = Table(*self._heading(title), labels=3)
            for template in templates:
                runs = [done.results for done in options.found(template, found)]
                if not runs or not _has_row(options, template):
                    continue
                published = {} if is_besides(template) else options.published(template)
                row = after_last(runs, self.metric, published)
                reached += [m.difference >= 0 for m in row.values() if m.difference is not None]
                seconds += sum(p["learn_seconds"] for run in runs for p in run["parts"])
                label = label_of(template)
                self._add(table, template, label, row, runs)
                about = f"{template.stream_name}, {template.model}"
                about += f"\n{title}" if len(self.groups) > 1 else ""
                priced.setdefault(about, []).append(_priced(label, row))
            if table.cells:
                content.tables.append(table)
            rows = [
                (
                    {"dataset": t.stream_name, "model": t.model, "strategy": str(t.strategy)},
                    t,
                )
                for t in templates
            ]
            content.tables += snapshot_tables(title, rows, options, found)
        if priced:
            shown = f"{SHOWN[self.metric]} in per cent"
            plots = [CostPlot(about, shown, points) for about, points in priced.items()]
            content.pictures.append(_costs(plots))
            content.notes.append(f"Learning took {seconds:,.0f} s in all these runs together.")
        content.notes += reached_note(reached)
        return content

    @property
    def _compared(self) -> list[str]:
        return ["paper", "difference"] if self.where else []

    @property
    def _of_links(self) -> bool:
        return self.metric != "accuracy"

    def _heading(self, title: str) -> tuple[str, list[str]]:
        name = SHOWN[self.metric]
        header = ["dataset", "model", "strategy"]
        header += [*CONDITIONS, "A MRR", "W MRR"] if self._of_links else []
        header += [f"A {name}", *self._compared, f"W {name}", *self._compared]
        header += ["retention", "s per later part", "positives per later part"]
        return f"{title}: per cent, W whole, A average", header

    def _add(
        self,
        table: Table,
        template: Cell,
        label: str,
        row: dict[str, Compared],
        runs: Sequence[Results],
    ) -> None:
        names = {"dataset": template.stream_name, "model": template.model, "strategy": label}
        data: dict[str, Any] = {**names}
        cells = [*names.values()]
        if self._of_links:
            conditions = conditions_of(runs[0]["settings"])
            data |= conditions
            ranked = {judged: after_last(runs, "mrr", {})[judged] for judged in _JUDGED}
            cells += [*conditions.values(), *(value.shown() for value in ranked.values())]
            data |= {f"{judged}_mrr": value.data() for judged, value in ranked.items()}
        for judged in _JUDGED:
            cells += row[judged].cells()[: 1 + len(self._compared)]
        others = [value for key, value in row.items() if key not in (*_JUDGED, "replayed")]
        cells += [value.shown() for value in others]
        table.add(cells, data | {key: value.data() for key, value in row.items()})


def _has_row(options: Options, cell: Cell) -> bool:
    return options.recipe not in PUBLISHED or not is_besides(cell)


def after_last(
    runs: Sequence[Results], metric: str, published: Mapping[str, float]
) -> dict[str, Compared]:
    """What runs of one cell have after their last part, and what a later part cost."""
    last = [run["parts"][-1] for run in runs]
    later = [run["parts"][1:] for run in runs]
    return {
        "whole": Compared([100 * part["whole"][metric] for part in last], published.get("whole")),
        "average": Compared(
            [100 * part["average"][metric] for part in last], published.get("average")
        ),
        "retention": Compared([100 * r for run in runs if (r := run["retention"]) is not None]),
        "seconds": Compared(
            [sum(p["learn_seconds"] for p in parts) / max(len(parts), 1) for parts in later]
        ),
        "replayed": Compared(
            [float(sum(p["replayed_examples"] for p in parts)) for parts in later], digits=0
        ),
        "positives": Compared(
            [p for parts in later if (p := _positives(parts)) is not None], digits=0
        ),
    }


def _positives(parts: Sequence[Mapping[str, Any]]) -> float | None:
    """Examples x epochs that a part took, the mean over parts; None where one has no count."""
    counted = [part.get("positives") for part in parts]
    if not all(counted):
        return None
    return sum(sum(each.values()) for each in counted if each) / max(len(counted), 1)


def _priced(label: str, row: Mapping[str, Compared]) -> Priced:
    return Priced(label, *(row[key].mean or 0.0 for key in ("seconds", "average", "whole")))


def _costs(plots: Sequence[CostPlot]) -> Picture:
    return Picture("Quality against the cost of a part", lambda: draw_costs(plots), "cost")


@dataclass(frozen=True)
class WholeTable(Target):
    """Metrics of models that were trained on all parts merged (the paper's appendix A).

    Attributes:
        rows: The cells.
        metrics: The metrics that the paper has.
        beside: What stands beside our numbers: the paper's, or others by dataset and model.
        published: These others; where there are none, those of the recipe.
    """

    rows: Sequence[Cell]
    metrics: Sequence[str]
    beside: str = "paper"
    published: Mapping[tuple[str, str], Mapping[str, float]] | None = None

    @override
    def templates(self) -> list[Cell]:
        return list(self.rows)

    @override
    def content(self, options: Options, found: Found) -> Content:
        header = ["dataset", "model", "form"]
        for metric in self.metrics:
            header += [SHOWN[metric], self.beside, "difference"]
        table = Table(f"{self.title}, in per cent", [*header, "seconds"], labels=3)
        reached: list[bool] = []
        for template in self.rows:
            runs = [done.results for done in options.found(template, found)]
            if not runs:
                continue
            published: Mapping[str, float] = options.published(template)
            if self.published is not None:
                published = self.published.get((template.stream_name, template.model), {})
            row = {
                metric: Compared([100 * run["test"][metric] for run in runs], published.get(metric))
                for metric in self.metrics
            }
            reached += [m.difference >= 0 for m in row.values() if m.difference is not None]
            seconds = Compared([run["learn_seconds"] for run in runs])
            names = {
                "dataset": template.stream_name,
                "model": template.model,
                "form": template.form,
            }
            cells = [cell for value in row.values() for cell in value.cells()]
            table.add(
                [*names.values(), *cells, seconds.shown()],
                names | {key: value.data() for key, value in (row | {"seconds": seconds}).items()},
            )
        whose = "The paper" if self.published is None else self.beside
        return Content([table] if table.cells else [], notes=reached_note(reached, whose))


def reached_note(reached: Sequence[bool], whose: str = "The paper") -> list[str]:
    """How often published numbers are reached."""
    if not reached:
        return []
    return [f"{whose}'s number is reached in {sum(reached)} of {len(reached)} comparisons."]


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot: a value after each part, a line for each of several cells.

    Attributes:
        title: What it is about.
        lines: The cells by what their lines are called.
        metric: A metric, or `seconds` of learning.
        figure: Which figure it belongs to; empty for the only one.
        paper: Whether the paper's average after the last part belongs to these cells.
        quality: A metric to draw against the seconds of a later part, in a picture besides.
    """

    title: str
    lines: Mapping[str, Cell]
    metric: str
    figure: str = ""
    paper: bool = False
    quality: str = ""

    def values(self, done: Finished) -> list[float]:
        """The value after each part."""
        parts: list[dict[str, Any]] = done.results["parts"]
        if self.metric == "seconds":
            return [part["learn_seconds"] for part in parts]
        return [100 * part["average"][self.metric] for part in parts]

    @property
    def measured(self) -> str:
        """The axis of the values."""
        if self.metric == "seconds":
            return "seconds of learning"
        return f"{SHOWN[self.metric]}, average, per cent"


@dataclass(frozen=True)
class Curves(Target):
    """Values after each part, as a figure and a table.

    Attributes:
        panels: The plots.
        columns: How many stand side by side.
    """

    panels: Sequence[Panel]
    columns: int = 2
    keeps_runs: ClassVar[bool] = False  # they are those of tables

    @override
    def templates(self) -> list[Cell]:
        return [cell for panel in self.panels for cell in panel.lines.values()]

    @override
    def content(self, options: Options, found: Found) -> Content:
        content = Content()
        plots: dict[str, list[Plot]] = {}
        costs: list[CostPlot] = []
        for panel in self.panels:
            every = {
                label: [panel.values(done) for done in options.found(cell, found)]
                for label, cell in panel.lines.items()
            }
            every = {label: runs for label, runs in every.items() if runs}
            if not every:
                continue
            paper = {
                label: options.published(panel.lines[label]).get("average")
                for label in every
                if panel.paper
            }
            content.tables.append(_curve_table(panel, every, paper))
            lines = [Line(label, runs) for label, runs in every.items()]
            plot = Plot(panel.title, panel.measured, lines, log=panel.metric == "seconds")
            plots.setdefault(panel.figure, []).append(plot)
            if panel.quality:
                costs.append(_cost_plot(panel, options, found))
        for name, drawn in plots.items():
            title = f"{self.title}, {name}" if name else self.title
            content.pictures.append(Picture(title, _drawing(drawn, self.columns), name))
        if costs:
            content.pictures.append(_costs(costs))
        return content


def _cost_plot(panel: Panel, options: Options, found: Found) -> CostPlot:
    points = []
    for label, cell in panel.lines.items():
        runs = [done.results for done in options.found(cell, found)]
        if runs:
            points.append(_priced(label, after_last(runs, panel.quality, {})))
    return CostPlot(panel.title, f"{SHOWN[panel.quality]} in per cent", points)


def _drawing(plots: Sequence[Plot], columns: int) -> Callable[[], Any]:
    return lambda: draw_plots(plots, columns)


def _curve_table(
    panel: Panel,
    every: Mapping[str, Sequence[Sequence[float]]],
    paper: Mapping[str, float | None],
) -> Table:
    count = max(len(run) for runs in every.values() for run in runs)
    header = ["", *(f"part {i}" for i in range(count))]
    header += ["sum"] if panel.metric == "seconds" else []
    header += ["paper, last", "difference"] if paper else []
    table = Table(f"{panel.title}: {panel.measured}", header)
    for label, runs in every.items():
        points = [Compared([run[i] for run in runs if i < len(run)]) for i in range(count)]
        data: dict[str, Any] = {"line": label, "parts": [point.data() for point in points]}
        cells = [label, *(point.shown() for point in points)]
        if panel.metric == "seconds":
            total = Compared([sum(run) for run in runs])
            cells.append(total.shown())
            data["sum"] = total.data()
        if paper:
            last = Compared([run[-1] for run in runs], paper.get(label))
            cells += last.cells()[1:]
            data["last"] = last.data()
        table.add(cells, data)
    return table

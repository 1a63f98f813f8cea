"""Pictures of a reproduction: curves over the parts, activated triples, attention of relations."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from dicgrl.common.atomic import replacing_file

_BEND = 0.15  # of the arcs: triples between the same entities do not hide each other
_ORDER_COLOUR = {1: "tab:red", 2: "tab:blue"}  # as in the paper's figure


@dataclass(frozen=True, slots=True)
class Line:
    """Values over the parts, one list for each seed."""

    label: str
    runs: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Plot:
    """Several lines in one plot."""

    title: str
    measured: str
    lines: Sequence[Line]
    log: bool = False


def draw_plots(plots: Sequence[Plot], columns: int = 2) -> Figure:
    """Plots side by side; lines are means over seeds, bands one standard deviation."""
    figure, places = _grid(len(plots), columns)
    for axes, plot in zip(places, plots, strict=True):
        _draw_lines(axes, plot)
        if axes is places[0] or [line.label for line in plot.lines] != [
            line.label for line in plots[0].lines
        ]:  # lines that are the same everywhere are named once
            axes.legend(fontsize=8)
    return figure


def _draw_lines(axes: Axes, plot: Plot) -> None:
    for line in plot.lines:
        length = min(len(run) for run in line.runs)
        points = list(zip(*(run[:length] for run in line.runs), strict=True))
        mean = [statistics.fmean(values) for values in points]
        parts = list(range(length))
        (drawn,) = axes.plot(parts, mean, marker="o", markersize=4, label=line.label)
        if len(line.runs) > 1:
            spread = [statistics.stdev(values) for values in points]
            low = [m - s for m, s in zip(mean, spread, strict=True)]
            high = [m + s for m, s in zip(mean, spread, strict=True)]
            axes.fill_between(parts, low, high, color=drawn.get_color(), alpha=0.15, linewidth=0)
    if plot.log:
        axes.set_yscale("log")
    axes.set_title(plot.title, fontsize=10)
    axes.set_xlabel("after part")
    axes.set_ylabel(plot.measured, fontsize=9)
    axes.grid(alpha=0.3)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


@dataclass(frozen=True, slots=True)
class Priced:
    """What a strategy reaches, and the seconds that a later part takes it; means over seeds."""

    label: str
    seconds: float
    average: float
    whole: float


@dataclass(frozen=True, slots=True)
class CostPlot:
    """Quality against cost, a point for each strategy."""

    title: str
    measured: str
    points: Sequence[Priced]


def draw_costs(plots: Sequence[CostPlot], columns: int = 2) -> Figure:
    """Quality against seconds per later part: a filled circle for A, an open one for W."""
    figure, places = _grid(len(plots), columns)
    labels = list(dict.fromkeys(point.label for plot in plots for point in plot.points))
    for axes, plot in zip(places, plots, strict=True):
        for point in plot.points:
            colour = f"C{labels.index(point.label)}"
            seconds = max(point.seconds, 1e-3)  # a strategy that does nothing has a place, too
            axes.plot(
                [seconds] * 2, [point.average, point.whole], color=colour, alpha=0.4, zorder=1
            )
            axes.scatter([seconds], [point.average], color=colour, label=point.label)
            axes.scatter([seconds], [point.whole], facecolors="white", edgecolors=colour)
        axes.set_xscale("log")
        axes.set_title(plot.title, fontsize=10)
        axes.set_xlabel("seconds per later part")
        axes.set_ylabel(f"{plot.measured} (filled A, open W)", fontsize=9)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    return figure


@dataclass(frozen=True, slots=True)
class EffortPlot:
    """Quality over cost in per cent of retraining's: points (cost, quality) of each strategy."""

    title: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    marked: tuple[float, float] | None


def draw_efforts(plots: Sequence[EffortPlot], columns: int = 3) -> Figure:
    """Quality over cost, a line for each strategy; retraining is at 100, a star marks a default."""
    figure, places = _grid(len(plots), columns)
    for axes, plot in zip(places, plots, strict=True):
        axes.axhline(100, color="0.5", linestyle="--", linewidth=1, label="upper")
        for name, points in plot.lines.items():
            costs, reached = zip(*sorted(points), strict=True)
            axes.plot(costs, reached, marker="o", markersize=4, label=name)
        if plot.marked is not None:
            cost, quality = plot.marked
            axes.scatter([cost], [quality], 110, "black", marker="*", zorder=3, label="default")
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator([1, 2, 5, 10, 20, 50, 100]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_title(plot.title, fontsize=10)
        axes.set_xlabel("positives, per cent of upper's")
        axes.set_ylabel("W MRR, per cent of upper's", fontsize=9)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return figure


def draw_activation(new: Sequence[Mapping[str, Any]], newcomer: str) -> Figure:
    """New triples (solid) and the old ones that they activate (dotted; red order 1, blue order 2).

    Args:
        new: The `new` of a case study's results.
        newcomer: Name of the entity that is new.
    """
    edges: dict[tuple[str, str, str], tuple[int, str]] = {}
    for entry in new:
        triple = tuple(entry["triple"])
        used = ", ".join(entry["components"])
        edges[triple] = (0, f"{short_relation(triple[1])} [{used}]")
    for entry in new:
        for old in entry["shown"]:
            triple = tuple(old["triple"])
            shared = ", ".join(map(str, old["shared"]))
            edges.setdefault(triple, (old["order"], f"{short_relation(triple[1])} [{shared}]"))
    place = _rings(list(edges), newcomer)
    figure = _figure(10, 10)
    axes = figure.subplots()
    for (head, _, tail), (order, label) in edges.items():
        (x0, y0), (x1, y1) = place[head], place[tail]
        colour = _ORDER_COLOUR.get(order, "black")
        axes.annotate(
            "",
            (x1, y1),
            (x0, y0),
            arrowprops={
                "arrowstyle": "->",
                "color": colour,
                "linestyle": ":" if order else "-",
                "linewidth": 1.6,
                "shrinkA": 14,
                "shrinkB": 14,
                "connectionstyle": f"arc3,rad={_BEND}",
            },
        )
        axes.text(
            (x0 + x1 + _BEND * (y1 - y0)) / 2,  # the middle of the arc
            (y0 + y1 - _BEND * (x1 - x0)) / 2,
            label,
            fontsize=7,
            color=colour,
            ha="center",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6},
        )
    for name, (x, y) in place.items():
        face = "lightyellow" if name == newcomer else "white"
        box = {"boxstyle": "round", "facecolor": face, "edgecolor": "0.6"}
        axes.text(x, y, _wrapped(name), fontsize=8, ha="center", va="center", bbox=box)
    axes.set_title(
        "solid: new; red, dotted: activated, order 1; blue, dotted: order 2; [shared components]",
        fontsize=9,
    )
    far = 0.3 + max(math.hypot(x, y) for x, y in place.values())  # texts move no limits
    axes.set_xlim(-far, far)
    axes.set_ylim(-far, far)
    axes.set_aspect("equal")
    axes.set_axis_off()
    return figure


def _rings(triples: Sequence[tuple[str, str, str]], centre: str) -> dict[str, tuple[float, float]]:
    """A place for every entity: the centre, and rings by distance from it."""
    parent = {centre: centre}
    level = [centre]
    rings: list[list[str]] = []
    while level:
        following: list[str] = []
        for near in level:
            for head, _, tail in triples:
                for one, other in ((head, tail), (tail, head)):
                    if one == near and other not in parent:
                        parent[other] = near
                        following.append(other)
        if following:
            rings.append(following)
        level = following
    angle = {centre: 0.0}
    place = {centre: (0.0, 0.0)}
    for radius, ring in enumerate(rings, 1):
        # Children stay near the angle of their parents, evenly spread: edges cross less.
        ring = sorted(ring, key=lambda name: angle[parent[name]])
        for i, name in enumerate(ring):
            # Turned a little from ring to ring: arcs do not run through entities between.
            angle[name] = 2 * math.pi * (i + 0.5) / len(ring) + 0.3 * radius
            place[name] = (radius * math.cos(angle[name]), radius * math.sin(angle[name]))
    for head, _, tail in triples:  # whatever is not connected
        for name in (head, tail):
            place.setdefault(name, (0.0, -len(rings) - 1.0))
    return place


def draw_heat(heat: Mapping[str, Any]) -> Figure:
    """Attention of the relations of one entity over the components.

    Args:
        heat: The `heat` of a case study's results.
    """
    short = [short_relation(name) for name in heat["relations"]]
    names = [  # `country` is a relation of several domains
        one if short.count(one) == 1 else f"{name.strip('/').split('/')[0]}: {one}"
        for one, name in zip(short, heat["relations"], strict=True)
    ]
    components = len(heat["attention"][0])
    longest = max(map(len, names))
    figure = _figure(2.4 + 0.08 * longest + 0.3 * components, 1.4 + 0.26 * len(names))
    axes = figure.subplots()
    image = axes.imshow(heat["attention"], aspect="auto", cmap="Blues", vmin=0)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xticks(range(components))
    axes.set_xlabel("component")
    axes.set_title(f"Attention of the relations of {heat['entity']}", fontsize=10)
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def short_relation(name: str) -> str:
    """The last word of a Freebase path; other names as they are.

    Example:
        >>> short_relation("/award/award_nominee/award_nominations./award/award_nomination/award")
        'award'
    """
    return name.rstrip("/").rsplit("/", 1)[-1] if name.startswith("/") else name


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG or SVG, by the ending of its name; the same figure, the same bytes."""
    kind = path.suffix.removeprefix(".")
    plain = {"svg": {"Date": None}, "png": {"Software": None}}[kind]
    with (
        replacing_file(path) as temporary,
        rc_context({"svg.hashsalt": "dicgrl", "svg.fonttype": "none"}),
    ):
        figure.savefig(temporary, format=kind, dpi=120, metadata=plain)


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # no window, no global state
    return figure


def _grid(count: int, columns: int) -> tuple[Figure, list[Axes]]:
    """A figure with places for so many plots side by side."""
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = _figure(4.2 * columns, 3.4 * rows)
    places = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in places[count:]:
        axes.set_axis_off()
    return figure, places[:count]


def _wrapped(name: str, width: int = 24) -> str:
    lines = [""]
    for word in name.split():
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(line for line in lines if line)

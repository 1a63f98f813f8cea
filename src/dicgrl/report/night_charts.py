"""Pictures of the nightly page: SVG that stretches, and labels that keep their size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from dicgrl.report.sparkline import Series

_WIDTH, _HEIGHT = 1000.0, 240.0
_TICKS = 4  # at most, between the lowest and the highest
_LABELS = 8  # below the bars


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a trend.

    Attributes:
        title: What it is.
        kind: The class that colours it.
        values: In per cent; None where there is none.
    """

    title: str
    kind: str
    values: Series


def ticks(low: float, high: float, most: int = _TICKS) -> list[float]:
    """Round numbers that reach from below the lowest value to above the highest.

    Example:
        >>> ticks(1.5, 11.7)
        [0.0, 5.0, 10.0, 15.0]
        >>> ticks(20.0, 20.0)
        [19.5, 20.0, 20.5]
    """
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    scale = 10.0 ** math.floor(math.log10((high - low) / most))
    steps = (scale * factor for factor in (1, 2, 5, 10, 20))
    step = next(s for s in steps if math.ceil(high / s) - math.floor(low / s) <= most)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(number * step, 10) for number in range(first, last + 1)]


def trend_chart(
    lines: Sequence[Line], nights: Sequence[int], refused: Sequence[int], marks: Mapping[int, str]
) -> str:
    """Lines over nights; empty where there is nothing to draw.

    Args:
        lines: What is drawn; each has a value for every night.
        nights: Their numbers.
        refused: Positions of nights that were refused.
        marks: What happened before a night, by its position.
    """
    known = [value for line in lines for value in line.values if value is not None]
    if not known or len(nights) < 2:
        return ""
    marked = ticks(min(known), max(known))
    scale = _Scale(len(nights), marked[0], marked[-1])
    drawn = [
        *_grid(scale, marked),
        *_happenings(scale, refused, marks),
        *_curves(scale, lines),
        *_touched(scale, lines, nights, refused, marks),
    ]
    labels = [*_tick_labels(scale, marked), *_end_dots(scale, lines)]
    below = "".join(f"<span>{number}</span>" for number in _named(nights))
    size = f'viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" preserveAspectRatio="none"'
    return (
        f'<div class="legend">{_legend(lines, refused, marks)}</div><div class="chart">'
        f'<svg {size} role="img" aria-label="{escape(_spoken(lines))}">{"".join(drawn)}</svg>'
        f'{"".join(labels)}</div><div class="below">{below}</div>'
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where nights and values are in a chart.

    Attributes:
        nights: How many nights there are, at least two.
        low: The value at the bottom.
        high: The value at the top.
    """

    nights: int
    low: float
    high: float

    @property
    def night(self) -> float:
        """The width of a night."""
        return _WIDTH / (self.nights - 1)

    def x(self, position: float) -> float:
        return _WIDTH * position / (self.nights - 1)

    def y(self, value: float) -> float:
        return _HEIGHT * (self.high - value) / (self.high - self.low)


def _grid(scale: _Scale, marked: Sequence[float]) -> Iterator[str]:
    """A line for each round number."""
    for value in marked:
        y = scale.y(value)
        yield f'<line class="grid" x1="0" x2="{_WIDTH:.0f}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _happenings(scale: _Scale, refused: Sequence[int], marks: Mapping[int, str]) -> Iterator[str]:
    """A column for each night that was refused, a line for what happened before a night."""
    for at in refused:
        yield _column(scale.x(at), scale.night, "refused", "")
    for at, text in marks.items():
        x = scale.x(at)
        yield (
            f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT:.0f}">'
            f"<title>{escape(text)}</title></line>"
        )


def _curves(scale: _Scale, lines: Sequence[Line]) -> Iterator[str]:
    """The lines, interrupted where a value is missing."""
    for line in lines:
        for run in _runs(line.values):
            places = " ".join(f"{scale.x(at):.1f},{scale.y(value):.1f}" for at, value in run)
            yield f'<polyline class="{line.kind}" points="{places}"/>'


def _touched(
    scale: _Scale,
    lines: Sequence[Line],
    nights: Sequence[int],
    refused: Sequence[int],
    marks: Mapping[int, str],
) -> Iterator[str]:
    """A column for each night that says, when it is pointed at, what there is to know of it."""
    for at, number in enumerate(nights):
        values = [(line.title, line.values[at]) for line in lines]
        said = [f"{title} {value:.1f}" for title, value in values if value is not None]
        if at in refused:
            said.append("refused")
        if at in marks:
            said.append(marks[at])
        yield _column(scale.x(at), scale.night, "touch", f"night {number}: {', '.join(said)}")


def _tick_labels(scale: _Scale, marked: Sequence[float]) -> Iterator[str]:
    for value in marked:
        top = 100 * scale.y(value) / _HEIGHT
        yield f'<span class="y" style="top:{top:.1f}%">{value:g}</span>'


def _end_dots(scale: _Scale, lines: Sequence[Line]) -> Iterator[str]:
    """A dot at the end of each line that has a value there."""
    for line in lines:
        if (value := line.values[-1]) is not None:
            top = 100 * scale.y(value) / _HEIGHT
            yield f'<i class="dot {line.kind}" style="top:{top:.1f}%"></i>'


def _named(nights: Sequence[int]) -> list[str]:
    """What stands below a chart: the first night, the last, and one between them if it can."""
    middle = [str(nights[len(nights) // 2])] if len(nights) % 2 and len(nights) > 4 else []
    return [f"night {nights[0]}", *middle, str(nights[-1])]


def _legend(lines: Sequence[Line], refused: Sequence[int], marks: Mapping[int, str]) -> str:
    entries = [(each.kind, each.title) for each in lines]
    entries += [("refused", "refused")] * bool(refused) + [("mark", "retrained")] * bool(marks)
    return "".join(f'<span class="{kind}"><i></i>{escape(title)}</span>' for kind, title in entries)


def _column(x: float, width: float, kind: str, said: str) -> str:
    title = f"<title>{escape(said)}</title>" if said else ""
    return (
        f'<rect class="{kind}" x="{x - width / 2:.1f}" y="0" width="{width:.1f}" '
        f'height="{_HEIGHT:.0f}">{title}</rect>'
    )


def _runs(values: Series) -> Iterator[list[tuple[int, float]]]:
    """The pieces without a gap; a value that stands alone as a short piece."""
    run: list[tuple[int, float]] = []
    for at, value in enumerate([*values, None]):
        if value is not None:
            run.append((at, value))
        elif run:
            yield run if len(run) > 1 else run * 2
            run = []


def _spoken(lines: Sequence[Line]) -> str:
    ends = []
    for line in lines:
        known = [value for value in line.values if value is not None]
        if known:
            ends.append(f"{line.title} from {known[0]:.1f} to {known[-1]:.1f}")
    return ", ".join(ends)


def bars(values: Sequence[tuple[str, float, str]]) -> str:
    """Bars from zero, in per cent of the highest.

    Args:
        values: What each is called, its value, and what is said of it.
    """
    most = max((value for _, value, _ in values), default=0.0) or 1.0
    every = math.ceil(len(values) / _LABELS)
    drawn = []
    for at, (name, value, said) in enumerate(values):
        label = escape(name) if at % every == 0 else ""
        drawn.append(
            f'<div title="{escape(said)}"><i style="height:{100 * value / most:.1f}%"></i>'
            f"<span>{label}</span></div>"
        )
    return f'<div class="bars">{"".join(drawn)}</div>'


def interval(value: float, error: float, worth: float) -> str:
    """Where a gain lies, beside nothing and what is worth it; all in points.

    Args:
        value: The gain.
        error: How far off it may be.
        worth: The least gain that is worth it.
    """
    low, high = min(value - error, 0.0), max(value + error, worth)
    room = 0.12 * (high - low)
    low, high = low - room, high + room

    def at(number: float) -> str:
        return f"{100 * (number - low) / (high - low):.1f}%"

    width = f"{100 * 2 * error / (high - low):.1f}%"
    return (
        f'<div class="interval" role="img" aria-label="{value:+.1f}, give or take {error:.1f}">'
        f'<i class="span" style="left:{at(value - error)};width:{width}"></i>'
        f'<i class="dot" style="left:{at(value)}"></i>'
        f'<i class="zero" style="left:{at(0.0)}"></i><span style="left:{at(0.0)}">0</span>'
        f'<i class="worth" style="left:{at(worth)}"></i>'
        f'<span style="left:{at(worth)}">{worth:+g} pays</span></div>'
    )

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
    low, high = marked[0], marked[-1]

    def x(position: float) -> float:
        return _WIDTH * position / (len(nights) - 1)

    def y(value: float) -> float:
        return _HEIGHT * (high - value) / (high - low)

    wide = _WIDTH / (len(nights) - 1)
    drawn = [
        f'<line class="grid" x1="0" x2="{_WIDTH:.0f}" y1="{y(t):.1f}" y2="{y(t):.1f}"/>'
        for t in marked
    ]
    drawn += [_column(x(at), wide, "refused", "") for at in refused]
    drawn += [
        f'<line class="mark" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="0" y2="{_HEIGHT:.0f}">'
        f"<title>{escape(text)}</title></line>"
        for at, text in marks.items()
    ]
    for line in lines:
        for run in _runs(line.values):
            places = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in run)
            drawn.append(f'<polyline class="{line.kind}" points="{places}"/>')
    for at, number in enumerate(nights):
        said = [
            f"{each.title} {value:.1f}" for each in lines if (value := each.values[at]) is not None
        ]
        said += ["refused"] * (at in refused) + [
            text for place, text in marks.items() if place == at
        ]
        drawn.append(_column(x(at), wide, "touch", f"night {number}: {', '.join(said)}"))
    labels = [
        f'<span class="y" style="top:{100 * y(t) / _HEIGHT:.1f}%">{t:g}</span>' for t in marked
    ]
    ends = [(line.kind, line.values[-1]) for line in lines]
    labels += [
        f'<i class="dot {kind}" style="top:{100 * y(value) / _HEIGHT:.1f}%"></i>'
        for kind, value in ends
        if value is not None
    ]
    below = "".join(f"<span>{number}</span>" for number in _named(nights))
    size = f'viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" preserveAspectRatio="none"'
    return (
        f'<div class="legend">{_legend(lines, refused, marks)}</div><div class="chart">'
        f'<svg {size} role="img" aria-label="{escape(_spoken(lines))}">{"".join(drawn)}</svg>'
        f'{"".join(labels)}</div><div class="below">{below}</div>'
    )


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

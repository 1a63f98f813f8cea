"""Small pictures of a series: a line of block characters, and an SVG for a page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT, _PAD = 220.0, 56.0, 5.0

Series = Sequence[float | None]


def sparkline(values: Series, most: int = 30) -> str:
    """The newest values as blocks from the lowest to the highest; a gap where there is none.

    Example:
        >>> sparkline([0.1, 0.2, None, 0.4])
        '▁▃ █'
        >>> sparkline([2.0, 2.0])
        '▅▅'
    """
    shown = list(values)[-most:]
    known = [value for value in shown if value is not None]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known)

    def block(value: float | None) -> str:
        if value is None:
            return " "
        share = (value - low) / span if span else 0.5
        return _BLOCKS[min(int(share * len(_BLOCKS)), len(_BLOCKS) - 1)]

    return "".join(map(block, shown))


def svg_line(values: Series, title: str) -> str:
    """The same as a line in an SVG; points that stand alone are dots.

    Args:
        values: The series.
        title: What it is, for those who cannot see it.
    """
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    span, steps = high - low, max(len(values) - 1, 1)

    def place(number: int, value: float) -> tuple[float, float]:
        share = (value - low) / span if span else 0.5
        x = _PAD + (_WIDTH - 2 * _PAD) * number / steps
        return x, _HEIGHT - _PAD - (_HEIGHT - 2 * _PAD) * share

    runs: list[list[tuple[float, float]]] = [[]]
    for number, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(place(number, value))
    lines = "".join(
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in run)}"/>'
        for run in runs
        if len(run) > 1
    )
    ends = [run[-1] for run in runs if run]
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in ends)
    return (
        f'<svg viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{lines}{dots}</svg>"
    )

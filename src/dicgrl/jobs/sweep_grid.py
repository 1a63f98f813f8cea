"""The grid of a sweep: settings and the values to try of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dicgrl.errors import UserError, shown
from dicgrl.settings import Form, Settings

Grid = Mapping[str, Sequence[str]]
"""Values by setting, as texts."""


def parse_grid(texts: Sequence[str]) -> dict[str, list[str]]:
    """Settings and their values; with semicolons between them, values may have commas.

    Example:
        >>> parse_grid(["dim=100,200", "beta=0.1,0.3"])
        {'dim': ['100', '200'], 'beta': ['0.1', '0.3']}
        >>> parse_grid(["budget=5%,5x;10%"])
        {'budget': ['5%,5x', '10%']}
    """
    grid: dict[str, list[str]] = {}
    for text in texts:
        key, _, listed = text.partition("=")
        values = [value.strip() for value in listed.split(";" if ";" in listed else ",")]
        if not key.strip() or "" in values:
            raise UserError(
                f"--grid {shown(text)}: expected key=value,value, or key=value;value where values "
                "have commas"
            )
        if key.strip() in grid:
            raise UserError(f"--grid {shown(text)}: {shown(key.strip())} is given twice")
        grid[key.strip()] = list(dict.fromkeys(values))
    return grid


def forms(settings: Settings, grid: Grid) -> list[Form]:
    """The forms that a grid tries.

    Example:
        >>> [form.divided for form in forms(Settings(), {"components": ["0", "4"]})]
        [False, True]
    """
    strategies = grid.get("strategy", [settings.strategy])
    components = grid.get("components", [str(settings.components)])
    divided = [settings.value("components", count) > 0 for count in components]
    return [Form(strategy, each) for strategy in strategies for each in divided]

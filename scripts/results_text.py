"""Paragraphs, lists and tables of docs/results.md."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence


def filled(text: str) -> str:
    """One paragraph, in lines of 100 characters."""
    return textwrap.fill(" ".join(text.split()), 100, break_on_hyphens=False)


def spread(value: dict[str, float]) -> str:
    """A mean and its standard deviation."""
    return f"{value['mean']:.2f} ({value['std']:.2f})"


def all_of(words: Iterable[str]) -> str:
    """A list in words.

    Example:
        >>> all_of(["one", "two", "three"])
        'one, two and three'
    """
    *most, last = list(words) or ["none"]
    return f"{', '.join(most)} and {last}" if most else last


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

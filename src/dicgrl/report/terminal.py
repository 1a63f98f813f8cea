"""What the terminal needs: whether somebody looks, counts in words, titles of tables."""

from __future__ import annotations

from typing import TextIO

from rich.console import Group, RenderableType
from rich.text import Text


def is_terminal(stream: TextIO | None) -> bool:
    """True for a terminal; False for files, pipes and closed streams."""
    return stream is not None and stream.isatty()


def counted(number: int, one: str) -> str:
    """A number of things.

    Example:
        >>> counted(1, "old row"), counted(1200, "old row")
        ('1 old row', '1,200 old rows')
    """
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def titled(title: str, content: RenderableType, caption: str = "") -> Group:
    """A table between two lines of text; rich's own title and caption break in its width."""
    return Group(Text(title), content, *([Text(caption)] if caption else []))

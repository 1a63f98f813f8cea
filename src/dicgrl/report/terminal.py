"""What the terminal needs: whether somebody looks, counts in words, titles of tables."""

from __future__ import annotations

from typing import TextIO

from rich.console import Group, RenderableType
from rich.text import Text

_ONE = {"entities": "entity", "classes": "class"}  # where it is not the word without its s


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


def number_of(number: int, things: str) -> str:
    """The same, of the word for several.

    Example:
        >>> number_of(1, "new entities"), number_of(1200, "nodes")
        ('1 new entity', '1,200 nodes')
    """
    if number != 1:
        return f"{number:,} {things}"
    *before, last = things.split()
    return " ".join(["1", *before, _ONE.get(last, last.removesuffix("s"))])


def titled(title: str, content: RenderableType, caption: str = "") -> Group:
    """A table between two lines of text; rich's own title and caption break in its width."""
    return Group(Text(title), content, *([Text(caption)] if caption else []))

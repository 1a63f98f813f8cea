"""What the terminal needs: whether somebody looks, and titles that do not stretch a table."""

from __future__ import annotations

from typing import TextIO

from rich.console import Group, RenderableType
from rich.text import Text


def is_terminal(stream: TextIO | None) -> bool:
    """True for a terminal; False for files, pipes and closed streams."""
    return stream is not None and stream.isatty()


def titled(title: str, content: RenderableType, caption: str = "") -> Group:
    """A table between two lines of text; rich's own title and caption break in its width."""
    return Group(Text(title), content, *([Text(caption)] if caption else []))

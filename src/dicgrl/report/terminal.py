"""Whether somebody looks at a stream."""

from __future__ import annotations

from typing import TextIO


def is_terminal(stream: TextIO | None) -> bool:
    """True for a terminal; False for files, pipes and closed streams."""
    return stream is not None and stream.isatty()

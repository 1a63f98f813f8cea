"""Tables for notebooks: what `_repr_html_` of reports and answers gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in HTML; numbers with four digits, and nothing for None.

    Example:
        >>> html_table("a < b", ["x"], [[0.123456], [None]])
        '<table><caption>a &lt; b</caption><tr><th>x</th></tr><tr><td>0.1235</td></tr>\
<tr><td></td></tr></table>'
    """
    lines = ["".join(f"<th>{escape(name)}</th>" for name in header)]
    lines += ["".join(f"<td>{escape(_shown(value))}</td>" for value in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}{body}</table>"


def html_lines(text: str) -> str:
    r"""Text in HTML, a paragraph for each line.

    Example:
        >>> html_lines("a < b\nc")
        '<p>a &lt; b</p><p>c</p>'
    """
    return "".join(f"<p>{escape(line)}</p>" for line in text.splitlines())


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)

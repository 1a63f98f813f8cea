"""The notebooks of the docs, cell by cell, as Jupyter runs them."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

PLACE = Path(__file__).parents[1] / "docs" / "notebooks"


def shown(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell; gives the value of its last line, which Jupyter shows, if it is one."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", sorted(PLACE.glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_cell_runs_and_shows_something(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    cells = ["".join(each["source"]) for each in notebook["cells"] if each["cell_type"] == "code"]
    assert all(not each.get("outputs") for each in notebook["cells"])  # nothing stale is committed
    names: dict[str, Any] = {}
    for cell in cells:
        value = shown(cell, names)
        assert value is not None, cell
        to_html = getattr(value, "_repr_html_", None)
        assert to_html is None or "<t" in to_html()

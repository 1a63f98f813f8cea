"""Small runs of tiny streams, and what of them can be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dicgrl.errors import UserError
from dicgrl.graph import Stream
from dicgrl.jobs.stream import run_stream
from dicgrl.recipes import Recipe
from tests.tiny import learner_of, ring

# The default recipes have dozens of epochs for later parts.
BRIEF: dict[str, dict[str, Any]] = {
    "links": {"later_epochs": 3, "arrive_epochs": 3},
    "nodes": {"later_epochs": 3},
}


def recipe_of(kind: str, strategy: str = "lower", **changes: Any) -> Recipe:
    """Settings with which a tiny stream of links or nodes is learned in a blink."""
    brief = BRIEF[kind] if strategy == "dicgrl" else {}
    return Recipe("default", learner_of(kind, strategy, **(brief | changes)).settings)


def run(stream: Stream, recipe: Recipe, **arguments: Any) -> dict[str, Any]:
    """The results of a stream that is learned on the CPU."""
    return run_stream(stream, recipe, device="cpu", **arguments)


def measured(results: dict[str, Any]) -> Any:
    """All of the results but times and memory, as they are read from a file."""

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                k: kept(v)
                for k, v in value.items()
                if not k.endswith("seconds") and k != "peak_memory_bytes"
            }
        return [kept(v) for v in value] if isinstance(value, list) else value

    return kept(json.loads(json.dumps(results)))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def files_in(folder: str | Path) -> dict[Path, bytes]:
    """Every file in a folder, to see whether something changed."""
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def unchanged(folder: Path, *mentioned: str, **arguments: Any) -> None:
    """A run is refused and leaves every file as it was."""
    before = files_in(folder)
    given = {"stream": ring(), "recipe": recipe_of("links"), "resume": True} | arguments
    with pytest.raises(UserError) as caught:
        run(given.pop("stream"), given.pop("recipe"), out=folder, **given)
    for words in (str(folder), *mentioned):
        assert words in str(caught.value)
    assert before == files_in(folder)

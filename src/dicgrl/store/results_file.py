"""The results of a run: what was measured after each part; jobs write it after every one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dicgrl.errors import DataError
from dicgrl.store.sealed import read_json


def measured_parts(path: Path) -> int:
    """How many parts the results are about; 0 where they cannot be read: they can be redone."""
    try:
        return len(read_json(path)["parts"])
    except (DataError, KeyError, TypeError):
        return 0


def read_results(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Read the results of a run that learned part by part.

    Args:
        path: The file.
        config: The configuration of the run.

    Raises:
        DataError: There are none, or they are of another kind of run.
    """
    if not path.exists():
        if "dataset" not in config:  # `run` says what it learns
            raise DataError(
                path.parent,
                "saved from Python, without results.json; `dicgrl learn` writes it, also where its "
                "facts are known",
            )
        raise DataError(path.parent, "this run has no results yet; --resume goes on with it")
    results = read_json(path)
    if not results.get("parts"):
        raise DataError(path, "this run has no results yet")
    if results.get("setting") == "whole":
        raise DataError(path.parent, "a run of --whole; this needs one that learned part by part")
    if "dim" in config["settings"]:  # an earlier version's results may have another meaning of it
        results["settings"]["dim"] = config["settings"]["dim"]
    return results

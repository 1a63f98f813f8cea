"""What is in a run folder, without loading its model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dicgrl.errors import DataError
from dicgrl.store.run_folder import part_folder, read_config, read_json, saved_parts

_ABOUT = ("dataset", "task", "model", "strategy", "recipe", "seed", "keep", "settings")


def summarise(folder: Path) -> dict[str, Any]:
    """What a run is, what each of its parts brought and cost, and what is known since.

    Example:
        >>> summarise(Path("no such run"))
        Traceback (most recent call last):
        dicgrl.errors.DataError: no such run: no run here (config.json is missing)

    Raises:
        DataError: It is no run, or a file of it is damaged.
    """
    about = {"dataset": folder.resolve().name, "recipe": "default"} | read_config(folder)
    path = folder / "results.json"
    results = read_json(path) if path.exists() else {}
    try:
        measured = {part["part"]: part for part in results.get("parts", [])}
        parts = []
        for number in range(saved_parts(folder)):
            place = part_folder(folder, number)
            labels = read_json(place / "labels.json")
            brought = {f"new_{kind}": len(names) for kind, names in labels.items()}
            learned = read_json(place / "report.json")
            took = {**learned["report"], "retention": learned["retention"]}
            parts.append({**brought, **took, **measured.get(number, {})})
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(folder, f"damaged run ({error})") from error
    return {
        "folder": str(folder),
        **{key: about.get(key) for key in _ABOUT},
        "whole": about.get("setting") == "whole" and len(parts) < 2,
        "bytes": sum(map(_size, folder.rglob("*"))),
        "parts": parts,
    }


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # another process has just replaced it
        return 0

"""What is in a run folder, without loading its model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dicgrl.errors import DataError, UserError
from dicgrl.models.division import VectorSettings
from dicgrl.store.part_folder import PartFolder

_ABOUT = ("dataset", "task", "model", "strategy", "recipe", "seed", "keep", "settings")


def overview(
    folder: Path,
    config: Mapping[str, Any],
    results: Mapping[str, Any],
    places: Iterable[PartFolder],
) -> dict[str, Any]:
    """What a run is, what each of its parts brought and cost, and what is known since.

    Args:
        folder: The run folder.
        config: Its configuration.
        results: Its results; empty where there are none.
        places: Its parts.

    Raises:
        DataError: A file of the run is damaged.
    """
    about = {"dataset": folder.resolve().name, "recipe": "default", **config}
    try:
        measured = {part["part"]: part for part in results.get("parts", [])}
        parts = []
        for place in places:
            brought = {f"new_{kind}": len(names) for kind, names in place.labels().items()}
            learned = place.peek_report()
            took = {**learned["report"], "retention": learned["retention"]}
            parts.append({**brought, **took, **measured.get(place.number, {})})
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(folder, f"damaged run ({error})") from error
    return {
        "folder": str(folder),
        **{key: about.get(key) for key in _ABOUT},
        **_lengths(about.get("settings")),
        "whole": about.get("setting") == "whole" and len(parts) < 2,
        "bytes": sum(map(_size, folder.rglob("*"))),
        "parts": parts,
    }


def _lengths(settings: Any) -> dict[str, Any]:
    """How long an entity's vector is, and how much of it a triple uses; empty where unknown."""
    if not isinstance(settings, Mapping) or "dim" not in settings:
        return {}
    known = {name: settings[name] for name in VectorSettings.options() if name in settings}
    try:
        vectors = VectorSettings(**known)
    except UserError:  # `info` shows what is there
        return {}
    return {"vector": {"active": vectors.active, "length": vectors.length}}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # another process has just replaced it
        return 0

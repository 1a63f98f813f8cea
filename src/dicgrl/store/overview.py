"""What is in a run folder, without loading its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dicgrl.errors import DataError, UserError
from dicgrl.models.division import VectorSettings
from dicgrl.store.version import Version

_ABOUT = ("dataset", "task", "model", "strategy", "recipe", "seed", "keep", "settings")


def overview(folder: Path, config: Mapping[str, Any], line: Sequence[Version]) -> dict[str, Any]:
    """What a run is, what each of its parts brought and cost, and what is known since.

    Args:
        folder: The run folder.
        config: Its configuration.
        line: The versions whose changes make it.

    Raises:
        DataError: Something of the run is damaged.
    """
    about = {"dataset": folder.resolve().name, "recipe": "default", **config}
    try:
        parts = [
            {
                **{name: n for name, n in version.counts.items() if name.startswith("new_")},
                **version.report,
                "retention": version.retention,
                **(version.results or {}).get("entry", {}),
                "tests": list(version.tests),
                "version": version.number,
                "kind": version.kind,
            }
            for version in line
        ]
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

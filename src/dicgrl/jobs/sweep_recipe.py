"""The best settings of a sweep as the text of a recipe file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dicgrl.common.atomic import replacing_file
from dicgrl.errors import UserError
from dicgrl.jobs.sweep import Sweep

_DIVISION = ("components", "top", "attention", "routing", "order")


def check_recipe_file(path: Path | None) -> None:
    """Refuse the name of a recipe file that `dicgrl run --recipe` would not take.

    Raises:
        UserError: It has another ending.
    """
    if path is not None and path.suffix != ".toml":
        raise UserError(f"--out {path}: expected a name that ends with .toml")


def write_recipe(found: Sweep, path: Path) -> None:
    """Write the best settings to a recipe file."""
    with replacing_file(path) as temporary:
        temporary.write_text(recipe_text(found), encoding="utf-8")


def recipe_text(found: Sweep) -> str:
    """The best settings as a recipe file, which `dicgrl run --recipe FILE` takes."""
    settings = found.settings.as_dict()
    strategy = settings.pop("strategy")
    best = found.trials[0]
    assert best.value is not None
    tried = ", ".join(f"{key}={value}" for key, value in best.values.items())
    lines = [
        f"# {found.dataset}: {tried}, best of {len(found.trials)} combinations on validation data:",
        f"# {found.metric} {100 * best.value:.2f} per cent, mean of {found.seeds} seed(s).",
        f"model = {_toml(settings.pop('model'))}",
    ]
    continual = found.settings.later_names & settings.keys()
    divided = set(_DIVISION) & settings.keys() if settings["components"] else set()
    sections = {
        "settings": settings.keys() - continual - divided,
        "disentangled": divided,
        f"strategies.{strategy}": set() if found.merged else continual,
    }
    for title, keys in sections.items():
        if keys:
            lines += ["", f"[{title}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in settings.items() if key in keys]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value as TOML; JSON writes strings, numbers and truth values alike."""
    return json.dumps(value, ensure_ascii=False)

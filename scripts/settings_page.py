"""Write docs/settings.md from the docstrings and defaults of the settings.

python scripts/settings_page.py
"""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from dicgrl.recipes import default_settings
from dicgrl.settings import (
    OF_COMPONENTS,
    USED_BY,
    ContinualSettings,
    LinkSettings,
    NodeSettings,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
_HEAD = """\
# Settings

Written by `python scripts/settings_page.py` from `src/dicgrl/settings.py`. A setting is changed by
`--set key=value` (also several times), by a recipe file, or in Python: `Learner(dim=100)`.

*dicgrl* is what a graph of your own gets with the default strategy (`default.links.toml` and
`default.nodes.toml` in `src/dicgrl/recipes`, which make dicgrl bounded); *others* what holds for
other strategies and plain models. The known datasets have recipes there that say more. `model` and
`strategy` have options of their own, `--model` and `--strategy` (dicgrl unless given). transe takes
`p` (1 or 2) besides, convkb `filters` and `dropout`.

The nodes of a network have no rows that could arrive or drift. There `--set` refuses
{without_effect},
which have no effect; a recipe may carry them.

`--set` and `Learner` also refuse what neither the strategy nor the model has a use for. Of several
strategies in one command it is enough that one uses a setting; others ignore it. What only another
setting puts out of use (`shield_rank` with `shield=0`, `heads` of a divided network) is accepted.
These are for some alone:

{used_by}"""
_SECTIONS: dict[str, tuple[type[ContinualSettings], tuple[str, ...]]] = {  # and models of a task
    "Later parts, both tasks": (ContinualSettings, ("transe", "gat")),
    "Link prediction": (LinkSettings, ("transe",)),
    "Node classification": (NodeSettings, ("gat",)),
}
_NAMES = {"transe": "dicgrl, links", "gat": "dicgrl, nodes"}


def page() -> str:
    """The page, as Markdown."""
    without = [f"`{name}`" for name in NodeSettings.without_effect]
    users: dict[str, list[str]] = {}
    for name, strategies in USED_BY.items():
        users.setdefault(", ".join(strategies), []).append(f"`{name}`")
    users["models of components, not plain ones"] = [f"`{name}`" for name in OF_COMPONENTS]
    used_by = "\n".join(f"- {who}: {', '.join(names)}" for who, names in users.items())
    head = _HEAD.format(without_effect=", ".join(without), used_by=used_by)
    sections = [_section(title, *each) for title, each in _SECTIONS.items()]
    return "\n\n".join([head, *sections]) + "\n"


def _section(title: str, settings: type[ContinualSettings], models: tuple[str, ...]) -> str:
    described = _described(settings)
    chosen = [default_settings(model, "dicgrl") for model in models]
    others = default_settings(models[0], "lower")
    names = [_NAMES[model] if len(models) > 1 else "dicgrl" for model in models]
    rows = []
    for each in fields(settings):
        if each.name in described:
            values = [_chosen(one, each.name) for one in chosen]
            other = _default(getattr(others, each.name))
            cells = [f"`{each.name}`", *values, other, described[each.name]]
            rows.append(f"| {' | '.join(cells)} |")
    header = ["setting", *names, "others", "meaning"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|", *rows]
    return "\n".join([f"## {title}", "", *lines])


def _chosen(settings: LinkSettings | NodeSettings, name: str) -> str:
    return "" if name in settings.without_effect else _default(getattr(settings, name))


def _described(settings: type[ContinualSettings]) -> dict[str, str]:
    attributes = (inspect.getdoc(settings) or "").partition("Attributes:\n")[2]
    entries = re.findall(r"^    (\w+): (.*?)(?=^    \w|\Z)", attributes, re.MULTILINE | re.DOTALL)
    return {name: " ".join(text.split()) for name, text in entries}


def _default(value: Any) -> str:
    if value == {}:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

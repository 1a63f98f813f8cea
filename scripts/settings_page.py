"""Write docs/settings.md from the docstrings and defaults of the settings.

python scripts/settings_page.py
"""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from dicgrl.settings import ContinualSettings, LinkSettings, NodeSettings

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
_HEAD = """\
# Settings

Written by `python scripts/settings_page.py` from `src/dicgrl/settings.py`. A setting is changed by
`--set key=value` (also several times), by a recipe file, or in Python: `Learner(dim=100)`. The
defaults below hold where no recipe says otherwise: that of the dataset, or `default.links.toml` and
`default.nodes.toml` for graphs without one (`src/dicgrl/recipes`), which make dicgrl bounded.
`model` and `strategy` have options of their own, `--model` and `--strategy` (dicgrl unless given).
transe takes `p` (1 or 2) besides, convkb `filters` and `dropout`.

The nodes of a network have no rows that could arrive or drift. There `--set` refuses
{without_effect},
which have no effect; a recipe may carry them."""
_SECTIONS = {
    "Later parts, both tasks": ContinualSettings,
    "Link prediction": LinkSettings,
    "Node classification": NodeSettings,
}


def page() -> str:
    """The page, as Markdown."""
    without = [f"`{name}`" for name in NodeSettings.without_effect]
    head = _HEAD.format(without_effect=", ".join(without))
    return "\n\n".join([head, *(_section(*each) for each in _SECTIONS.items())]) + "\n"


def _section(title: str, settings: type[ContinualSettings]) -> str:
    described = _described(settings)
    rows = [
        f"| `{each.name}` | {_default(each.default)} | {described[each.name]} |"
        for each in fields(settings)
        if each.name in described
    ]
    return "\n".join([f"## {title}", "", "| setting | default | meaning |", "|---|---|---|", *rows])


def _described(settings: type[ContinualSettings]) -> dict[str, str]:
    attributes = (inspect.getdoc(settings) or "").partition("Attributes:\n")[2]
    entries = re.findall(r"^    (\w+): (.*?)(?=^    \w|\Z)", attributes, re.MULTILINE | re.DOTALL)
    return {name: " ".join(text.split()) for name, text in entries}


def _default(value: Any) -> str:
    if value is MISSING:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

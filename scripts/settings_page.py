"""Write docs/settings.md from the sections of settings that components declare.

python scripts/settings_page.py
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dicgrl.common.options import MOST_REAL, MOST_WHOLE, Option, Section
from dicgrl.recipes import default_settings
from dicgrl.settings import Settings
from dicgrl.strategies import Strategy
from dicgrl.tasks import DEFAULT_STRATEGY, Task

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
_HEAD = """\
# Settings

Every setting, its default and its bounds. You need none of them to start; the most useful ones are
in the [tutorial](tutorial.md#2-the-first-model). Change a setting with `--set key=value` (may be
repeated), in a recipe file, or in Python: `Learner(dim=100)`. `model` and `strategy` have options
of their own, `--model` and `--strategy`. Strategies and models of your own add their settings (see
[examples](../examples)).

The columns show the defaults for a graph of your own (`default.links.toml` and `default.nodes.toml`
in `src/dicgrl/recipes`): *fresh* with the default strategy, *dicgrl* with that strategy, *others*
with any other strategy and for plain models. If only fresh or dicgrl has a setting, *others* is the
value in a recipe file that does not name it. The known datasets have recipes with other values.

`--set` and `Learner` refuse a setting that neither the strategy nor the model uses. If a command
names several strategies, one of them has to use it, and the others ignore it. A setting that only
another setting makes useless is accepted (`shield_rank` with `shield=0`, `heads` of a divided
network).

Unless other bounds are given, a whole number is at most {whole:g} and any other {real:g}, the limit
of float32. Values out of bounds are refused before anything is built. This page is written by
`python scripts/settings_page.py` from the settings that components declare (`option` in
`src/dicgrl`).

{components}

{rows}
"""
_OWN = (DEFAULT_STRATEGY, "dicgrl")  # strategies with columns of their own


def page() -> str:
    """The page, as Markdown."""
    tasks = [task() for task in Task.registry.values()]
    needed: dict[str, list[str]] = {"components": [], "rows": []}
    for task in tasks:
        for name, known in Settings(task.default_model).known_somewhere().items():
            if known.needs and f"`{name}`" not in needed[known.needs]:
                needed[known.needs].append(f"`{name}`")
    head = _HEAD.format(
        whole=MOST_WHOLE,
        real=MOST_REAL,
        components=_filled(
            f"{_listed(needed['components'])} are only for models divided into components."
        ),
        rows=_filled(
            "The nodes of a network have no rows of their own that could arrive or drift: there "
            f"{_listed(needed['rows'])} have no effect and are refused; a recipe may contain them."
        ),
    )
    return "\n".join([head, *_strategies(tasks), *(line for task in tasks for line in _task(task))])


def _strategies(tasks: list[Task]) -> list[str]:
    """Settings of strategies, a table for those that the same strategies use."""
    sections = {name: strategy.Settings for name, strategy in Strategy.registry.items()}
    lines = ["## Strategies", ""]
    for users, options in _groups(sections):
        title = "All strategies" if len(users) == len(sections) else ", ".join(users)
        lines += [f"### {title}", "", *_table(options, tasks, users), ""]
    return lines


def _task(task: Task) -> list[str]:
    """Settings of the training, the schedule, the models and what else is chosen for a task."""
    lines = [f"## {task.name.replace('-', ' ').capitalize()}", "", *_suited(task)]
    for section in task.sections():
        title = (section.__doc__ or "").splitlines()[0].rstrip(".")
        lines += [f"### {title}", "", *_table(section.options(), [task]), ""]
    for choice, components in ({"model": task.models()} | dict(task.choices())).items():
        for users, options in _groups(components):
            title = f"{choice}: {', '.join(users)}"
            lines += [f"### {title}", "", *_table(options, [task], chosen={choice: users[0]}), ""]
    return lines


def _suited(task: Task) -> list[str]:
    """What models begin with instead of the values in the tables."""
    found: dict[str, list[str]] = {}
    for model in task.models():
        values = [f"`{name}={_shown(value)}`" for name, value in task.suited(model).items()]
        if values:
            found.setdefault(", ".join(values), []).append(f"`{model}`")
    each = [f"{' and '.join(models)} with {values}" for values, models in found.items()]
    if not each:
        return []
    return [_filled(f"Models with other defaults: {'; '.join(each)}."), ""]


def _groups(
    components: Mapping[str, type[Section]],
) -> list[tuple[tuple[str, ...], dict[str, Option]]]:
    """Settings by the components that have them; those that most have come first."""
    users: dict[str, list[str]] = {}
    options: dict[str, Option] = {}
    for component, section in components.items():
        for name, known in section.options().items():
            users.setdefault(name, []).append(component)
            options.setdefault(name, known)
    groups: dict[tuple[str, ...], dict[str, Option]] = {}
    for name, known in options.items():
        groups.setdefault(tuple(users[name]), {})[name] = known
    return sorted(groups.items(), key=lambda group: -len(group[0]))


def _table(
    options: Mapping[str, Option],
    tasks: Sequence[Task],
    users: Sequence[str] = (),
    chosen: Mapping[str, str] | None = None,
) -> list[str]:
    """Rows of settings.

    Args:
        options: The settings.
        tasks: The tasks that have them.
        users: The strategies that have them; none where they are not settings of strategies.
        chosen: The component that has them, by the setting that chooses it.
    """
    own = [each for each in _OWN if each in users] if users else ["dicgrl"]
    others = [each for each in users or [DEFAULT_STRATEGY] if each not in own]
    header = ["setting", "default", "bounds", "meaning"]
    if own:
        kinds = [f", {task.recipe}" for task in tasks] if users else [""]
        header[1:2] = [*(f"{each}{kind}" for each in own for kind in kinds), "others"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for name, known in options.items():
        if not any(name in Settings(task.default_model).names() for task in tasks):
            continue
        cells = [f"`{name}`"]
        cells += [_value(task, name, each, chosen) for each in own for task in tasks]
        found: dict[str, str] = {}  # with the first strategy that has it
        for each in others:
            values = dict.fromkeys(_value(task, name, each, chosen) for task in tasks)
            found.setdefault(" / ".join(values), each if found else "")
        others_say = ", ".join(f"{each} {value}".strip() for value, each in found.items())
        cells.append(others_say or _shown(known.default))
        bounds = known.bounds or ", ".join(map(str, known.choices or ()))
        lines.append(f"| {' | '.join([*cells, bounds, known.help])} |")
    return lines


def _value(task: Task, name: str, strategy: str, chosen: Mapping[str, str] | None) -> str:
    """What a task's default recipe says; empty where the setting has no effect on the task."""
    asked = dict(chosen or {})
    settings = default_settings(asked.pop("model", task.default_model), strategy).changed(asked)
    return _shown(getattr(settings, name)) if name in settings.names() else ""


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _filled(text: str) -> str:
    return textwrap.fill(text, 100, break_on_hyphens=False)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

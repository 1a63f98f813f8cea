"""What the tests of settings share."""

from __future__ import annotations

from dicgrl.common.options import Section
from dicgrl.settings import Settings
from dicgrl.strategies import Strategy
from dicgrl.tasks import Task
from tests.tiny import STRATEGIES

TASKS = ("transe", "gat")  # a model of each


def sections_of(task: Task) -> list[type[Section]]:
    """All sections that settings of a task may have, those of the package's strategies included."""
    chosen = [kind for components in task.choices().values() for kind in components.values()]
    own = [Strategy.registry[name].Settings for name in STRATEGIES]
    return list(dict.fromkeys([*task.models().values(), *task.sections(), *chosen, *own]))


def of_strategies() -> dict[str, list[str]]:
    """Settings of strategies, each with the strategies of the package that have it."""
    users: dict[str, list[str]] = {}
    for strategy in STRATEGIES:
        for name in Strategy.registry[strategy].Settings.options():
            users.setdefault(name, []).append(strategy)
    return users


def needing(what: str, model: str) -> set[str]:
    """Settings of a task that need something of the model."""
    known = Settings(model).known_somewhere()
    return {name for name, each in known.items() if each.needs == what}

"""Rows of the tables over parts: every strategy, and two that show what division is worth.

`upper, divided` retrains the divided model that dicgrl has, `dicgrl, K=1` learns one component of
the same active size. The paper has neither, and so have the recipes that are as published.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dicgrl.models.components import Components
from dicgrl.recipes import default_settings
from dicgrl.research.cells import Cell
from dicgrl.strategies import strategy_named
from dicgrl.strategies.arrival import ACTIVATED

STRATEGIES = ("frozen", "lower", "ewc", "emr", "gem", "dicgrl", "upper")
PUBLISHED = ("paper", "released")  # recipes with the rows of the paper alone
ONE_COMPONENT = ("components=1", "top=1")


def strategy_cells(
    dataset: str, model: str, *changes: str, strategies: tuple[str, ...] = STRATEGIES
) -> list[Cell]:
    """A cell for every strategy; dicgrl needs components, the others have the plain model."""
    return [Cell(dataset, model, name, _form(name), changes=tuple(changes)) for name in strategies]


def fair_cells(dataset: str, model: str, *changes: str) -> list[Cell]:
    """The same and the two rows besides, each after the row that it is to be compared with."""
    cells = []
    for cell in strategy_cells(dataset, model, *changes):
        cells.append(cell)
        if cell.strategy == "dicgrl":
            cells.append(replace(cell, changes=(*cell.changes, *_one_component(dataset, model))))
        if cell.strategy == "upper":
            cells.append(replace(cell, form="disentangled"))
    return cells


def _one_component(dataset: str, model: str) -> tuple[str, ...]:
    """What makes one component of the size that is in use of several."""
    usual = default_settings(model, "dicgrl", dataset)
    if "hidden" not in usual:  # the length of a vector is its active size
        return ONE_COMPONENT
    return (*ONE_COMPONENT, f"hidden={usual.hidden * usual.top}")


def label_of(cell: Cell) -> str:
    """What a row is called.

    Example:
        >>> [label_of(cell) for cell in fair_cells("films", "transe")][-4:]
        ['dicgrl', 'dicgrl, K=1', 'upper', 'upper, divided']
    """
    label = str(cell.strategy)
    if set(ONE_COMPONENT) <= set(cell.changes):
        return f"{label}, K=1"
    return f"{label}, divided" if cell.form != _form(label) else label


def is_besides(cell: Cell) -> bool:
    """Whether the paper has no such row."""
    return cell.strategy not in STRATEGIES or label_of(cell) != cell.strategy


def conditions_of(settings: dict[str, Any]) -> dict[str, str]:
    """What is to be equal for all rows of a table of links: vectors, start and replay.

    Args:
        settings: As results have them.

    Example:
        >>> conditions_of({"strategy": "emr", "dim": 64, "start": "auto", "budget": "20%"})
        {'active': '64', 'start': 'random', 'budget': '20%'}
        >>> both = {"strategy": "dicgrl", "dim": 64, "shield": "5%", "budget": "10%"}
        >>> conditions_of(both)["budget"], conditions_of(both | {"strategy": "arrival"})["budget"]
        ('10% + 5%', '5%')
    """
    strategy = strategy_named(settings["strategy"])
    count, top = settings.get("components", 0), settings.get("top", 1)
    active = top * Components(count, top).size(settings["dim"]) if count else settings["dim"]
    start = settings.get("start", "")
    if start == "auto":
        start = "neighbours" if strategy.starts_from_neighbours else "random"
    used = strategy.Settings.options()
    spent = [str(settings[key]) for key in ("budget", "effort") if key in used][:1]
    shield = settings.get("shield", "0") if "shield" in used else "0"
    if shield not in ("0", ACTIVATED):  # examples besides; those of `activated` are the budget's
        spent = [*(spent if "later_epochs" in used else []), str(shield)]
    return {
        "active": str(active),
        "start": "" if strategy.name == "upper" else start,
        "budget": " + ".join(spent),
    }


def _form(strategy: str) -> str:
    return "disentangled" if strategy_named(strategy).divided else "plain"

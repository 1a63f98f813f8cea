"""The strategies of continual learning, by name; each is written once and works for every task.

To add one, subclass `Strategy` under a name and implement `later`, or put one together from
ingredients (`dicgrl.strategies.ingredients`).
"""

from dicgrl.errors import unknown_name
from dicgrl.strategies.base import Learned, Strategy
from dicgrl.strategies.ingredients import Composed, Ingredient

# Each registers what it brings, in the order in which messages and pages list them.
from dicgrl.strategies import (  # isort: skip
    activator_links,
    activator_nodes,
    bounds,
    warm,
    ewc,
    emr,
    gem,
    lkge,
    incde,
    fastkge,
    arrival,
    dicgrl,
    fresh,
)

__all__ = [
    "Composed",
    "Ingredient",
    "Learned",
    "Strategy",
    "activator_links",
    "activator_nodes",
    "arrival",
    "bounds",
    "dicgrl",
    "emr",
    "ewc",
    "fastkge",
    "fresh",
    "gem",
    "incde",
    "lkge",
    "strategy_named",
    "warm",
]


def strategy_named(name: str) -> type[Strategy]:
    """Look up a strategy by its name.

    Raises:
        UserError: There is no such strategy.
    """
    if name not in Strategy.registry:
        raise unknown_name("strategy", name, Strategy.registry)
    return Strategy.registry[name]

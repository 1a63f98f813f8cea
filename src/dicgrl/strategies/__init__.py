"""Strategies of continual learning, by name; each is written once for both tasks.

To add one, subclass `Strategy` under a name and implement `later`.
"""

from dicgrl.errors import unknown_name
from dicgrl.settings import ContinualSettings
from dicgrl.strategies import bounds, dicgrl, emr, ewc, gem  # each registers its strategies
from dicgrl.strategies.base import Learned, Strategy

__all__ = ["Learned", "Strategy", "bounds", "dicgrl", "divides", "emr", "ewc", "gem", "strategy"]


def divides(name: str | None) -> bool:
    """Whether a strategy works on components; one that is not known does not."""
    return name in Strategy.registry and Strategy.registry[name].divided


def strategy(settings: ContinualSettings) -> Strategy:
    """The strategy that the settings name."""
    if settings.strategy not in Strategy.registry:
        raise unknown_name("strategy", settings.strategy, Strategy.registry)
    return Strategy.registry[settings.strategy](settings)

"""Which old examples a part activates, and how: the interface that strategies use.

Each kind of trainer has its own activator; `activator_of.register` adds one for another kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dicgrl.errors import UserError
from dicgrl.graph.arrays import IntArray, distinct
from dicgrl.strategies.activation import Activation
from dicgrl.trainers import ExampleGroup, Trainer
from dicgrl.training.stepper import Objective

EVEN = "even"  # a selection that ignores activation


@dataclass(frozen=True, slots=True, eq=False)
class ActivatedExamples:
    """The old examples that a part activates.

    Attributes:
        examples: The examples, on the model's device.
        weight: Weight of each.
        positions: A unique number for each old example.
        concerned: Old triples or edges whose common components may change.
        candidates: How many old triples or edges were considered.
        activated: How many of these share a component with new ones.
    """

    examples: Tensor
    weight: Tensor
    positions: IntArray
    concerned: Activation
    candidates: int
    activated: int


class Activator(ABC):
    """What the newest part of a trainer activates.

    Args:
        settings: The settings of dicgrl.
    """

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def activate(self, budget: int, used: IntArray | None = None) -> ActivatedExamples:
        """Find the old examples that the newest part activates.

        Args:
            budget: How many examples the part may replay in total, each counted once.
            used: Positions of those that it has already replayed; none by default.
        """

    @abstractmethod
    def unfreeze_concerned(self, activated: ActivatedExamples) -> None:
        """Let new rows change, and of old rows only the components that are activated."""

    @abstractmethod
    def objective(self, examples: Tensor) -> Objective:
        """The loss of old examples, with the attention from before the part.

        Args:
            examples: All examples that the loss will be computed for.
        """

    @abstractmethod
    def shield(self, examples: Tensor) -> ExampleGroup | None:
        """A shield that protects the answers of old examples from new rows.

        Returns:
            One entry per example, with the loss of a batch of entries. None if there is nothing to
            protect, or nothing to protect it from.
        """

    @abstractmethod
    def draw_shield(self) -> tuple[Tensor, IntArray]:
        """Draw the old examples of a shield uniformly, as many as the settings say.

        Returns:
            The examples, and the positions of those that are training examples.
        """

    def is_about_newcomers_only(self) -> bool:
        """Whether every example of the newest part mentions something that arrived with it.

        Only called if new rows arrive.
        """
        return False

    def old_weights(self) -> dict[str, int]:
        """For dense weights that grow: their number of rows before the newest part, by name."""
        return {}

    def drift(self) -> dict[str, float]:
        """How far answers about old examples moved with the newest part; empty if not known."""
        return {}

    def weights_of(self, order: IntArray, device: torch.device) -> Tensor:
        """Weights of activated examples by their order, [n]."""
        first = torch.from_numpy(order == 1)
        weight = torch.where(first, self.settings.weight1, self.settings.weight2)
        return weight.float().to(device)


def within_evenly(
    drawn: IntArray, budget: int, used: IntArray | None, generator: np.random.Generator
) -> IntArray:
    """The old examples that fit into a budget if they are drawn uniformly.

    Args:
        drawn: As many as the budget, drawn uniformly from the history, used before or not.
        budget: How many may be used in total, each counted once.
        used: Those used before, which are kept; none by default.
        generator: Source of randomness.
    """
    if used is None or not len(used):
        return np.sort(drawn)
    others = np.setdiff1d(drawn, used)
    left = min(max(budget - len(used), 0), len(others))
    return distinct(used, generator.choice(others, left, replace=False))


@singledispatch
def activator_of(trainer: Trainer, settings: Any) -> Activator:
    """The activator of a trainer, for its newest part.

    Raises:
        UserError: This kind of trainer has none.
    """
    del settings
    raise UserError(f"{type(trainer).__name__} has no activation; use another strategy than dicgrl")

"""Which old examples a part activates, and how: the interface that strategies use.

Each kind of trainer answers in its own way; `activator_of.register` adds one for another kind.
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

EVEN = "even"  # a selection that does without activation


@dataclass(frozen=True, slots=True, eq=False)
class ActivatedExamples:
    """Old examples that a part concerns.

    Attributes:
        examples: The examples, on the model's device.
        weight: Weight of each.
        positions: Numbers that tell old examples apart.
        concerned: Old triples or edges whose common components may change.
        candidates: Old triples or edges that were looked at.
        activated: Those that share a component with the new ones.
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
        """Old examples that the newest part concerns.

        Args:
            budget: How many examples the part may replay in all, each counted once.
            used: Positions of those that it has replayed already; none unless given.
        """

    @abstractmethod
    def unfreeze_concerned(self, activated: ActivatedExamples) -> None:
        """Let what is new change, and of what is old only the components that are concerned."""

    @abstractmethod
    def objective(self, examples: Tensor) -> Objective:
        """The loss of old examples: by the attention before the part; only what is unfrozen moves.

        Args:
            examples: All that will be asked for.
        """

    @abstractmethod
    def shield(self, examples: Tensor) -> ExampleGroup | None:
        """What protects the answers of old examples from what is new.

        Returns:
            An entry for each example, and the loss of batches of entries. None where there is
            nothing to protect, or nothing to protect it from.
        """

    @abstractmethod
    def draw_shield(self) -> tuple[Tensor, IntArray]:
        """Old examples to make a shield of, as many as the settings say, drawn evenly.

        Returns:
            The examples, and the positions of those that are learned from.
        """

    def is_about_newcomers_only(self) -> bool:
        """Whether every example of the newest part speaks of something that came with it.

        It is asked only where rows arrive.
        """
        return False

    def old_weights(self) -> dict[str, int]:
        """Of dense weights that grow, how many rows were there before the newest part, by name."""
        return {}

    def drift(self) -> dict[str, float]:
        """How far answers about what is old moved in the newest part; empty where not known."""
        return {}

    def weights_of(self, order: IntArray, device: torch.device) -> Tensor:
        """Weights of activated examples by their order, [n]."""
        first = torch.from_numpy(order == 1)
        weight = torch.where(first, self.settings.weight1, self.settings.weight2)
        return weight.float().to(device)


def within_evenly(
    drawn: IntArray, budget: int, used: IntArray | None, generator: np.random.Generator
) -> IntArray:
    """Old examples that a budget allows, evenly: those used before stay, others share what is left.

    Args:
        drawn: As many as the budget, drawn evenly from the history, whether or not used before.
        budget: How many may be used in all, each counted once.
        used: Those used before; none unless given.
        generator: Source of randomness.
    """
    if used is None or not len(used):
        return np.sort(drawn)
    others = np.setdiff1d(drawn, used)
    left = min(max(budget - len(used), 0), len(others))
    return distinct(used, generator.choice(others, left, replace=False))


@singledispatch
def activator_of(trainer: Trainer, settings: Any) -> Activator:
    """What the newest part of a trainer activates.

    Raises:
        UserError: This kind of trainer cannot say.
    """
    del settings
    raise UserError(f"{type(trainer).__name__} has no activation; use another strategy than dicgrl")

"""The cost of training independent of the machine: examples processed, with repeats."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Positives:
    """Number of examples that went through the model forward and backward, with repeats.

    Attributes:
        new: Examples of the newest part.
        old: Examples of earlier parts.

    Example:
        >>> Positives(new=100) + Positives(new=100, old=30)
        Positives(new=200, old=30)
    """

    new: int = 0
    old: int = 0

    def __add__(self, other: Positives) -> Positives:
        return Positives(self.new + other.new, self.old + other.old)

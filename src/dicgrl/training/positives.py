"""What training costs whatever the machine: examples, each counted as often as it is passed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Positives:
    """Examples that went through the model forward and backward, repeats counted.

    Attributes:
        new: Of the newest part.
        old: Of earlier parts.

    Example:
        >>> Positives(new=100) + Positives(new=100, old=30)
        Positives(new=200, old=30)
    """

    new: int = 0
    old: int = 0

    def __add__(self, other: Positives) -> Positives:
        return Positives(self.new + other.new, self.old + other.old)

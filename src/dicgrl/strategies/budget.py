"""Amounts of old examples: shares of the history, multiples of the part, or numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dicgrl.common.options import Check, Section, option
from dicgrl.errors import UserError, shown
from dicgrl.trainers import Trainer


def examples_within(amount: str, old: int, new: int, name: str = "budget") -> int:
    """How many old examples an amount allows, given the size of the history and of the part.

    Example:
        >>> [examples_within(text, old=5000, new=100) for text in ("10%", "2x", "30", "all")]
        [500, 200, 30, 5000]
        >>> examples_within("10%,3x", old=5000, new=100)
        300
    """
    if "," in amount:
        return min(examples_within(text, old, new, name) for text in amount.split(","))
    text = amount.strip().lower()
    if text == "all":
        return old
    unit = next((sign for sign in ("%", "x") if text.endswith(sign)), "")
    try:
        number = float(text.removesuffix(unit))
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf or (not unit and number % 1):  # 0.1 is not a share, 10% is
        raise UserError(
            f"{name}={shown(amount)}: expected a share such as 10%, 2x (times the part), 500 or all"
        )
    return min(old, round(number * {"%": old / 100, "x": new, "": 1}[unit]))


def check_amount(name: str, value: Any) -> None:
    """Refuse a text that is not an amount.

    Raises:
        UserError: It is not.
    """
    examples_within(value, 0, 0, name)


def amount_or(word: str) -> Check:
    """A check for a setting that is either an amount or a given word."""

    def check(name: str, value: Any) -> None:
        if value == word:
            return
        try:
            check_amount(name, value)
        except UserError as error:
            raise UserError(f"{error}, or {word}") from None

    return check


@dataclass(frozen=True)
class BudgetSettings(Section):
    """Settings of how many old examples may be replayed."""

    budget: str = option(
        "10%",
        "Old examples that may be replayed for one part: 10% (of the history), 2x (times the new "
        "part), 500 (examples) or all; of several separated by commas, the smallest.",
        check=check_amount,
        numbers=True,
    )

    def allowed(self, trainer: Trainer) -> int:
        """Old examples that may be replayed for the newest part."""
        old, new = trainer.count("train", 0, trainer.newest), trainer.count("train", trainer.newest)
        return examples_within(self.budget, old, new)

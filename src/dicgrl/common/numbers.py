"""Numbers that users give."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from dicgrl.errors import UserError, shown_value


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A number that was given as a whole one; no text, no fraction.

    Raises:
        UserError: It is something else, or out of range.

    Example:
        >>> whole_number("k", 0, least=1)
        Traceback (most recent call last):
        dicgrl.errors.UserError: k=0: expected a whole number, at least 1
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    number = int(value) if is_whole else least - 1
    if number < least or (most is not None and number > most):
        span = f"at least {least}" if most is None else f"{least} to {most}"
        raise UserError(f"{name}={shown_value(value)}: expected a whole number, {span}")
    return number

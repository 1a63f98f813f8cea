"""Classes that are found by a name, which two of them cannot have."""

from __future__ import annotations

from typing import TypeVar

from dicgrl.errors import UserError, shown

T = TypeVar("T")


def register(registry: dict[str, type[T]], kind: str, name: str, made: type[T]) -> None:
    """Enter a class under its name.

    A module may enter a class again, as a notebook does whose cell is run twice.

    Args:
        registry: The classes by name.
        kind: What they are, for the message.
        name: The name.
        made: The class.

    Raises:
        UserError: The name belongs to a class of another module.

    Example:
        >>> from fractions import Fraction
        >>> register({"ratio": float}, "number", "ratio", Fraction)
        Traceback (most recent call last):
        dicgrl.errors.UserError: number 'ratio' is builtins.float already; choose another name
    """
    there = registry.get(name)
    if there is not None and there.__module__ != made.__module__:
        owner = f"{there.__module__}.{there.__qualname__}"
        raise UserError(f"{kind} {shown(name)} is {owner} already; choose another name")
    registry[name] = made

"""Lists and dictionaries from the database whose JSON is parsed only when they are used.

A run may have thousands of versions, and most of their measurements are never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from typing_extensions import override

from dicgrl.store.database import parsed

Damaged = Callable[[object], Exception]
"""Creates an error from a description of what is wrong."""


class ListLater(Sequence[Any]):
    """A list that is parsed on first use.

    Args:
        text: The list as JSON.
        damaged: Makes the error that is raised if the text is not a list.

    Example:
        >>> ListLater("[1, 2]", ValueError)[1], ListLater("[1, 2]", ValueError) == [1, 2]
        (2, True)
    """

    def __init__(self, text: str, damaged: Damaged) -> None:
        self._text: str | None = text
        self._damaged = damaged
        self._items: list[Any] = []

    @property
    def items(self) -> list[Any]:
        """The list itself.

        Raises:
            Exception: The text is not a list; `damaged` makes the error.
        """
        text = self._text  # another thread may be parsing it, too
        if text is not None:
            self._items, self._text = _parsed(text, list, self._damaged), None
        return self._items

    @override
    def __getitem__(self, number: Any) -> Any:
        return self.items[number]

    @override
    def __len__(self) -> int:
        return len(self.items)

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.items == list(other)

    __hash__ = None  # type: ignore[assignment]


class DictLater(Mapping[str, Any]):
    """A dictionary that is parsed on first use; see `ListLater`.

    Example:
        >>> DictLater('{"a": 1}', ValueError) == {"a": 1}
        True
    """

    def __init__(self, text: str, damaged: Damaged) -> None:
        self._text: str | None = text
        self._damaged = damaged
        self._held: dict[str, Any] = {}

    @property
    def held(self) -> dict[str, Any]:
        """The dictionary itself; raises as `ListLater.items` does."""
        text = self._text
        if text is not None:
            self._held, self._text = _parsed(text, dict, self._damaged), None
        return self._held

    @override
    def __getitem__(self, name: str) -> Any:
        return self.held[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self.held)

    @override
    def __len__(self) -> int:
        return len(self.held)


def _parsed(text: str, kind: type[Any], damaged: Damaged) -> Any:
    try:
        found = parsed(text)
    except ValueError as error:
        raise damaged(error) from error
    if not isinstance(found, kind):
        raise damaged(f"a {kind.__name__} was expected, not {type(found).__name__}")
    return found

"""What can be fetched: files of a public repository whose counts and content are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dicgrl.datasets.pins import Pin


class Published(Protocol):
    """A dataset that its authors publish as files."""

    @property
    def name(self) -> str:
        """Its name, also of the folder that it is put into."""

    @property
    def folder(self) -> str:
        """Its folder in the repository."""

    @property
    def address(self) -> str:
        """Where the repository is, at a revision that a later push cannot change."""

    @property
    def files(self) -> list[str]:
        """All files that are needed, relative to its folder."""

    @property
    def pins(self) -> Mapping[str, Pin]:
        """What each of these files holds."""

    def differences(self, description: Mapping[str, Any]) -> list[str]:
        """Where a description (see `describe`) differs from what was published, in words."""


def differences(counts: Mapping[str, Sequence[int]], description: Mapping[str, Any]) -> list[str]:
    """Where the parts of a description differ from published counts, in words.

    Args:
        counts: One value per part for each thing that is counted.
        description: See `describe`.

    Example:
        >>> differences({"train": (5,)}, {"parts": [{"train": 4}]})
        ['part 0: 4 train; published: 5']
    """
    parts, published = description["parts"], len(next(iter(counts.values())))
    if len(parts) != published:
        return [f"{len(parts)} parts; published: {published}"]
    return [
        f"part {i}: {parts[i].get(row)} {row}; published: {value}"
        for row, values in counts.items()
        for i, value in enumerate(values)
        if parts[i].get(row) != value
    ]

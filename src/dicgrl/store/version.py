"""A version of a run: one change, with its facts and metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from dicgrl.common.numbers import whole_number
from dicgrl.errors import UserError, shown
from dicgrl.store.content import Content

RESTORE = "restore"  # a version without a change of its own, equal to an earlier one
_NAMED = 5  # versions in a message


@dataclass(frozen=True, slots=True)
class Version:
    """What is known of a version, apart from its facts and tensors.

    Attributes:
        number: Counted from 1.
        parent: Number of the version that it was made from; 0 for the first.
        kind: What was done, as in `Change.kind`.
        time: When, as ISO 8601 in UTC; empty if an earlier format did not record it.
        message: The author's description.
        counts: How many facts, labels and so on it brought, by name.
        data: Checksum of its arrays and labels; versions with the same content have the same.
        report: The report of learning it, as `PartReport` has it.
        before: The metric of its test set before it was learned, minus that of chance.
        retention: Share of the first part's right answers that were still right after it.
        answers: Whether each question of the first part was answered at first, as 0s and 1s.
        tests: What was measured on the test sets after it.
        results: What results.json says of it: `summary` of the run then, and `entry` of the part
            without its tests; None where nobody wrote any.
    """

    number: int
    parent: int
    kind: str
    time: str = ""
    message: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    data: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)
    before: float | None = None
    retention: float | None = None
    answers: str | None = None
    tests: Sequence[dict[str, Any]] = ()
    results: Mapping[str, Any] | None = None

    @property
    def stamp(self) -> int:
        """See `stamp`."""
        return stamp(self.number, self.parent, self.kind, self.time, self.data)


def stamp(number: int, parent: int, kind: str, time: str, data: str) -> int:
    """Tells a version from one of the same number in a copy of the run that went other ways.

    Where a run is put back from a backup, the numbers that were used since are used again.

    Example:
        >>> stamp(3, 2, "learn", "", data="a") == stamp(3, 2, "learn", "", data="b")
        False
    """
    digest = hashlib.sha256(f"{number} {parent} {kind} {time} {data}".encode()).digest()
    return int.from_bytes(digest[:7])


class ModelTensors(NamedTuple):
    """The model of a version.

    Attributes:
        configuration: Arguments for an empty model of the same kind.
        tensors: All its tensors and those of the strategy, by name.
    """

    configuration: dict[str, Any]
    tensors: dict[str, Tensor]


class HasTags(Protocol):
    """Anything that knows the tags of a run."""

    def tags(self) -> dict[str, int]:
        """Versions by their tags."""


class Source(HasTags, Protocol):
    """A stored run, in any format, as it was when it was opened."""

    @property
    def config(self) -> dict[str, Any]:
        """What the run is."""

    def versions(self) -> list[Version]:
        """All versions, oldest first."""

    def content(self, version: Version) -> Content:
        """Arrays and labels that a version brought."""

    def contents(self, versions: Sequence[Version]) -> list[Content]:
        """The same of several versions, oldest first."""

    def names(self, at: int) -> dict[str, str]:
        """Readable names by label, as of a version."""

    def models(self) -> Mapping[int, int]:
        """The versions whose model is kept, each with the version that has its tensors."""

    def model(self, number: int) -> ModelTensors | None:
        """The model of a version; None if it was not kept."""


def now() -> str:
    """The time, as a version has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def lineage(versions: Sequence[Version], number: int) -> list[Version]:
    """The versions whose changes, in order, make a version; restored ones have none of their own.

    Example:
        >>> made = [Version(1, 0, "learn"), Version(2, 1, "learn"), Version(3, 1, RESTORE)]
        >>> [version.number for version in lineage([*made, Version(4, 3, "learn")], 4)]
        [1, 4]
    """
    found = []
    while number:
        version = versions[number - 1]
        if version.kind != RESTORE:
            found.append(version)
        if version.parent >= number:
            raise ValueError(f"version {number} comes before its own parent")
        number = version.parent
    return found[::-1]


def not_kept(number: int, models: Collection[int]) -> UserError:
    """The error for a version whose model was not kept, which names those that were.

    Example:
        >>> print(not_kept(1, [2, 3]))
        the model of version 1 was not kept; those of 2, 3 were
        >>> print(not_kept(2, [3]))
        the model of version 2 was not kept; that of 3 was
        >>> print(not_kept(1, range(2, 40)))
        the model of version 1 was not kept; those of ..., 35, 36, 37, 38, 39 were
    """
    newest = [str(version) for version in sorted(models)[-_NAMED:]]
    there = ", ".join(["...", *newest] if len(models) > _NAMED else newest)
    kept = f"those of {there} were" if len(models) > 1 else f"that of {there} was"
    return UserError(f"the model of version {number} was not kept; {kept}")


def chosen(at: int | str | None, versions: Sequence[Version], source: HasTags) -> int:
    """The number of the version that is asked for: the newest for None, a number or a tag.

    Tags are read only for a name: a number finds its version where a tag is damaged, too.

    Raises:
        UserError: There is no such version.
    """
    if at is None:
        return len(versions)
    tags: Mapping[str, int] = {}
    if isinstance(at, str) and not at.isdecimal():  # as no tag is
        tags = source.tags()
        if at in tags:
            return tags[at]
    try:
        number = int(at) if isinstance(at, str) else whole_number("version", at, 0)
    except ValueError:
        known = f"; tags: {', '.join(sorted(tags))}" if tags else ""
        raise UserError(f"{shown(str(at))}: neither a version nor a tag{known}") from None
    if not 1 <= number <= len(versions):
        have = f"1 to {len(versions)}" if versions else "none"
        raise UserError(f"there is no version {number}; the run has {have}")
    return number

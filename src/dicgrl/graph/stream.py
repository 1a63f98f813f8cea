"""A stream: an ordered sequence of parts of one graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Self, overload

import numpy.typing as npt
from typing_extensions import TypeVar

from dicgrl.graph.part import Part
from dicgrl.graph.vocabulary import Vocabulary

PartT_co = TypeVar("PartT_co", bound=Part, covariant=True, default=Part)

#: Statistics as plain numbers, ready for JSON.
Counts = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Stream(ABC, Generic[PartT_co]):
    """A graph that arrives in parts.

    Attributes:
        task: Name of what it is for.
        name: What the stream is called in results.
        parts: The parts, in order of arrival.
        names: Readable names of labels (such as Freebase ids), where there are any.
    """

    task: ClassVar[str]

    name: str
    parts: tuple[PartT_co, ...]
    names: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[PartT_co]:
        return iter(self.parts)

    @overload
    def __getitem__(self, index: int) -> PartT_co: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> PartT_co | Self:
        if not isinstance(index, slice):
            return self.parts[index]
        start, _, step = index.indices(len(self.parts))
        if start != 0 or step != 1:
            raise ValueError(
                "a stream can be cut at its end (stream[:n]) only: later parts need earlier ones"
            )
        return replace(self, parts=self.parts[index])

    def vocabularies(self) -> dict[str, Vocabulary]:
        """All labels of the stream, by the names that parts give them."""
        first = self.parts[0]
        return {name: getattr(first, name) for name in first.vocabularies}

    def without_test(self) -> Self:
        """The stream with empty test sets."""
        # No rows of the validation set have the right shape.
        parts = (replace(part, test=part.valid[:0]) for part in self.parts)  # type: ignore[call-arg]
        return replace(self, parts=tuple(parts))

    def taught_tests(self) -> tuple[int, int]:
        """How many test facts are also training facts of some part, and how many there are."""
        return 0, sum(len(part.test) for part in self.parts)

    @abstractmethod
    def describe(self) -> Counts:
        """Statistics as plain numbers, ready for JSON: `name`, `task`, and `parts`, one by one."""

    @abstractmethod
    def merged(self) -> Self:
        """The same data in one part, for learning everything at once."""

    @abstractmethod
    def split(
        self,
        by: str,
        ratios: Sequence[float] | None = None,
        *,
        parts: int | None = None,
        first: float | None = None,
        times: npt.ArrayLike | None = None,
        cuts: Sequence[object] | None = None,
        valid: float = 0.0,
        test: float = 0.0,
        seed: int = 0,
    ) -> Self:
        """Make a stream of several parts out of a static graph (all parts of this one merged).

        Args:
            by: A way to order what arrives; the kinds of data have different ones.
            ratios: Share of each part; they sum to 1. Without them `parts` and `first` say it.
            parts: How many parts, the first included; equal ones unless there is a `first`.
            first: Share of the first part; the others are equal. With none of the three there are
                five parts, the first of 80 %.
            times: For a division by time, one value for each thing that arrives.
            cuts: For a division by time: when parts begin, all but the first.
            valid: Share of what each part learns from to hold out for validation.
            test: Share of what each part learns from to hold out for testing.
            seed: Seed of every random choice.
        """

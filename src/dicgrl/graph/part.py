"""The base class of parts: what arrives at one time, with its train, valid and test sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy.typing as npt

from dicgrl.graph.vocabulary import Vocabulary

if TYPE_CHECKING:
    from dicgrl.graph.arrays import IntArray

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, slots=True, eq=False)
class Part(ABC):
    """What all kinds of parts have in common.

    A kind of data derives a frozen dataclass with the fields `index`, `train`, `valid` and `test`;
    for each name in `vocabularies` a field of that name (a `Vocabulary`) and one called
    `new_<name>` (the range of ids that arrive with the part); and one for each name in
    `array_names`.

    Attributes:
        vocabularies: Names of the fields that hold labels, such as entities and relations.
        array_names: Names of the fields that hold arrays, in the order in which they are stored.
        index: The part's position in its stream.
        train: What to learn from.
        valid: What to select a model with.
        test: What to measure with.

    Example:
        >>> from dicgrl.graph import KnowledgeStream
        >>> part = KnowledgeStream.from_labels("tiny", [[("Alien", "genre", "horror")]])[0]
        >>> part.arrived(), part.facts
        ({'entities': 2, 'relations': 1}, 1)
        >>> part.new_labels()
        {'entities': ['Alien', 'horror'], 'relations': ['genre']}
    """

    vocabularies: ClassVar[tuple[str, ...]]
    array_names: ClassVar[tuple[str, ...]] = SPLITS

    if TYPE_CHECKING:  # fields of the derived class: here they would come first in its order

        @property
        def index(self) -> int:
            """The part's position in its stream."""

        @property
        def train(self) -> IntArray:
            """What to learn from."""

        @property
        def valid(self) -> IntArray:
            """What to select a model with."""

        @property
        def test(self) -> IntArray:
            """What to measure with."""

    @classmethod
    def from_arrays(
        cls,
        index: int,
        vocabularies: Mapping[str, Vocabulary],
        ranges: Mapping[str, range],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Create a part, without checks, from the results of `arrays` and `new_labels`.

        Args:
            index: The part's position in its stream.
            vocabularies: The labels so far, by the names in `vocabularies`.
            ranges: The ids that arrive with the part, by the same names.
            arrays: The arrays, by their names.

        Raises:
            KeyError: A vocabulary or a range is missing.
            TypeError: An array is missing, or is none of this kind of part.
        """
        labels = {name: vocabularies[name] for name in cls.vocabularies}
        new = {f"new_{name}": ranges[name] for name in cls.vocabularies}
        return cls(index=index, **labels, **new, **arrays)  # type: ignore[call-arg]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All arrays of the part by name, in the order in which they are stored."""
        return {name: getattr(self, name) for name in self.array_names}

    def arrived(self) -> dict[str, int]:
        """How many labels are new with this part, by vocabulary."""
        return {name: len(self._new(name)) for name in self.vocabularies}

    def new_labels(self) -> dict[str, list[str]]:
        """The labels that are new with this part, by vocabulary, in the order of their ids.

        What was renamed since has the label that it arrived with.
        """
        return {
            name: getattr(self, name).first_labels(self._new(name)) for name in self.vocabularies
        }

    @property
    def facts(self) -> int:
        """Number of facts of the part, in all of its sets."""
        return sum(len(getattr(self, split)) for split in SPLITS)

    @property
    def self_loops(self) -> int:
        """Number of its facts that no graph takes in, since they are self loops."""
        return 0

    @abstractmethod
    def checked(self) -> Self:
        """The part with arrays of the right types, after checking that it is consistent.

        Whether it fits a graph is for that graph to say.

        Raises:
            UserError: Something does not fit; the message names the array and the row.
        """

    def _new(self, name: str) -> range:
        new: range = getattr(self, f"new_{name}")
        return new

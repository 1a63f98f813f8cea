"""What every graph that grows part by part can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Self

from typing_extensions import TypeVar

from dicgrl.graph.part import Part
from dicgrl.graph.vocabulary import Vocabulary

PartT = TypeVar("PartT", bound=Part, default=Any)


class Graph(ABC, Generic[PartT]):
    """All that is known so far; adding a part costs what the part costs.

    A kind of graph has an attribute for each vocabulary of its parts, of the same name.

    Attributes:
        part_type: What it takes in.

    Example:
        >>> from dicgrl.graph import KnowledgeGraph, KnowledgeStream
        >>> stream = KnowledgeStream.from_labels("tiny", [[("Alien", "genre", "horror")]])
        >>> graph = KnowledgeGraph.for_part(stream[0])
        >>> graph.knows_all_of(stream[0])
        False
        >>> added = graph.add(stream[0])
        >>> graph.knows_all_of(stream[0]), len(graph.vocabularies()["entities"])
        (True, 2)
    """

    part_type: ClassVar[type[Part]]

    @classmethod
    @abstractmethod
    def for_part(cls, part: PartT) -> Self:
        """An empty graph that fits a stream whose first part this is."""

    @abstractmethod
    def add(self, part: PartT) -> PartT:
        """Take in a part.

        Returns:
            The part as this graph sees it: in the graph's own ids, without what it knew before.

        Raises:
            UserError: The part is not consistent or does not fit; nothing has changed then.
        """

    @property
    @abstractmethod
    def num_parts(self) -> int:
        """Parts taken in so far."""

    @abstractmethod
    def knows_all_of(self, part: PartT) -> bool:
        """Whether a part brings nothing that is not here already."""

    def without_known(self, part: PartT) -> tuple[PartT, int, int]:
        """A part without the facts that are known, or held out to measure with.

        A stream decides for itself what it teaches and what it asks; someone who gives facts day by
        day may well give all of them each time.

        Returns:
            The part that is left, and how many facts were left out because they are known, and
            because they are held out. A graph that drops known facts anyway leaves the part as is.
        """
        return part, 0, 0

    def vocabularies(self) -> dict[str, Vocabulary]:
        """The labels so far, by the names that parts give them."""
        return {name: getattr(self, name) for name in self.part_type.vocabularies}

"""What every graph that grows part by part can do, and take back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self, cast

import numpy as np
from typing_extensions import TypeVar

from dicgrl.errors import UserError
from dicgrl.graph.arrays import BoolArray, IntArray
from dicgrl.graph.change import FORGET, LEARN, MERGE, RENAME, REPLACE, RETRAIN, Change
from dicgrl.graph.part import Part
from dicgrl.graph.vocabulary import Vocabulary

PartT = TypeVar("PartT", bound=Part, default=Any)
_NONE: IntArray = np.empty(0, np.int64)


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
    _retired: Mapping[str, IntArray] = MappingProxyType({})

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

    def known_in(self, part: PartT) -> tuple[dict[str, IntArray], int]:
        """What of a part's facts is known here, as `forget` takes it, and how many it has.

        Both count a fact once; ids are ours.
        """
        del part
        raise self._refusal()

    def left_without(self, facts: Mapping[str, IntArray]) -> int:
        """Training examples that `forget` would leave."""
        del facts
        raise self._refusal()

    def forget(self, facts: Mapping[str, IntArray]) -> dict[str, BoolArray]:
        """Let facts leave; the cost is one pass over the graph.

        What nothing is left of is no candidate any more, until a fact about it arrives.

        Args:
            facts: As `known_in` gave them.

        Returns:
            For each split, which of its examples stayed.
        """
        del facts
        raise self._refusal()

    def merge(self, vocabulary: str, pairs: IntArray) -> None:
        """Let all facts of an id be facts of another; the cost is one pass over the graph.

        Args:
            vocabulary: Which of `vocabularies` the ids are of.
            pairs: One after the other, the id that stays and the one whose facts and labels it
                gets, [n, 2].
        """
        del vocabulary, pairs
        raise self._refusal()

    def apply(self, change: Change) -> Change:
        """Let a change happen; gives it in ids of the graph, as it can be applied again.

        Raises:
            UserError: What arrives does not fit; nothing has changed then.
        """
        if change.kind == RENAME:
            vocabulary = self.vocabularies()[change.labels["vocabulary"]]
            for number, new in zip(change.arrays["ids"], change.labels["new"], strict=True):
                vocabulary.rename(int(number), new)
        elif change.kind == MERGE:
            self.merge(change.labels["vocabulary"], change.arrays["ids"])
        elif change.kind in (FORGET, REPLACE):
            if change.part is not None:
                self.check(cast("PartT", change.part))
            self.forget(change.arrays)
        elif change.kind not in (LEARN, RETRAIN):
            raise self._refusal()
        if change.part is None:
            return change
        return replace(change, part=self.add(cast("PartT", change.part)))

    def replay(self, changes: Iterable[Change]) -> list[Change]:
        """Apply changes as `apply` gave them, in their order, to an empty graph.

        What they leave is put together first and indexed once, where a kind of graph can do that.
        """
        return [self.apply(change) for change in changes]

    def check(self, part: PartT) -> PartT:
        """The part, checked; one that `add` would refuse is refused.

        Raises:
            UserError: It does not fit.
        """
        return part.checked()

    def retired(self, vocabulary: str) -> IntArray:
        """Ids that nothing is known of any more, rising: no candidates for answers."""
        return self._retired.get(vocabulary, _NONE)

    def _retire(self, vocabulary: str, ids: IntArray) -> None:
        if len(ids):
            now = np.union1d(self.retired(vocabulary), ids)
            self._retired = {**self._retired, vocabulary: now}

    def _revive(self, vocabulary: str, ids: IntArray) -> None:
        if len(self.retired(vocabulary)):
            now = np.setdiff1d(self.retired(vocabulary), ids)
            self._retired = {**self._retired, vocabulary: now}

    def _refusal(self) -> UserError:
        return UserError(f"a {type(self).__name__} only grows: it takes no fact back")

    def vocabularies(self) -> dict[str, Vocabulary]:
        """The labels so far, by the names that parts give them."""
        return {name: getattr(self, name) for name in self.part_type.vocabularies}

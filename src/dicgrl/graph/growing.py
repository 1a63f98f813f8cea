"""The base class of graphs, which grow part by part, and from which facts can be taken back."""

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
    """Everything known so far. The cost of adding a part depends on the part only.

    A subclass has an attribute for each vocabulary of its parts, with the same name.

    Attributes:
        part_type: The type of its parts.

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
        """An empty graph for a stream with this first part."""

    @abstractmethod
    def add(self, part: PartT) -> PartT:
        """Take in a part.

        Returns:
            The part in ids of the graph, without what was known before.

        Raises:
            UserError: The part is not consistent or does not fit. Nothing has changed then.
        """

    @property
    @abstractmethod
    def num_parts(self) -> int:
        """Number of parts taken in so far."""

    @abstractmethod
    def knows_all_of(self, part: PartT) -> bool:
        """Whether a part has nothing that is not known already."""

    def without_known(self, part: PartT) -> tuple[PartT, int, int]:
        """A part without facts that are known, or held out for validation or testing.

        For facts given day by day, as someone may give all of them each time. A stream decides for
        itself what is learned and what is tested.

        Returns:
            The rest of the part, and how many facts were left out because they are known, and
            because they are held out. A graph that drops known facts anyway keeps the part as it
            is.
        """
        return part, 0, 0

    def known_in(self, part: PartT) -> tuple[dict[str, IntArray], int]:
        """The known facts of a part, for `forget`, and how many facts it has.

        Both count a fact once. Ids are those of the graph.
        """
        del part
        raise self._refusal()

    def left_without(self, facts: Mapping[str, IntArray]) -> int:
        """Number of training examples that would be left after `forget`."""
        del facts
        raise self._refusal()

    def forget(self, facts: Mapping[str, IntArray]) -> dict[str, BoolArray]:
        """Remove facts; the cost is one pass over the graph.

        An entity without any facts is no longer a candidate, until a fact about it arrives.

        Args:
            facts: The result of `known_in`.

        Returns:
            For each split, which of its examples stayed.
        """
        del facts
        raise self._refusal()

    def merge(self, vocabulary: str, pairs: IntArray) -> None:
        """Move all facts of an id to another; the cost is one pass over the graph.

        Args:
            vocabulary: Name of the vocabulary of the ids.
            pairs: The id that stays, and the one whose facts and labels it gets, [n, 2]; processed
                in order.
        """
        del vocabulary, pairs
        raise self._refusal()

    def apply(self, change: Change) -> Change:
        """Apply a change; returns it in ids of the graph, so that it can be applied again.

        Raises:
            UserError: What arrives does not fit. Nothing has changed then.
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
        """Apply changes, as returned by `apply`, in order to an empty graph.

        If the kind of graph supports it, the result is collected first and indexed only once.
        """
        return [self.apply(change) for change in changes]

    def shared(self, change: Change) -> Change:
        """A change that keeps no old arrays of the graph alive.

        Where its part has the rows that the graph still has, it shares them.
        """
        return change

    def check(self, part: PartT) -> PartT:
        """Check a part, and refuse one that `add` would refuse.

        Raises:
            UserError: It does not fit.
        """
        return part.checked()

    def retired(self, vocabulary: str) -> IntArray:
        """Sorted ids without any facts left, which are not candidates for answers."""
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
        """The vocabularies, by the names that parts use."""
        return {name: getattr(self, name) for name in self.part_type.vocabularies}

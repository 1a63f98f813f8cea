"""A growing multimap by triples, which can also be searched by question."""

from __future__ import annotations

from copy import copy

from dicgrl.graph.arrays import BoolArray, IntArray, KeyArray
from dicgrl.graph.index import SegmentIndex
from dicgrl.graph.knowledge.keys import (
    fits,
    keys_or_none,
    triple_keys,
    triples_of_questions,
    widened,
)


class TripleIndex:
    """Whole numbers by triples. The cost of appending depends on what is appended.

    Keys are single numbers until a triple arrives that needs a pair; then all become pairs, in one
    pass.

    Example:
        >>> import numpy as np
        >>> index = TripleIndex()
        >>> index.add(np.array([[0, 0, 1]]), np.array([7]))
        >>> index.add(np.array([[1 << 30, 0, 1]]), np.array([8]))
        >>> index.lookup(np.array([[1 << 30, 0, 1], [0, 0, 1], [0, 0, 2]]))[1].tolist()
        [8, 7]
    """

    def __init__(self) -> None:
        self._index, self._wide = SegmentIndex(), False

    def fork(self) -> TripleIndex:
        """A copy that can be extended independently."""
        made = copy(self)
        made._index = self._index.fork()
        return made

    def add(self, triples: IntArray, values: IntArray) -> None:
        """Append entries; equal triples keep their order of arrival."""
        if not self._wide and not fits(triples):
            self._index.rekey(widened)
            self._wide = True
        self._index.add(triple_keys(triples, wide=self._wide), values)

    def renumber(self, numbers: IntArray) -> None:
        """Give every value another number; see `SegmentIndex.renumber`."""
        self._index.renumber(numbers)

    def lookup(self, triples: IntArray) -> tuple[IntArray, IntArray]:
        """Positions in `triples` and values, one pair per entry; see `SegmentIndex.lookup`."""
        return self._index.lookup(self._keys(triples))

    def count(self, triples: IntArray) -> IntArray:
        """Number of entries of each triple."""
        return self._index.count(self._keys(triples))

    def contains(self, triples: IntArray) -> BoolArray:
        """Which triples have an entry."""
        return self._index.contains(self._keys(triples))

    def _keys(self, triples: IntArray) -> KeyArray:
        if self._wide or fits(triples):
            return triple_keys(triples, wide=self._wide)
        return keys_or_none(triples)

    @property
    def questions(self) -> Questions:
        """The same entries by (h, r, ?), as sorted triples are sorted by their first two ids."""
        return Questions(self._index, wide=self._wide)

    def __len__(self) -> int:
        return len(self._index)


class Questions:
    """Entries of a multimap by triples, by the keys of their questions (h, r, ?).

    Args:
        index: The multimap.
        wide: Whether its keys are pairs.

    Example:
        >>> import numpy as np
        >>> from dicgrl.graph.knowledge.keys import question_keys
        >>> index = TripleIndex()
        >>> index.add(np.array([[0, 0, 2], [0, 1, 2], [0, 0, 1]]), np.array([0, 1, 2]))
        >>> asked = question_keys(np.array([[0, 0, 0], [0, 1, 0], [2, 0, 0]]), "tail")
        >>> index.questions.count(asked).tolist()
        [2, 1, 0]
    """

    def __init__(self, index: SegmentIndex, *, wide: bool) -> None:
        self._index, self._wide = index, wide

    def lookup(self, questions: IntArray) -> tuple[IntArray, IntArray]:
        """As of the multimap; entries of a question come in the order of their tails."""
        return self._index.lookup(*triples_of_questions(questions, wide=self._wide))

    def count(self, questions: IntArray) -> IntArray:
        """Number of entries of each question."""
        return self._index.count(*triples_of_questions(questions, wide=self._wide))

    def contains(self, questions: IntArray) -> BoolArray:
        """Which of the questions have an entry."""
        return self.count(questions) > 0

"""When and how often triples of a knowledge graph arrived, and their dates."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from dicgrl.graph.arrays import BoolArray, IntArray
from dicgrl.graph.knowledge.facts import DATED, Facts
from dicgrl.graph.knowledge.keys import are_among, triple_keys
from dicgrl.graph.knowledge.part import KnowledgePart
from dicgrl.graph.sorting import is_first
from dicgrl.graph.times import NEVER


class Arrivals(ABC):
    """The part of a knowledge graph that stores arrivals and dates."""

    _facts: Facts

    @abstractmethod
    def contains(self, triples: IntArray) -> BoolArray:
        """Which triples are known training triples."""

    @abstractmethod
    def _ours(self, part: KnowledgePart, triples: IntArray) -> IntArray:
        """Triples of a part in ids of the graph, [n, 3]; -1 for unknown labels."""

    def repeats_in(self, part: KnowledgePart, added: KnowledgePart | None) -> IntArray:
        """Training triples of a part that were known, or occur in it twice, for a `Change`.

        Args:
            part: The part as it was given.
            added: What was new in it, which the graph has taken in.
        """
        rows = self._ours(part, part.train)
        rows = rows[(rows >= 0).all(axis=1)]
        rows = rows[self.contains(rows)]
        if added is None or not len(added.train):
            return rows
        return rows[~(is_first(triple_keys(rows)) & are_among(rows, added.train))]

    def dates_in(self, part: KnowledgePart) -> IntArray:
        """Known training triples with dates from a part, for a `Change`, [n, 4].

        Only dates that are later than the one known for a triple count.
        """
        if not len(part.times):
            return np.empty((0, 4), np.int64)
        rows = np.column_stack([self._ours(part, part.train), part.times])
        rows = rows[(rows[:, :3] >= 0).all(axis=1)]
        rows = rows[self.contains(rows) & (rows[:, 3] > self.dates(rows))]
        rows = rows[np.argsort(-rows[:, 3], kind="stable")]
        return rows[np.sort(np.unique(triple_keys(rows), return_index=True)[1])]

    def date(self, rows: IntArray) -> None:
        """Store dates of known training triples: triples and moments, [n, 4]."""
        self._facts.date(rows)

    def dates(self, triples: IntArray) -> IntArray:
        """The latest known date of each triple.

        Dates are microseconds since 1970; `dicgrl.graph.times` has the value for an unknown date,
        and converts dates to text.

        Example:
            >>> from dicgrl.graph import KnowledgeGraph, KnowledgeStream
            >>> from dicgrl.graph.times import told
            >>> graph = KnowledgeGraph()
            >>> part = KnowledgeStream.from_labels("x", [[("a", "r", "b", "1979-05-25")]])[0]
            >>> added = graph.add(part)
            >>> graph.date(graph.dates_in(part))
            >>> told(graph.dates(np.array([[0, 0, 1]]))[0])
            '1979-05-25'
        """
        return self._facts.dates(triples)

    def period(self) -> tuple[int, int]:
        """The first and the last date of any training triple; equal if there are none."""
        moments = self._facts.rows(DATED)[:, 3]
        return (int(moments.min()), int(moments.max())) if len(moments) else (NEVER, NEVER)

    def repeat(self, triples: IntArray) -> None:
        """Store that training triples arrived again, with the newest part or after it."""
        self._facts.repeat(triples)

    def arrivals(self, triples: IntArray) -> tuple[IntArray, IntArray]:
        """How often each training triple arrived, and the part with which it last did.

        Only repeats that were stored count (`repeat`).

        Example:
            >>> from dicgrl.graph import KnowledgeGraph, KnowledgeStream
            >>> graph = KnowledgeGraph()
            >>> added = graph.add(KnowledgeStream.from_labels("x", [[("a", "r", "b")]])[0])
            >>> graph.repeat(np.array([[0, 0, 1], [0, 0, 1]]))
            >>> graph.arrivals(np.array([[0, 0, 1]]))
            (array([3]), array([0]))
        """
        return self._facts.arrivals(triples)

"""When triples of a knowledge graph arrived, how often, and when they were so."""

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
    """The part of a knowledge graph that counts and dates what arrives."""

    _facts: Facts

    @abstractmethod
    def contains(self, triples: IntArray) -> BoolArray:
        """Which triples are known training triples."""

    @abstractmethod
    def _ours(self, part: KnowledgePart, triples: IntArray) -> IntArray:
        """Triples of a part in our ids, [n, 3]; -1 for labels that are not known here."""

    def repeats_in(self, part: KnowledgePart, added: KnowledgePart | None) -> IntArray:
        """Training triples of a part that were known, or stand in it twice, as `Change` has them.

        Args:
            part: What was given.
            added: What of it was new to the graph, which has taken it in.
        """
        rows = self._ours(part, part.train)
        rows = rows[(rows >= 0).all(axis=1)]
        rows = rows[self.contains(rows)]
        if added is None or not len(added.train):
            return rows
        return rows[~(is_first(triple_keys(rows)) & are_among(rows, added.train))]

    def dates_in(self, part: KnowledgePart) -> IntArray:
        """What a part says of when known training triples were so, as `Change` has it, [n, 4].

        Only what is later than what is known of a triple counts.
        """
        if not len(part.times):
            return np.empty((0, 4), np.int64)
        rows = np.column_stack([self._ours(part, part.train), part.times])
        rows = rows[(rows[:, :3] >= 0).all(axis=1)]
        rows = rows[self.contains(rows) & (rows[:, 3] > self.dates(rows))]
        rows = rows[np.argsort(-rows[:, 3], kind="stable")]
        return rows[np.sort(np.unique(triple_keys(rows), return_index=True)[1])]

    def date(self, rows: IntArray) -> None:
        """Note when known training triples were so: triples and moments, [n, 4]."""
        self._facts.date(rows)

    def dates(self, triples: IntArray) -> IntArray:
        """The latest moment at which each of some triples was so, as far as that is known.

        Moments are microseconds since 1970; `dicgrl.graph.times` has those of which none is known,
        and what they are in words.

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
        """The first and the last moment that is known of a training triple; the same for none."""
        moments = self._facts.rows(DATED)[:, 3]
        return (int(moments.min()), int(moments.max())) if len(moments) else (NEVER, NEVER)

    def repeat(self, triples: IntArray) -> None:
        """Note training triples that arrived again with the newest part, or after it."""
        self._facts.repeat(triples)

    def arrivals(self, triples: IntArray) -> tuple[IntArray, IntArray]:
        """How often each of some training triples arrived, and the part that it last came with.

        Only repeats that were noted count (`repeat`).

        Example:
            >>> from dicgrl.graph import KnowledgeGraph, KnowledgeStream
            >>> graph = KnowledgeGraph()
            >>> added = graph.add(KnowledgeStream.from_labels("x", [[("a", "r", "b")]])[0])
            >>> graph.repeat(np.array([[0, 0, 1], [0, 0, 1]]))
            >>> graph.arrivals(np.array([[0, 0, 1]]))
            (array([3]), array([0]))
        """
        return self._facts.arrivals(triples)

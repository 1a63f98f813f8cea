"""Collects parts of a knowledge graph and gives ids in order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from dicgrl.graph.arrays import IntArray
from dicgrl.graph.coded import Coded, OrderedIds
from dicgrl.graph.knowledge.holdout import hold_out_triples
from dicgrl.graph.knowledge.part import KnowledgePart
from dicgrl.graph.knowledge.triples import TripleIndex
from dicgrl.graph.vocabulary import Vocabulary


class KnowledgeParts:
    """Collects parts of a knowledge graph and gives ids in order of arrival.

    Attributes:
        entities: Labels of all entities so far.
        relations: Labels of all relations so far.
        names: Readable names of labels that came with the triples.
    """

    def __init__(self) -> None:
        self.entities = Vocabulary(kind="entity")
        self.relations = Vocabulary(kind="relation")
        self.names: dict[str, str] = {}
        self._ends, self._kinds = OrderedIds(self.entities), OrderedIds(self.relations)
        self._parts: list[KnowledgePart] = []
        self._indexed = 0  # parts whose triples are in these
        self._taught, self._asked = TripleIndex(), TripleIndex()

    def rows(
        self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]
    ) -> IntArray:
        """Ids of labelled triples, int32 [n, 3]; unseen labels arrive line by line, head first."""
        if isinstance(heads, Coded) and isinstance(relations, Coded) and isinstance(tails, Coded):
            (kinds,) = self._kinds.of(relations)
            head_ids, tail_ids = self._ends.of(heads, tails)
            return _stacked(head_ids, kinds, tail_ids)
        ends = self.entities.add(chain.from_iterable(zip(heads, tails, strict=True)))
        return _stacked(ends[0::2], self.relations.add(relations), ends[1::2])

    def add(
        self,
        train: npt.ArrayLike,
        valid: npt.ArrayLike = (),
        test: npt.ArrayLike = (),
        times: npt.ArrayLike = (),
    ) -> None:
        """Close a part; every label added since the last call arrives with it.

        Args:
            train: Triples to learn from.
            valid: Triples to select a model with.
            test: Triples to measure with.
            times: When each triple of `train` was so; see `KnowledgePart`.

        Raises:
            UserError: A row is not three ids that have labels.
        """
        self._parts.append(self._part(train, valid, test, times))

    def add_held_out(
        self,
        rows: IntArray,
        valid: float,
        test: float,
        generator: np.random.Generator,
        held: Sequence[IntArray] = (),
        times: npt.ArrayLike = (),
    ) -> None:
        """Close a part of which shares are held out for validation and testing.

        What an earlier part has taught is not held out, and what an earlier part has held out is
        not taught: it is left out.

        Args:
            rows: The triples to divide.
            valid: Share of them for validation.
            test: Share of them for testing.
            generator: Makes the choice.
            held: Valid and test triples that the part has already.
            times: When each of the rows was so; those of triples that are held out are not kept.
        """
        to_select, to_measure = held or (rows[:0], rows[:0])
        if not valid and not test:
            self.add(rows, to_select, to_measure, times)
            return
        # Whatever is wrong is found before it is divided.
        given = self._part(rows, to_select, to_measure, times)
        taught, asked = self._earlier()
        left = ~asked.contains(given.train)
        rows, moments = given.train[left], given.times[left] if len(given.times) else given.times
        known = taught.contains(rows)
        learned, selected, measured = hold_out_triples(rows, valid, test, generator, known)
        self.add(
            rows[learned],
            np.concatenate([to_select, rows[selected]]),
            np.concatenate([to_measure, rows[measured]]),
            moments[learned] if len(moments) else moments,
        )

    def _part(
        self,
        train: npt.ArrayLike,
        valid: npt.ArrayLike = (),
        test: npt.ArrayLike = (),
        times: npt.ArrayLike = (),
    ) -> KnowledgePart:
        """The next part, if it is consistent."""
        known_entities = self._parts[-1].num_entities if self._parts else 0
        known_relations = self._parts[-1].num_relations if self._parts else 0
        return KnowledgePart(
            len(self._parts),
            self.entities,
            self.relations,
            range(known_entities, len(self.entities)),
            range(known_relations, len(self.relations)),
            np.asarray(train),
            np.asarray(valid),
            np.asarray(test),
            np.asarray(times),
        ).checked()

    def _earlier(self) -> tuple[TripleIndex, TripleIndex]:
        """Triples that earlier parts teach, and those that they ask about."""
        for part in self._parts[self._indexed :]:
            asked = np.concatenate([part.valid, part.test])
            for index, triples in ((self._taught, part.train), (self._asked, asked)):
                index.add(triples, np.zeros(len(triples), np.int32))
        self._indexed = len(self._parts)
        return self._taught, self._asked

    @property
    def parts(self) -> tuple[KnowledgePart, ...]:
        """All parts so far."""
        return tuple(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def _stacked(*columns: IntArray) -> IntArray:
    return np.stack(columns, axis=1, dtype=np.int32, casting="same_kind")

"""The knowledge graph so far: labels, triples and an index that grow with every part."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from dicgrl.errors import UserError
from dicgrl.graph.arrays import (
    BoolArray,
    GrowingArray,
    IntArray,
    count_in,
    distinct,
    ids_in,
    mentions,
)
from dicgrl.graph.growing import Graph
from dicgrl.graph.index import SegmentIndex
from dicgrl.graph.knowledge.keys import (
    MAX_ENTITIES,
    MAX_RELATIONS,
    question_keys,
    question_of,
    triple_keys,
)
from dicgrl.graph.knowledge.part import KnowledgePart
from dicgrl.graph.part import SPLITS
from dicgrl.graph.vocabulary import Vocabulary

_GLANCE = 64  # triples that are looked at first
_LOOPS = 0.05  # share of self loops that a reflexive relation has more of
_SURE = 1.645  # standard deviations: one-sided, 95 %


class KnowledgeGraph(Graph[KnowledgePart]):
    """All that is known so far; adding a part costs what the part costs.

    The rule for repeats: a training triple is stored once, when it first arrives; the same triple
    again, in its part or a later one, is dropped. Self loops are facts like any other and stay.
    Valid and test triples are kept as given.

    Example:
        >>> from dicgrl.graph import KnowledgeStream
        >>> stream = KnowledgeStream.from_labels(
        ...     "tiny", [[("Alien", "genre", "horror")], [("Aliens", "genre", "horror")]]
        ... )
        >>> graph = KnowledgeGraph()
        >>> for part in stream:
        ...     added = graph.add(part)
        >>> graph.train[graph.triples_of(graph.entities.ids(["horror"]))[1]].tolist()
        [[0, 0, 1], [2, 0, 1]]
    """

    part_type: ClassVar[type[KnowledgePart]] = KnowledgePart

    def __init__(self) -> None:
        self.entities = Vocabulary(kind="entity")
        self.relations = Vocabulary(kind="relation")
        self._rows = {split: GrowingArray((3,), np.dtype(np.int64)) for split in SPLITS}
        self._starts: dict[str, list[int]] = {split: [0] for split in SPLITS}
        self._relation_counts = np.zeros(0, np.int64)
        self._loop_counts = np.zeros(0, np.int64)  # self loops of each relation
        self._by_entity = SegmentIndex()
        self._by_triple = SegmentIndex()
        self._held_out = SegmentIndex()  # valid and test triples, by the same keys
        self._by_question = {"tail": SegmentIndex(), "head": SegmentIndex()}
        self._seen = {"tail": SegmentIndex(), "head": SegmentIndex()}  # entities by relation

    @override
    @classmethod
    def for_part(cls, part: KnowledgePart) -> Self:
        return cls()

    @override
    def add(self, part: KnowledgePart) -> KnowledgePart:
        """Take in a part.

        Returns:
            The part as this graph sees it: in the graph's own ids, without repeated training
            triples. For a graph that has taken in the parts of one stream in order, ids are those
            of the stream.

        Raises:
            UserError: The part is not consistent, or there is no room for it; nothing has changed
                then.
        """
        part = part.checked()
        known_entities, known_relations = len(self.entities), len(self.relations)
        self._check_room(len(part.new_entities), len(part.new_relations))
        given = [part.train, part.valid, part.test]
        every = np.concatenate(given)
        entity = self.entities.adopt(
            part.entities, np.concatenate([ids_in(part.new_entities), every[:, 0], every[:, 2]])
        )
        relation = self.relations.adopt(
            part.relations, np.concatenate([ids_in(part.new_relations), every[:, 1]])
        )
        rows = {
            split: np.stack([entity(r[:, 0]), relation(r[:, 1]), entity(r[:, 2])], axis=1)
            for split, r in zip(SPLITS, given, strict=True)
        }
        rows["train"] = self._unseen(rows["train"])
        self._index(rows["train"])
        held_out = triple_keys(np.concatenate([rows["valid"], rows["test"]]))
        self._held_out.add(held_out, held_out)
        for split in SPLITS:
            self._rows[split].append(rows[split])
            self._starts[split].append(len(self._rows[split]))
        return KnowledgePart(
            self.num_parts - 1,
            self.entities,
            self.relations,
            range(known_entities, len(self.entities)),
            range(known_relations, len(self.relations)),
            **rows,
        )

    def triples_of(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """Training triples that mention the entities, as head or tail.

        Returns:
            Positions in `entities` and rows of `train`, one pair per mention; a self loop counts
            once.
        """
        return self._by_entity.lookup(entities)

    def sample_of(
        self,
        entities: IntArray,
        most: int,
        generator: np.random.Generator,
        among: IntArray | None = None,
    ) -> tuple[IntArray, IntArray]:
        """As `triples_of`, but at most `most` of each entity, drawn evenly among its first."""
        return self._by_entity.sample(entities, most, generator, among)

    def same_questions(self, triples: IntArray) -> IntArray:
        """Training triples that answer a question of the triples: (h, r, ?) or (?, r, t).

        Returns:
            Rows of `train`, each once. The cost follows the answers, not the graph.
        """
        if len(triples) == 0:
            return np.empty(0, np.int64)
        found = [
            index.lookup(distinct(question_keys(triples, side)))[1]
            for side, index in self._by_question.items()
        ]
        return distinct(*found)

    def times_asked(self, triples: IntArray) -> IntArray:
        """How many training triples answer the two questions of each triple, summed over both."""
        asked = np.zeros(len(triples), np.int64)
        for side, index in self._by_question.items():
            asked += index.count(question_keys(triples, side))
        return asked

    def times_answered(self, triples: IntArray, asked: str) -> IntArray:
        """How many training triples have the relation of each triple and the answer at that end."""
        other = "head" if asked == "tail" else "tail"  # whose questions name what is asked for
        return self._by_question[other].count(question_keys(triples, other))

    def is_reflexive(self, relations: IntArray) -> BoolArray:
        """Which relations may hold between an entity and itself.

        A relation is reflexive where the self loops among its training triples are significantly
        more than one in twenty: s > n / 20 + 1.645 sqrt(n / 20 * 19 / 20), a one-sided score test
        at 5 %. A loop among a handful of triples counts, one among hundreds is noise.
        """
        facts, loops = self._relation_counts[relations], self._loop_counts[relations]
        usual = facts * _LOOPS + _SURE * np.sqrt(facts * _LOOPS * (1 - _LOOPS))
        reflexive: BoolArray = loops > usual
        return reflexive

    def seen(self, relation: int, side: str) -> IntArray:
        """Entities that stand at that end of a training triple of the relation, rising.

        The cost follows their number, not that of the triples.
        """
        return np.sort(self._seen[side].lookup(np.array([relation]))[1])

    def may_answer(self, entities: IntArray) -> BoolArray:
        """Which entities may answer a question: all that have arrived so far."""
        return entities < len(self.entities)

    def candidates(self) -> IntArray:
        """All entities that may answer a question, rising."""
        every = ids_in(range(len(self.entities)))
        return every[self.may_answer(every)]

    def degree(self, entities: IntArray) -> IntArray:
        """How many training triples mention each entity."""
        return self._by_entity.count(entities)

    def evidence(self, ids: IntArray, *, relations: bool = False) -> tuple[IntArray, IntArray]:
        """Training triples that mention entities (or relations), and those of the newest part."""
        newest = self.rows("train", self.num_parts - 1)
        if relations:
            every, mentioned = self._relation_counts[ids], newest[:, 1]
        else:
            every, mentioned = self.degree(ids), mentions(newest[:, [0, 2]])
        return every, count_in(np.sort(mentioned), ids)

    def contains(self, triples: IntArray) -> BoolArray:
        """Which triples are known training triples."""
        return self._by_triple.contains(triple_keys(triples))

    def holds_out(self, triples: IntArray) -> BoolArray:
        """Which triples are validation or test triples and no training triples.

        The cost follows the triples asked for, not those that are held out.
        """
        return self._held_out.contains(triple_keys(triples)) & ~self.contains(triples)

    @override
    def without_known(self, part: KnowledgePart) -> tuple[KnowledgePart, int, int]:
        """See `Graph.without_known`; what is learned with the part is nothing to measure with."""
        old = {split: self._old(part, split) for split in SPLITS}
        left = {split: getattr(part, split)[~(k | h)] for split, (k, h) in old.items()}
        known, held_out = (sum(int(rows[i].sum()) for rows in old.values()) for i in (0, 1))
        return replace(part, **left), known, held_out

    @override
    def knows_all_of(self, part: KnowledgePart) -> bool:
        """Whether a part brings no triple that is neither known nor held out already."""
        return all(
            (known | held_out).all()
            for few in (_GLANCE, None)  # most parts bring something new right away
            for known, held_out in (self._old(part, split, few) for split in SPLITS)
        )

    def _old(
        self, part: KnowledgePart, split: str, few: int | None = None
    ) -> tuple[BoolArray, BoolArray]:
        """Which triples of a part (the first few, or all) are known, and which are held out."""
        triples: IntArray = getattr(part, split)[:few]
        entity = self.entities.found(part.entities, triples[:, [0, 2]])
        relation = self.relations.found(part.relations, triples[:, 1])
        rows = np.stack([entity[:, 0], relation, entity[:, 1]], axis=1)
        labelled = (rows >= 0).all(axis=1)  # all three labels are here
        known, held_out = np.zeros_like(labelled), np.zeros_like(labelled)
        known[labelled] = self.contains(rows[labelled])
        held_out[labelled] = self.holds_out(rows[labelled])
        if split != "train":
            known |= np.isin(triple_keys(triples), triple_keys(part.train)) & ~held_out
        return known, held_out

    def rows(self, split: str, first: int = 0, last: int | None = None) -> IntArray:
        """The triples of one split that arrived with parts [first, last)."""
        starts = self._starts[split]
        stop = starts[self.num_parts if last is None else last]
        return self._rows[split].view()[starts[first] : stop]

    @property
    def train(self) -> IntArray:
        """Training triples so far, [n, 3], oldest first."""
        return self._rows["train"].view()

    @property
    def valid(self) -> IntArray:
        """Validation triples so far."""
        return self._rows["valid"].view()

    @property
    def test(self) -> IntArray:
        """Test triples so far."""
        return self._rows["test"].view()

    @property
    @override
    def num_parts(self) -> int:
        return len(self._starts["train"]) - 1

    def _unseen(self, triples: IntArray) -> IntArray:
        keys = triple_keys(triples)
        first = np.zeros(len(keys), dtype=np.bool_)
        first[np.unique(keys, return_index=True)[1]] = True
        return triples[first & ~self._by_triple.contains(keys)]

    def _index(self, triples: IntArray) -> None:
        rows = np.arange(len(self.train), len(self.train) + len(triples))
        self._by_triple.add(triple_keys(triples), rows)
        for side, given in (("tail", "head"), ("head", "tail")):
            index, keys = self._by_question[side], question_keys(triples, side)
            unasked = distinct(keys)
            unasked = unasked[~index.contains(unasked)]  # it is now seen there
            self._seen[given].add(*question_of(unasked))
            index.add(keys, rows)
        not_loop = triples[:, 0] != triples[:, 2]
        self._relation_counts = self._counted(self._relation_counts, triples)
        self._loop_counts = self._counted(self._loop_counts, triples[~not_loop])
        self._by_entity.add(mentions(triples[:, [0, 2]]), np.concatenate([rows, rows[not_loop]]))

    def _counted(self, before: IntArray, triples: IntArray) -> IntArray:
        """Counts by relation, with those of the triples."""
        counts = np.bincount(triples[:, 1], minlength=len(self.relations))
        counts[: len(before)] += before
        return counts

    def _check_room(self, entities: int, relations: int) -> None:
        if len(self.entities) + entities > MAX_ENTITIES:
            raise UserError(f"a graph holds at most {MAX_ENTITIES:,} entities")
        if len(self.relations) + relations > MAX_RELATIONS:
            raise UserError(f"a graph holds at most {MAX_RELATIONS:,} relations")

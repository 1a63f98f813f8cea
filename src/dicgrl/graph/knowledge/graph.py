"""The knowledge graph so far: labels, triples and an index that grow with every part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from typing_extensions import override

from dicgrl.errors import UserError
from dicgrl.graph.arrays import (
    BoolArray,
    IntArray,
    count_in,
    distinct,
    ids_in,
    mentions,
)
from dicgrl.graph.change import MERGE, RENAME, Change
from dicgrl.graph.growing import Graph
from dicgrl.graph.knowledge.arrivals import Arrivals
from dicgrl.graph.knowledge.facts import AGAIN, DATED, Facts
from dicgrl.graph.knowledge.keys import (
    MAX_ENTITIES,
    MAX_RELATIONS,
    MAX_TRIPLES,
    are_among,
    question_keys,
    triple_keys,
)
from dicgrl.graph.knowledge.part import KnowledgePart, translated
from dicgrl.graph.knowledge.replay import Replay
from dicgrl.graph.part import SPLITS, Part
from dicgrl.graph.sorting import is_first
from dicgrl.graph.vocabulary import Vocabulary

_GLANCE = 64  # triples to check first


class KnowledgeGraph(Arrivals, Graph[KnowledgePart]):
    """Everything known so far. The cost of adding a part depends on the part only.

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
        self._facts = Facts()

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
        part = self.check(part)
        known_entities, known_relations = len(self.entities), len(self.relations)
        given = [part.train, part.valid, part.test]
        ends = [r[:, column] for r in given for column in (0, 2)]
        entity = self.entities.adopt(part.entities, ids_in(part.new_entities), *ends)
        kinds = [r[:, 1] for r in given]
        relation = self.relations.adopt(part.relations, ids_in(part.new_relations), *kinds)
        rows = {
            split: translated(r, (entity, relation, entity))
            for split, r in zip(SPLITS, given, strict=True)
        }
        self._facts.append(rows)
        del rows
        newest = self.num_parts - 1
        rows = {split: self.rows(split, newest) for split in SPLITS}  # held once
        self._revive("entities", entity.ours)
        self._revive("relations", relation.ours)
        return KnowledgePart(
            self.num_parts - 1,
            self.entities,
            self.relations,
            range(known_entities, len(self.entities)),
            range(known_relations, len(self.relations)),
            **rows,
        )

    @override
    def check(self, part: KnowledgePart) -> KnowledgePart:
        part = part.checked()
        for ours, theirs, new, most, what in (
            (self.entities, part.entities, part.new_entities, MAX_ENTITIES, "entities"),
            (self.relations, part.relations, part.new_relations, MAX_RELATIONS, "relations"),
        ):
            if len(ours) + len(new) <= most:
                continue
            unknown = ours.found(theirs, ids_in(new)) < 0  # labels new in a part may be known here
            if len(ours) + np.count_nonzero(unknown) > most:
                raise UserError(f"a graph holds at most {most:,} {what}")
        if len(self.train) + len(part.train) > MAX_TRIPLES:
            raise UserError(f"a graph holds at most {MAX_TRIPLES:,} triples to learn from")
        return part

    @override
    def known_in(self, part: KnowledgePart) -> tuple[dict[str, IntArray], int]:
        given = np.concatenate([getattr(part, split) for split in SPLITS])
        given = given[is_first(triple_keys(given))]
        rows = self._ours(part, given)
        rows = rows[(rows >= 0).all(axis=1)]
        known = self._facts.by_triple.contains(rows) | self._facts.held_out.contains(rows)
        # Labels of merged ids have the same id.
        return {"triples": rows[known & is_first(triple_keys(rows))]}, len(given)

    @override
    def left_without(self, facts: Mapping[str, IntArray]) -> int:
        return len(self.train) - int(self.contains(facts["triples"]).sum())

    @override
    def forget(self, facts: Mapping[str, IntArray]) -> dict[str, BoolArray]:
        triples = facts["triples"]
        kept = {
            name: ~are_among(self.rows(name), triples) for name in ("valid", "test", AGAIN, DATED)
        }
        kept["train"] = np.ones(len(self.train), np.bool_)
        kept["train"][self._facts.by_triple.lookup(triples)[1]] = False
        self._facts.keep(kept)
        self._retire_unmentioned(triples)
        return kept

    @override
    def merge(self, vocabulary: str, pairs: IntArray) -> None:
        left = Replay.of(self._facts)
        left.merge(vocabulary, pairs)
        rows, starts = left.settled()
        del left
        self._facts.restore(rows, starts)
        for kept, gone in pairs:
            self.vocabularies()[vocabulary].merge(int(kept), int(gone))
            if gone not in self.retired(vocabulary):  # it had facts, which are now the other's
                self._revive(vocabulary, np.array([kept]))
            self._retire(vocabulary, np.array([gone]))

    @override
    def replay(self, changes: Iterable[Change]) -> list[Change]:
        taken: list[Change] = []
        left, gone = Replay(), []
        for change in changes:
            part = change.part
            if "triples" in change.arrays:
                left.forget(change.arrays["triples"])
            if change.kind == RENAME:
                self.apply(change)
            elif change.kind == MERGE:
                name, pairs = change.labels["vocabulary"], change.arrays["ids"]
                left.merge(name, pairs)
                for kept, other in pairs.tolist():
                    self.vocabularies()[name].merge(kept, other)
                gone.append((name, pairs[:, 1]))
            if part is not None:
                part = self._arrived(part, left.num_parts)
                left.learn(part)
            if AGAIN in change.arrays:
                left.repeat(change.arrays[AGAIN])
            if DATED in change.arrays:
                left.date(change.arrays[DATED])
            taken.append(replace(change, part=part))
        forgotten = left.forgotten
        rows, starts = left.settled()
        del left  # it holds the rows
        self._facts.restore(rows, starts)
        self._retire_unmentioned(forgotten)
        for name, others in gone:
            self._retire(name, others)
        return [self.shared(change) for change in taken]

    @override
    def shared(self, change: Change) -> Change:
        part = change.part
        if not isinstance(part, KnowledgePart) or part.index >= self.num_parts:
            return change
        rows: dict[str, Any] = {}
        for split in SPLITS:
            own, ours = getattr(part, split), self.rows(split, part.index, part.index + 1)
            same = np.array_equal(own, ours)  # none were forgotten since
            rows[split] = ours if same else own if own.base is None else own.copy()
        return replace(change, part=replace(part, **rows))

    @override
    def apply(self, change: Change) -> Change:
        applied = super().apply(change)
        if AGAIN in applied.arrays:
            self._facts.repeat(applied.arrays[AGAIN])
        if DATED in applied.arrays:
            self._facts.date(applied.arrays[DATED])
        return applied

    def _arrived(self, part: Part, index: int) -> KnowledgePart:
        """A stored part, whose ids are those of the graph, with its labels in our vocabularies."""
        new = part.new_labels()
        return KnowledgePart(
            index,
            self.entities,
            self.relations,
            self.entities.append(new["entities"]),
            self.relations.append(new["relations"]),
            part.train,
            part.valid,
            part.test,
        ).checked()

    def _retire_unmentioned(self, triples: IntArray) -> None:
        """Retire what only forgotten triples mentioned, so that it is no longer a candidate."""
        held_out = np.concatenate([self.valid, self.test])
        entities, relations = distinct(triples[:, 0], triples[:, 2]), distinct(triples[:, 1])
        gone = entities[self.degree(entities) == 0]
        self._retire("entities", np.setdiff1d(gone, held_out[:, [0, 2]]))
        gone = relations[self._facts.of_relations(relations) == 0]
        self._retire("relations", np.setdiff1d(gone, held_out[:, 1]))

    def triples_of(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """Training triples that mention the entities, as head or tail.

        Returns:
            Positions in `entities` and rows of `train`, one pair per mention; a self loop counts
            once.
        """
        return self._facts.by_entity.lookup(entities)

    def sample_of(
        self,
        entities: IntArray,
        most: int,
        generator: np.random.Generator,
        among: IntArray | None = None,
    ) -> tuple[IntArray, IntArray]:
        """Like `triples_of`, but at most `most` per entity, drawn among its first ones."""
        return self._facts.by_entity.sample(entities, most, generator, among)

    def same_questions(self, triples: IntArray) -> IntArray:
        """Training triples that answer a question of the triples: (h, r, ?) or (?, r, t).

        Returns:
            Rows of `train`, each once. The cost follows the answers, not the graph.
        """
        found = [
            index.lookup(distinct(question_keys(triples, side)))[1]
            for side, index in self._facts.by_question.items()
        ]
        return distinct(*found)

    def times_asked(self, triples: IntArray) -> IntArray:
        """How many training triples answer the two questions of each triple, summed over both."""
        asked = np.zeros(len(triples), np.int64)
        for side, index in self._facts.by_question.items():
            asked += index.count(question_keys(triples, side))
        return asked

    def times_answered(self, triples: IntArray, asked: str) -> IntArray:
        """How many training triples have the relation and the answer of each triple."""
        other = "head" if asked == "tail" else "tail"  # whose questions name what is asked for
        return self._facts.by_question[other].count(question_keys(triples, other))

    def is_reflexive(self, relations: IntArray) -> BoolArray:
        """Which relations may hold between an entity and itself.

        A relation is reflexive where the self loops among its training triples are significantly
        more than one in twenty: s > n / 20 + 1.645 sqrt(n / 20 * 19 / 20), a one-sided score test
        at 5 %. A loop among a handful of triples counts, one among hundreds is noise.
        """
        return self._facts.reflexive(relations)

    def seen(self, relation: int, side: str) -> IntArray:
        """Sorted entities at one end of training triples of a relation.

        The cost follows their number, not that of the triples.
        """
        return np.sort(self._facts.seen[side].lookup(np.array([relation]))[1])

    def may_answer(self, entities: IntArray) -> BoolArray:
        """Which entities may answer a question: all that have arrived and are not retired."""
        return (entities < len(self.entities)) & ~np.isin(entities, self.retired("entities"))

    def candidates(self) -> IntArray:
        """All entities that may answer a question, sorted."""
        every = ids_in(range(len(self.entities)))
        return every[self.may_answer(every)]

    def degree(self, entities: IntArray) -> IntArray:
        """How many training triples mention each entity."""
        return self._facts.by_entity.count(entities)

    def evidence(self, ids: IntArray, *, relations: bool = False) -> tuple[IntArray, IntArray]:
        """Training triples that mention entities (or relations), and those of the newest part."""
        newest = self.rows("train", self.num_parts - 1)
        if relations:
            every, mentioned = self._facts.of_relations(ids), newest[:, 1]
        else:
            every, mentioned = self.degree(ids), mentions(newest[:, [0, 2]])
        return every, count_in(np.sort(mentioned), ids)

    @override
    def contains(self, triples: IntArray) -> BoolArray:
        """Which triples are known training triples."""
        return self._facts.by_triple.contains(triples)

    def holds_out(self, triples: IntArray) -> BoolArray:
        """Which triples are validation or test triples, but not training triples.

        The cost follows the triples asked for, not those that are held out.
        """
        return self._facts.held_out.contains(triples) & ~self.contains(triples)

    @override
    def without_known(self, part: KnowledgePart) -> tuple[KnowledgePart, int, int]:
        """See `Graph.without_known`; the part's own training triples leave its test sets, too."""
        old = {split: self._old(part, split) for split in SPLITS}
        stay = {split: ~(known | held_out) for split, (known, held_out) in old.items()}
        left = {split: getattr(part, split)[stay[split]] for split in SPLITS}
        left["times"] = part.times[stay["train"]] if len(part.times) else part.times
        known, held_out = (sum(int(rows[i].sum()) for rows in old.values()) for i in (0, 1))
        return replace(part, **left), known, held_out

    @override
    def knows_all_of(self, part: KnowledgePart) -> bool:
        """Whether a part brings no triple that is neither known nor held out already."""
        return all(
            (known | held_out).all()
            for few in (_GLANCE, None)  # most parts begin with something new
            for known, held_out in (self._old(part, split, few) for split in SPLITS)
        )

    def _old(
        self, part: KnowledgePart, split: str, few: int | None = None
    ) -> tuple[BoolArray, BoolArray]:
        """Which triples of a part (the first few, or all) are known, and which are held out."""
        triples: IntArray = getattr(part, split)[:few]
        rows = self._ours(part, triples)
        labelled = (rows >= 0).all(axis=1)  # all three labels are known
        known, held_out = np.zeros_like(labelled), np.zeros_like(labelled)
        known[labelled] = self.contains(rows[labelled])
        held_out[labelled] = self.holds_out(rows[labelled])
        if split != "train":
            known |= are_among(triples, part.train) & ~held_out
        return known, held_out

    @override
    def _ours(self, part: KnowledgePart, triples: IntArray) -> IntArray:
        """Triples of a part in ids of the graph, [n, 3]; -1 for unknown labels."""
        entity = self.entities.found(part.entities, triples[:, [0, 2]])
        relation = self.relations.found(part.relations, triples[:, 1])
        return np.stack([entity[:, 0], relation, entity[:, 1]], axis=1)

    def rows(self, split: str, first: int = 0, last: int | None = None) -> IntArray:
        """The triples of one split that arrived with parts [first, last)."""
        return self._facts.rows(split, first, last)

    @property
    def train(self) -> IntArray:
        """Training triples so far, [n, 3], oldest first."""
        return self._facts.rows("train")

    @property
    def valid(self) -> IntArray:
        """Validation triples so far."""
        return self._facts.rows("valid")

    @property
    def test(self) -> IntArray:
        """Test triples so far."""
        return self._facts.rows("test")

    @property
    @override
    def num_parts(self) -> int:
        return self._facts.num_parts

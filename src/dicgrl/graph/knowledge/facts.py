"""Triples of all parts and splits, and the index over those to learn from.

Appending costs what is appended. Taking facts back is rare: it costs one pass over all that is
there, and rows stay dense, so that draws by position and the ranges of parts stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dicgrl.graph.arrays import (
    BoolArray,
    GrowingArray,
    IntArray,
    distinct,
    in_order_of_parts,
    mentions,
)
from dicgrl.graph.index import SegmentIndex
from dicgrl.graph.knowledge.keys import question_keys, question_of, triple_keys
from dicgrl.graph.part import SPLITS

_LOOPS = 0.05  # share of self loops that a reflexive relation has more of
_SURE = 1.645  # standard deviations: one-sided, 95 %
AGAIN = "again"  # training triples each time that they arrive once more
SETS = (*SPLITS, AGAIN)
Rows = Mapping[str, IntArray]
"""Triples [n, 3] of each set."""


class Facts:
    """Triples by split and part; training triples are indexed, the others can be looked up.

    Attributes:
        by_entity: Training triples that mention an entity; a self loop counts once.
        by_triple: Training triples by their keys.
        by_question: Training triples by (h, r, ?) and by (?, r, t).
        held_out: Valid and test triples, by the same keys.
        by_repeat: Triples that arrived again, by the same keys.
        seen: Entities that stand at the head, or the tail, of training triples, by relation.
    """

    def __init__(self) -> None:
        self._rows = {name: GrowingArray((3,), np.dtype(np.int64)) for name in SETS}
        self._starts: dict[str, list[int]] = {name: [0] for name in SETS}
        self._clear()

    def _clear(self) -> None:
        self.by_entity = SegmentIndex()
        self.by_triple = SegmentIndex()
        self.by_question = {"tail": SegmentIndex(), "head": SegmentIndex()}
        self.held_out = SegmentIndex()
        self.by_repeat = SegmentIndex()
        self.seen = {"tail": SegmentIndex(), "head": SegmentIndex()}
        self._relation_counts = np.zeros(0, np.int64)
        self._loop_counts = np.zeros(0, np.int64)  # self loops of each relation

    @property
    def num_parts(self) -> int:
        """Parts so far."""
        return len(self._starts["train"]) - 1

    def rows(self, split: str, first: int = 0, last: int | None = None) -> IntArray:
        """The triples of one set that arrived with parts [first, last)."""
        starts = self._starts[split]
        stop = starts[self.num_parts if last is None else last]
        return self._rows[split].view()[starts[first] : stop]

    def of_relations(self, ids: IntArray) -> IntArray:
        """How many training triples each relation has."""
        return _of(self._relation_counts, ids)

    def reflexive(self, ids: IntArray) -> BoolArray:
        """Which relations have significantly many self loops; see `KnowledgeGraph.is_reflexive`."""
        facts, loops = _of(self._relation_counts, ids), _of(self._loop_counts, ids)
        usual = facts * _LOOPS + _SURE * np.sqrt(facts * _LOOPS * (1 - _LOOPS))
        found: BoolArray = loops > usual
        return found

    def append(self, rows: Rows) -> None:
        """Take in the triples of the next part; those of `train` are not known."""
        self._index(rows["train"], len(self._rows["train"]))
        self._hold_out(rows)
        for split in SPLITS:
            self._rows[split].append(rows[split])
        for name in SETS:
            self._starts[name].append(len(self._rows[name]))

    def repeat(self, triples: IntArray) -> None:
        """Note training triples that arrived again with the newest part, or after it."""
        first = len(self._rows[AGAIN])
        self.by_repeat.add(triple_keys(triples), np.arange(first, first + len(triples)))
        self._rows[AGAIN].append(triples)
        self._starts[AGAIN][-1] += len(triples)

    def arrivals(self, triples: IntArray) -> tuple[IntArray, IntArray]:
        """How often each of some training triples arrived, and the part that it last came with."""
        keys = triple_keys(triples)
        last = self._part_of("train", self.by_triple.lookup(keys)[1])
        query, row = self.by_repeat.lookup(keys)
        np.maximum.at(last, query, self._part_of(AGAIN, row))
        return 1 + self.by_repeat.count(keys), last

    def _part_of(self, name: str, rows: IntArray) -> IntArray:
        starts = np.array(self._starts[name])
        return np.searchsorted(starts, rows, side="right").astype(np.int64) - 1

    def keep(self, kept: Mapping[str, BoolArray]) -> None:
        """Drop the triples where `kept` is False, in one pass over those there are.

        Args:
            kept: For each row of each set whether it stays.
        """
        removed = self.rows("train")[~kept["train"]]
        if len(removed):
            numbers = np.where(kept["train"], np.cumsum(kept["train"]) - 1, -1)
            for index in (self.by_entity, self.by_triple, *self.by_question.values()):
                index.renumber(numbers)
            self._count(removed, -1)
            self._unsee(removed)
        if not kept[AGAIN].all():
            self.by_repeat.renumber(np.where(kept[AGAIN], np.cumsum(kept[AGAIN]) - 1, -1))
        for name in SETS:
            before = np.concatenate([[0], np.cumsum(kept[name])])
            self._starts[name] = before[self._starts[name]].tolist()
            self._rows[name].keep(kept[name])
        if not (kept["valid"].all() and kept["test"].all()):
            self.held_out = SegmentIndex()
            self._hold_out({split: self.rows(split) for split in SPLITS})

    def restore(self, rows: Rows, starts: Mapping[str, Sequence[int]]) -> None:
        """Have other triples from now on, indexed at once.

        Args:
            rows: All triples of each set, oldest first; those of `train` once each.
            starts: Where each part begins in them, and the end of the last.
        """
        self._clear()
        for name in SETS:
            self._rows[name].replace(rows[name], copy=False)
            self._starts[name] = list(starts[name])
        self._index(self.rows("train"), 0, np.diff(self._starts["train"]))
        self._hold_out(rows)
        self.by_repeat.add(triple_keys(rows[AGAIN]), np.arange(len(rows[AGAIN])))

    def starts(self) -> dict[str, list[int]]:
        """Where each part begins in the rows of each set, and the end of the last."""
        return {name: list(starts) for name, starts in self._starts.items()}

    def _index(self, triples: IntArray, first: int, sizes: IntArray | None = None) -> None:
        """Index triples of one part, or of parts of these sizes as if they came one by one."""
        rows = np.arange(first, first + len(triples))
        self.by_triple.add(triple_keys(triples), rows)
        for side, given in (("tail", "head"), ("head", "tail")):
            index, keys = self.by_question[side], question_keys(triples, side)
            unasked = distinct(keys)
            unasked = unasked[~index.contains(unasked)]  # it is now seen there
            self.seen[given].add(*question_of(unasked))
            index.add(keys, rows)
        self._count(triples, 1)
        not_loop = triples[:, 0] != triples[:, 2]
        ends, rows = mentions(triples[:, [0, 2]]), np.concatenate([rows, rows[not_loop]])
        order = slice(None) if sizes is None else in_order_of_parts(rows - first, sizes)
        self.by_entity.add(ends[order], rows[order])

    def _count(self, triples: IntArray, sign: int) -> None:
        """Add triples to the counts by relation, or take them off."""
        loops = triples[triples[:, 0] == triples[:, 2]]
        self._relation_counts = _counted(self._relation_counts, triples[:, 1], sign)
        self._loop_counts = _counted(self._loop_counts, loops[:, 1], sign)

    def _unsee(self, removed: IntArray) -> None:
        """Drop what no triple shows any more at an end of a relation; `by_question` tells."""
        for side, given in (("tail", "head"), ("head", "tail")):
            keys = distinct(question_keys(removed, side))
            relation, entity = question_of(keys[~self.by_question[side].contains(keys)])
            if len(relation):
                self.seen[given].drop(relation, entity)

    def _hold_out(self, rows: Rows) -> None:
        keys = triple_keys(np.concatenate([rows["valid"], rows["test"]]))
        self.held_out.add(keys, keys)


def _of(counts: IntArray, ids: IntArray) -> IntArray:
    """The counts of relations, 0 of those that have none yet."""
    found = np.zeros(len(ids), np.int64)
    counted = ids < len(counts)
    found[counted] = counts[ids[counted]]
    return found


def _counted(before: IntArray, relations: IntArray, sign: int) -> IntArray:
    """Counts by relation with those of some triples, or without them."""
    counts = sign * np.bincount(relations, minlength=len(before))
    counts[: len(before)] += before
    return counts

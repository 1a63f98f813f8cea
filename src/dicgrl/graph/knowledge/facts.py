"""Triples of all parts and splits, and an index over training triples.

Appending costs what is appended. Taking facts back is rare: it costs one pass over all that is
there, and rows stay dense, so that draws by position and the ranges of parts stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from itertools import pairwise
from typing import Any

import numpy as np

from dicgrl.graph.arrays import BoolArray, GrowingArray, IntArray, distinct, ids_in
from dicgrl.graph.index import SegmentIndex
from dicgrl.graph.knowledge.keys import question_keys, question_of, triple_keys
from dicgrl.graph.knowledge.triples import Questions, TripleIndex
from dicgrl.graph.part import SPLITS
from dicgrl.graph.sorting import is_first
from dicgrl.graph.times import NEVER

_LOOPS = 0.05  # a reflexive relation has a larger share of self loops than this
_SURE = 1.645  # standard deviations: one-sided, 95 %
AGAIN = "again"  # training triples each time that they arrive once more
DATED = "dated"  # training triples with a moment at which they were so, in a fourth column
SETS = (*SPLITS, AGAIN, DATED)
WIDTHS = {name: 4 if name == DATED else 3 for name in SETS}
Rows = Mapping[str, IntArray]
"""Triples [n, 3] of each set; dated ones have a fourth column."""


class Facts:
    """Triples by split and part; training triples are indexed, the others can be looked up.

    Attributes:
        by_entity: Training triples that mention an entity; a self loop counts once.
        by_triple: Training triples.
        by_tail: Training triples by (?, r, t).
        held_out: Valid and test triples.
        by_repeat: Triples that arrived again.
        by_date: Triples that are dated.
        seen: Entities that stand at the head, or the tail, of training triples, by relation.
    """

    def __init__(self) -> None:
        self._rows = {name: GrowingArray((WIDTHS[name],), _type_of(name)) for name in SETS}
        self._starts: dict[str, list[int]] = {name: [0] for name in SETS}
        self._clear()

    def _clear(self) -> None:
        self.by_entity = SegmentIndex()
        self.by_triple = TripleIndex()
        self.by_tail = SegmentIndex()
        self.held_out = TripleIndex()
        self.by_repeat = TripleIndex()
        self.by_date = TripleIndex()
        self.seen = {"tail": SegmentIndex(), "head": SegmentIndex()}
        self._relation_counts = np.zeros(0, np.int64)
        self._loop_counts = np.zeros(0, np.int64)  # self loops of each relation

    @property
    def by_question(self) -> dict[str, Questions | SegmentIndex]:
        """Training triples by question: (h, r, ?) for tails, and (?, r, t) for heads."""
        return {"tail": self.by_triple.questions, "head": self.by_tail}

    def fork(self) -> Facts:
        """A copy that can be changed; while it is in use, the original must not change."""
        made = copy(self)
        for name, value in vars(self).items():
            setattr(made, name, _forked(value))
        return made

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
        """Number of training triples of each relation."""
        return _of(self._relation_counts, ids)

    def reflexive(self, ids: IntArray) -> BoolArray:
        """Which relations have significantly many self loops; see `KnowledgeGraph.is_reflexive`."""
        facts, loops = _of(self._relation_counts, ids), _of(self._loop_counts, ids)
        usual = facts * _LOOPS + _SURE * np.sqrt(facts * _LOOPS * (1 - _LOOPS))
        found: BoolArray = loops > usual
        return found

    def append(self, rows: Rows) -> None:
        """Take in the triples of the next part; those of `train` that are known are left out.

        Args:
            rows: Of each split.
        """
        first = len(self._rows["train"])
        unseen = is_first(triple_keys(rows["train"])) & ~self.by_triple.contains(rows["train"])
        for split in SPLITS:
            self._rows[split].append(rows[split], unseen if split == "train" else None)
        for name in SETS:
            self._starts[name].append(len(self._rows[name]))
        new = self._rows["train"].view()[first:]
        self._index(new, first, (0, len(new)))
        self._hold_out(rows)

    def repeat(self, triples: IntArray) -> None:
        """Store that training triples arrived again, with the newest part or after it."""
        self._note(AGAIN, self.by_repeat, triples)

    def date(self, rows: IntArray) -> None:
        """Store dates of training triples: triples and moments, [n, 4]."""
        self._note(DATED, self.by_date, rows)

    def _note(self, name: str, index: TripleIndex, rows: IntArray) -> None:
        first = len(self._rows[name])
        index.add(rows, np.arange(first, first + len(rows)))
        self._rows[name].append(rows)
        self._starts[name][-1] += len(rows)

    def dates(self, triples: IntArray) -> IntArray:
        """The latest known date of each triple; `NEVER` if none is known."""
        latest = np.full(len(triples), NEVER)
        query, row = self.by_date.lookup(triples)
        np.maximum.at(latest, query, self.rows(DATED)[row, 3])
        return latest

    def arrivals(self, triples: IntArray) -> tuple[IntArray, IntArray]:
        """How often each training triple arrived, and the part with which it last did."""
        last = self._part_of("train", self.by_triple.lookup(triples)[1])
        query, row = self.by_repeat.lookup(triples)
        np.maximum.at(last, query, self._part_of(AGAIN, row))
        return 1 + self.by_repeat.count(triples), last

    def _part_of(self, name: str, rows: IntArray) -> IntArray:
        starts = np.array(self._starts[name])
        return np.searchsorted(starts, rows, side="right").astype(np.int64) - 1

    def keep(self, kept: Mapping[str, BoolArray]) -> None:
        """Drop the triples where `kept` is False, in one pass over all triples.

        Args:
            kept: For each row of each set whether it stays.
        """
        removed = self.rows("train")[~kept["train"]]
        if len(removed):
            numbers = np.where(kept["train"], np.cumsum(kept["train"]) - 1, -1)
            for index in (self.by_entity, self.by_triple, self.by_tail):
                index.renumber(numbers)
            self._count(removed, -1)
            self._unsee(removed)
        for name, index in ((AGAIN, self.by_repeat), (DATED, self.by_date)):
            if not kept[name].all():
                index.renumber(np.where(kept[name], np.cumsum(kept[name]) - 1, -1))
        for name in SETS:
            before = np.concatenate([[0], np.cumsum(kept[name])])
            self._starts[name] = before[self._starts[name]].tolist()
            self._rows[name].keep(kept[name])
        if not (kept["valid"].all() and kept["test"].all()):
            self.held_out = TripleIndex()
            self._hold_out({split: self.rows(split) for split in SPLITS})

    def restore(self, rows: dict[str, IntArray], starts: Mapping[str, Sequence[int]]) -> None:
        """Replace all triples by others, which are indexed at once.

        Args:
            rows: All triples of each set, oldest first; those of `train` once each. They are taken
                out of it.
            starts: Where each part begins in them, and the end of the last.
        """
        self._clear()
        for name in SETS:
            self._rows[name].replace(rows.pop(name))
            self._starts[name] = list(starts[name])
        self._index(self.rows("train"), 0, self._starts["train"])
        self._hold_out({split: self.rows(split) for split in SPLITS})
        for name, index in ((AGAIN, self.by_repeat), (DATED, self.by_date)):
            index.add(self.rows(name), np.arange(len(self.rows(name))))

    def starts(self) -> dict[str, list[int]]:
        """The first row of each part in each set, and the end of the last part."""
        return {name: list(starts) for name, starts in self._starts.items()}

    def _index(self, triples: IntArray, first: int, bounds: Sequence[int]) -> None:
        """Index triples from a row on, as if those between two bounds came with a part each."""
        if not len(triples):
            return
        self.by_entity.add(*_mentions(triples, first, bounds))  # what needs the most room first
        rows = ids_in(range(first, first + len(triples)), np.int32)
        for side, given in (("tail", "head"), ("head", "tail")):
            keys = question_keys(triples, side)
            unasked = distinct(keys)
            unasked = unasked[~self.by_question[side].contains(unasked)]  # it is now seen there
            if side == "head":
                self.by_tail.add(keys, rows)
            del keys
            self.seen[given].add(*question_of(unasked))
        self.by_triple.add(triples, rows)
        self._count(triples, 1)

    def _count(self, triples: IntArray, sign: int) -> None:
        """Add triples to the counts by relation, or subtract them."""
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
        asked = np.concatenate([rows["valid"], rows["test"]])
        self.held_out.add(asked, np.zeros(len(asked), np.int32))


def _type_of(name: str) -> np.dtype[Any]:
    """The type of the rows of a set: moments need 64 bits, ids do not."""
    return np.dtype(np.int64 if name == DATED else np.int32)


def _mentions(triples: IntArray, first: int, bounds: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Both ends of triples, a self loop once, and their rows: part by part, heads before tails."""
    not_loop = np.flatnonzero(triples[:, 0] != triples[:, 2])
    ends, rows = [], []
    for begin, end in pairwise(bounds):
        others = not_loop[slice(*np.searchsorted(not_loop, (begin, end)))].astype(np.int32)
        ends += [triples[begin:end, 0], triples[others, 2]]
        rows += [ids_in(range(first + begin, first + end), np.int32), others + np.int32(first)]
    return np.concatenate(ends), np.concatenate(rows)


def _forked(value: Any) -> Any:
    """Copy, but share what is expensive to copy."""
    if isinstance(value, SegmentIndex | TripleIndex | GrowingArray):
        return value.fork()
    if isinstance(value, dict):
        return {name: _forked(each) for name, each in value.items()}
    return deepcopy(value)


def _of(counts: IntArray, ids: IntArray) -> IntArray:
    """The counts of relations, padded with 0."""
    found = np.zeros(len(ids), np.int64)
    counted = ids < len(counts)
    found[counted] = counts[ids[counted]]
    return found


def _counted(before: IntArray, relations: IntArray, sign: int) -> IntArray:
    """Counts by relation after adding or subtracting some triples."""
    counts = sign * np.bincount(relations, minlength=len(before))
    counts[: len(before)] += before
    return counts

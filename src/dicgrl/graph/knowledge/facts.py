"""Triples of all parts and splits, and the index over those to learn from.

Appending costs what is appended. Taking facts back is rare: it costs one pass over all that is
there, and rows stay dense, so that draws by position and the ranges of parts stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dicgrl.graph.arrays import BoolArray, GrowingArray, IntArray, in_order_of_parts, mentions
from dicgrl.graph.index import SegmentIndex
from dicgrl.graph.knowledge.keys import question_keys, triple_keys
from dicgrl.graph.part import SPLITS

Rows = Mapping[str, IntArray]
"""Triples [n, 3] of each split."""


class Facts:
    """Triples by split and part; training triples are indexed, the others can be looked up.

    Attributes:
        by_entity: Training triples that mention an entity; a self loop counts once.
        by_triple: Training triples by their keys.
        by_question: Training triples by (h, r, ?) and by (?, r, t).
        held_out: Valid and test triples, by the same keys.
        reflexive: Relations that some training triple has between an entity and itself.
    """

    def __init__(self) -> None:
        self._rows = {split: GrowingArray((3,), np.dtype(np.int64)) for split in SPLITS}
        self._starts: dict[str, list[int]] = {split: [0] for split in SPLITS}
        self._clear()

    def _clear(self) -> None:
        self.by_entity = SegmentIndex()
        self.by_triple = SegmentIndex()
        self.by_question = {"tail": SegmentIndex(), "head": SegmentIndex()}
        self.held_out = SegmentIndex()
        self._relation_counts = np.zeros(0, np.int64)
        self.reflexive: set[int] = set()

    @property
    def num_parts(self) -> int:
        """Parts so far."""
        return len(self._starts["train"]) - 1

    def rows(self, split: str, first: int = 0, last: int | None = None) -> IntArray:
        """The triples of one split that arrived with parts [first, last)."""
        starts = self._starts[split]
        stop = starts[self.num_parts if last is None else last]
        return self._rows[split].view()[starts[first] : stop]

    def of_relations(self, ids: IntArray) -> IntArray:
        """How many training triples each relation has."""
        counts = np.zeros(len(ids), np.int64)
        counted = ids < len(self._relation_counts)
        counts[counted] = self._relation_counts[ids[counted]]
        return counts

    def append(self, rows: Rows) -> None:
        """Take in the triples of the next part; those of `train` are not known."""
        self._index(rows["train"], len(self._rows["train"]))
        self._hold_out(rows)
        for split in SPLITS:
            self._rows[split].append(rows[split])
            self._starts[split].append(len(self._rows[split]))

    def keep(self, kept: Mapping[str, BoolArray]) -> None:
        """Drop the triples where `kept` is False, in one pass over those there are.

        Args:
            kept: For each row of each split whether it stays.
        """
        removed = self.rows("train")[~kept["train"]]
        if len(removed):
            numbers = np.where(kept["train"], np.cumsum(kept["train"]) - 1, -1)
            for index in (self.by_entity, self.by_triple, *self.by_question.values()):
                index.renumber(numbers)
            counts = np.bincount(removed[:, 1], minlength=len(self._relation_counts))
            self._relation_counts = self._relation_counts - counts
        for split in SPLITS:
            before = np.concatenate([[0], np.cumsum(kept[split])])
            self._starts[split] = before[self._starts[split]].tolist()
            self._rows[split].keep(kept[split])
        if not (kept["valid"].all() and kept["test"].all()):
            self.held_out = SegmentIndex()
            self._hold_out({split: self.rows(split) for split in SPLITS})
        if (removed[:, 0] == removed[:, 2]).any():
            train = self.rows("train")
            self.reflexive = set(train[train[:, 0] == train[:, 2], 1].tolist())

    def restore(self, rows: Rows, starts: Mapping[str, Sequence[int]]) -> None:
        """Have other triples from now on, indexed at once.

        Args:
            rows: All triples of each split, oldest first; those of `train` once each.
            starts: Where each part begins in them, and the end of the last.
        """
        self._clear()
        for split in SPLITS:
            self._rows[split].replace(rows[split])
            self._starts[split] = list(starts[split])
        self._index(self.rows("train"), 0, np.diff(self._starts["train"]))
        self._hold_out(rows)

    def starts(self) -> dict[str, list[int]]:
        """Where each part begins in the rows of each split, and the end of the last."""
        return {split: list(starts) for split, starts in self._starts.items()}

    def _index(self, triples: IntArray, first: int, sizes: IntArray | None = None) -> None:
        """Index triples of one part, or of parts of these sizes as if they came one by one."""
        rows = np.arange(first, first + len(triples))
        self.by_triple.add(triple_keys(triples), rows)
        for side, index in self.by_question.items():
            index.add(question_keys(triples, side), rows)
        counts = np.bincount(triples[:, 1], minlength=len(self._relation_counts))
        counts[: len(self._relation_counts)] += self._relation_counts
        self._relation_counts = counts
        not_loop = triples[:, 0] != triples[:, 2]
        self.reflexive.update(np.unique(triples[~not_loop, 1]).tolist())
        ends, rows = mentions(triples[:, [0, 2]]), np.concatenate([rows, rows[not_loop]])
        order = slice(None) if sizes is None else in_order_of_parts(rows - first, sizes)
        self.by_entity.add(ends[order], rows[order])

    def _hold_out(self, rows: Rows) -> None:
        keys = triple_keys(np.concatenate([rows["valid"], rows["test"]]))
        self.held_out.add(keys, keys)

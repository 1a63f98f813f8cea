"""The triples that are left after a history of changes, computed in one pass over all rows."""

from __future__ import annotations

from typing import Self

import numpy as np

from dicgrl.graph.arrays import IntArray
from dicgrl.graph.knowledge.facts import AGAIN, DATED, WIDTHS, Facts
from dicgrl.graph.knowledge.keys import common_keys
from dicgrl.graph.knowledge.part import KnowledgePart
from dicgrl.graph.part import SPLITS
from dicgrl.graph.survivors import Survivors

_NO_ROWS: IntArray = np.empty((0, 3), np.int64)
_COLUMNS = {"entities": [0, 2], "relations": [1]}


class Replay:
    """Collects changes in order, in ids of the graph, and computes what is left.

    Attributes:
        num_parts: Parts so far.
    """

    def __init__(self) -> None:
        self.num_parts = 0
        self._forgotten = [_NO_ROWS]
        self._left = {
            name: Survivors(common_keys, np.empty((0, width), np.int64))
            for name, width in WIDTHS.items()
        }

    @classmethod
    def of(cls, facts: Facts) -> Self:
        """What is left so far."""
        made = cls()
        made.num_parts = facts.num_parts
        for name, starts in facts.starts().items():
            came_with = np.repeat(np.arange(facts.num_parts), np.diff(starts))
            made._left[name].add(facts.rows(name), came_with)
        return made

    def learn(self, part: KnowledgePart) -> None:
        """Take in a part; its training triples are not known at that time."""
        for split in SPLITS:
            self._left[split].add(getattr(part, split), self.num_parts)
        self.num_parts += 1

    def repeat(self, triples: IntArray) -> None:
        """Store that triples arrived again, with the newest part or after it."""
        self._left[AGAIN].add(triples, self.num_parts - 1)

    def date(self, rows: IntArray) -> None:
        """Store dates of triples: triples and moments, [n, 4]."""
        self._left[DATED].add(rows, self.num_parts - 1)

    def forget(self, triples: IntArray) -> None:
        """Remove triples."""
        self._forgotten.append(triples)
        for name, left in self._left.items():
            left.forget(np.pad(triples, ((0, 0), (0, WIDTHS[name] - 3))), self.num_parts)

    def merge(self, vocabulary: str, pairs: IntArray) -> None:
        """Replace ids by others; triples that become equal count as having arrived again."""
        if not len(pairs):
            return
        columns = _COLUMNS[vocabulary]
        gone, finds = _at_once(pairs)

        def renamed(rows: IntArray) -> IntArray:
            rows, ids = rows.copy(), rows[:, columns]
            at = np.searchsorted(gone, ids).clip(max=len(gone) - 1)
            rows[:, columns] = np.where(gone[at] == ids, finds[at], ids)
            return rows

        for name, left in self._left.items():
            twice, parts = left.rewrite(renamed, once=name == "train")
            if len(twice):
                self._left[AGAIN].add(twice, parts)

    def settled(self) -> tuple[dict[str, IntArray], dict[str, list[int]]]:
        """The triples of each set that are left, and the first row of each part."""
        found = {name: left.settled(self.num_parts) for name, left in self._left.items()}
        rows = {name: left for name, (left, _) in found.items()}
        return rows, {name: starts for name, (_, starts) in found.items()}

    @property
    def forgotten(self) -> IntArray:
        """All triples that were removed, [n, 3]."""
        return np.concatenate(self._forgotten)


def _at_once(pairs: IntArray) -> tuple[IntArray, IntArray]:
    """Sorted ids that pairs, kept and gone, replace in their order, and by what in the end."""
    finds: dict[int, int] = {}
    for kept, gone in reversed(pairs.tolist()):
        finds[gone] = finds.get(kept, kept)
    ids = np.array(sorted(finds), np.int64)
    return ids, np.array([finds[number] for number in ids.tolist()], np.int64)

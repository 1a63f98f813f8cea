"""Kinds of growth: what the later parts of a static knowledge graph bring.

Each kind gives every triple a time; the times are cut so that each part has its share of the
training triples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dicgrl.errors import UserError
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.split import Shares, check_sizes, first_mention, part_ends

_ENDS = [0, 2]
_LARGE = 0.5  # of the largest later part: what has more triples would leave no room for others


@dataclass(frozen=True)
class StaticTriples:
    """The triples to divide.

    Attributes:
        triples: Training triples, then those held out, [n, 3].
        taught: How many of them are training triples.
        num_entities: How many entities there are.
        num_relations: How many relations there are.
        shares: Share of each part.
        generator: Makes every choice.
    """

    triples: IntArray
    taught: int
    num_entities: int
    num_relations: int
    shares: Shares
    generator: np.random.Generator

    @property
    def train(self) -> IntArray:
        """The training triples, [taught, 3]."""
        return self.triples[: self.taught]

    def degrees(self) -> IntArray:
        """How often the training triples mention each entity, [num_entities]."""
        return np.bincount(self.train[:, _ENDS].ravel(), minlength=self.num_entities)

    def own_times(self) -> Shares:
        """A random time below 1 for each triple, [n]."""
        return self.generator.random(len(self.triples))

    def entity_times(self) -> Shares:
        """The time of the later of each triple's entities, [n]: at most 1, not above 0 if large."""
        times: Shares = self._times(self.degrees())[self.triples[:, _ENDS]].max(axis=1)
        return times

    def relation_times(self) -> Shares:
        """The time of each triple's relation, [n], likewise."""
        counts = np.bincount(self.train[:, 1], minlength=self.num_relations)
        return self._times(counts)[self.triples[:, 1]]

    def _times(self, mentions: IntArray) -> Shares:
        """Times of things in random order, but large ones come first, by size."""
        later = self.shares[1:].max(initial=0) * self.taught
        large = mentions > _LARGE * later
        order = np.lexsort((self.generator.random(len(mentions)), np.where(large, -mentions, 0)))
        times = np.empty(len(mentions))
        times[order] = np.arange(1, len(mentions) + 1) - np.count_nonzero(large)
        return times / max(int(np.count_nonzero(~large)), 1)


class _Times(NamedTuple):
    """When triples arrive.

    Attributes:
        time: Time of each triple, [n].
        within: Order of those of equal time, [n]; it does not matter where they stay together.
        together: What messages call the things that bring triples of equal time, which then stay
            together; None where a part may end among them.
    """

    time: Shares
    within: Shares
    together: str | None = None


def _entities(static: StaticTriples) -> _Times:
    times = static.entity_times()
    return _Times(times, times, "entities")


def _relations(static: StaticTriples) -> _Times:
    times = static.relation_times()
    return _Times(times, times, "relations")


def _facts(static: StaticTriples) -> _Times:
    own = static.own_times()
    known = own[: static.taught]
    chosen = _spanning(static, known)[: part_ends(static.shares, static.taught)[0]]
    later = np.ones(static.taught)
    later[chosen] = 0
    # Positions as times: those of held-out triples then have the same shares.
    times = own.copy()
    times[np.lexsort((known, later))] = (np.arange(static.taught) + 0.5) / max(static.taught, 1)
    return _Times(times, own)


def _spanning(static: StaticTriples, random: Shares) -> IntArray:
    """Training triples that together mention everything; those with most new things first."""
    # Entities of few triples choose first: what they choose mentions most of the others.
    scarce = static.degrees()[static.train[:, _ENDS]].min(axis=1, initial=len(static.triples))
    order = np.lexsort((random, scarce))
    rows = static.train[order]
    # The first triple that mentions something brings it. Relations are few: they go first.
    brings = 3 * np.bincount(np.unique(rows[:, 1], return_index=True)[1], minlength=len(rows))
    first = np.unique(rows[:, _ENDS].ravel(), return_index=True)[1] // 2
    brings += np.bincount(first, minlength=len(rows))
    richest = np.lexsort((random[order], -brings))
    return order[richest[: np.count_nonzero(brings)]]


def _hybrid(static: StaticTriples) -> _Times:
    own = static.own_times()
    times = np.maximum(static.entity_times(), static.relation_times())
    return _Times(np.maximum(times, own), own)


def _nightly(static: StaticTriples) -> _Times:
    own = static.own_times()
    return _Times(np.maximum(static.entity_times(), own), own)


_KINDS: dict[str, Callable[[StaticTriples], _Times]] = {
    "entities": _entities,
    "relations": _relations,
    "facts": _facts,
    "hybrid": _hybrid,
    "nightly": _nightly,
}


def grow(by: str, static: StaticTriples) -> IntArray:
    """The part with which each triple arrives, [n].

    A held-out triple waits until training triples have mentioned its entities and its relation, as
    far as any do.

    Raises:
        UserError: There are too few triples, entities or relations for so many parts.
    """
    part_of = _cut(static, _KINDS[by](static))
    known = np.zeros(static.num_entities, dtype=np.int64)
    first_mention(known, static.train[:, _ENDS], part_of[: static.taught])
    known_relation = np.zeros(static.num_relations, dtype=np.int64)
    first_mention(known_relation, static.train[:, [1]], part_of[: static.taught])
    held = static.triples[static.taught :]
    ready = np.maximum(known[held[:, _ENDS]].max(axis=1, initial=0), known_relation[held[:, 1]])
    part_of[static.taught :] = np.maximum(part_of[static.taught :], ready)
    return part_of


def _cut(static: StaticTriples, times: _Times) -> IntArray:
    """Divide the training triples by their times; a held-out one comes with the one before it."""
    order = np.lexsort((times.within, times.time))
    train = order < static.taught
    if times.together is None:
        ends = part_ends(static.shares, static.taught)
    else:
        ends = _between_runs(times.time[order[train]], static.shares, times.together)
    check_sizes(ends, "training triples")
    before = np.maximum(np.cumsum(train) - 1, 0)
    part_of = np.empty(len(order), dtype=np.int64)
    part_of[order] = np.searchsorted(ends, before, side="right")
    return part_of


def _between_runs(ordered: Shares, shares: Shares, what: str) -> IntArray:
    """End each part where a run of equal values does, none of them empty.

    What is left is divided anew after each part, since one long run may be larger than its share.
    """
    runs = np.flatnonzero(np.diff(ordered, append=np.inf)) + 1
    parts = len(shares)
    if len(runs) < parts:
        raise UserError(
            f"{parts} parts are too many: only {len(runs)} {what} bring training triples"
        )
    of_rest = shares / np.cumsum(shares[::-1])[::-1]
    chosen, done = -1, 0
    ends = np.empty(parts, dtype=np.int64)
    for part in range(parts):
        wanted = done + (len(ordered) - done) * of_rest[part]
        after = int(np.searchsorted(runs[:-1], wanted))
        nearer = after > 0 and wanted - runs[after - 1] < runs[after] - wanted
        last = len(runs) - parts + part  # those that follow need a run each
        chosen = min(max(after - nearer, chosen + 1), last)
        ends[part] = done = runs[chosen]
    return ends

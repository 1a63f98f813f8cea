"""Entities by what somebody has typed so far: labels and names that begin so, or are spelt alike.

All labels, readable names and the beginnings of words in names stand in one sorted list, so that
what begins with a text is found by bisection. What is spelt alike shares triples of letters with
it; these are found in a table, at a cost that follows how common they are, and the nearest of them
are then compared letter by letter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from heapq import nsmallest
from itertools import islice
from typing import Any

from dicgrl.serve.snapshots import Snapshot

_NEAR = 64  # names with most triples of letters in common: these are compared
_ALIKE = 0.5  # share of letters in common, in their order
_LONG = 80  # letters that are compared
_COMMON = 5_000  # texts that have a triple of letters: beyond, it tells little


class Search:
    """Finds labels.

    Args:
        labels: The labels.
        names: Their readable names, in the same order.

    Example:
        >>> search = Search(["Q1", "Q2"], ["Alien", "Ridley Scott"])
        >>> search.found("ali", 5), search.found("scott", 5), search.found("alein", 5)
        ([(0, 'name')], [(1, 'word')], [(0, 'alike')])
    """

    def __init__(self, labels: Sequence[str], names: Sequence[str]) -> None:
        entries = []
        self._grams: dict[str, list[int]] = {}
        self._sizes: list[int] = []
        self._names = [name.casefold() for name in names]
        for number, label in enumerate(labels):
            folded, read = label.casefold(), self._names[number]
            entries.append((read, 0, number))
            if folded != read:
                entries.append((folded, 1, number))
            words = read.split()
            entries += [(" ".join(words[at:]), 2, number) for at in range(1, min(len(words), 8))]
            grams = set(_grams(read))
            self._sizes.append(len(grams))
            for gram in grams:
                self._grams.setdefault(gram, []).append(number)
        entries.sort()
        self._texts = [text for text, _, _ in entries]
        self._entries = [(kind, number) for _, kind, number in entries]

    def found(self, query: str, limit: int) -> list[tuple[int, str]]:
        """Positions of the best labels, and what of each was found: label, name, word or alike."""
        wanted = " ".join(query.casefold().split())
        found: dict[int, str] = {}
        for kind, number in self._beginning(wanted, limit):
            found.setdefault(number, ("name", "label", "word")[kind])
        if len(found) < limit and len(wanted) > 1:
            for number in self._alike(wanted):
                found.setdefault(number, "alike")
                if len(found) == limit:
                    break
        return list(islice(found.items(), limit))

    def _beginning(self, wanted: str, limit: int) -> Iterator[tuple[int, int]]:
        """What begins with a text: whole names and labels first, the shortest of them first."""
        first = bisect_left(self._texts, wanted)
        some = []
        for at in range(first, min(first + 50 * limit, len(self._texts))):
            if not self._texts[at].startswith(wanted):
                break
            kind, number = self._entries[at]
            some.append((kind == 2, len(self._texts[at]), self._texts[at], kind, number))
        some.sort()
        yield from ((kind, number) for *_, kind, number in some)

    def _alike(self, wanted: str) -> list[int]:
        grams = set(_grams(wanted))
        shared: Counter[int] = Counter()
        for gram in grams:
            having = self._grams.get(gram, ())
            if len(having) <= _COMMON:
                shared.update(having)
        share = {
            number: 2 * count / (len(grams) + self._sizes[number])
            for number, count in shared.items()
        }
        compared = SequenceMatcher(None, "", wanted[:_LONG], autojunk=False)
        found = []
        for number in nsmallest(_NEAR, share, key=lambda number: (-share[number], number)):
            compared.set_seq1(self._names[number][:_LONG])
            alike = compared.ratio()
            if alike >= _ALIKE:
                found.append((-alike, number))
        return [number for _, number in sorted(found)]


def _grams(text: str) -> Iterator[str]:
    padded = f"  {text} "
    return (padded[at : at + 3] for at in range(len(padded) - 2))


def found_entities(snapshot: Snapshot, query: str, limit: int) -> list[dict[str, Any]]:
    """Entities or nodes of a snapshot that a text may mean, the best first.

    Args:
        snapshot: The snapshot.
        query: What was typed so far; the first ones for an empty text.
        limit: How many.
    """
    labels, names, search = _search_of(snapshot)
    return [
        {"label": labels[number], "name": names[number], "match": what}
        for number, what in search.found(query, limit)
    ]


_Made = tuple[list[str], list[str], Search]
_last: list[_Made] = []  # the newest one: most facts bring no new label


def _search_of(snapshot: Snapshot) -> _Made:
    """The labels that can be found, made once for a snapshot."""
    if "search" not in snapshot.kept:
        kind = snapshot.learner.task.part_type.vocabularies[0]
        graph = snapshot.trainer.graph
        vocabulary = graph.vocabularies()[kind]
        gone = set(graph.retired(kind).tolist())
        labels = [label for number, label in enumerate(vocabulary) if number not in gone]
        names = [snapshot.asking.names.of(label) for label in labels]
        snapshot.kept["search"] = _taken_over(labels, names)
    found: _Made = snapshot.kept["search"]
    return found


def _taken_over(labels: list[str], names: list[str]) -> _Made:
    for made in _last:
        if made[0] == labels and made[1] == names:
            return made
    made = labels, names, Search(labels, names)
    _last[:] = [made]
    return made

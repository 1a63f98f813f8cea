"""Rename and merge labels: find what the user means, and make the change for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from dicgrl.ask.names import Names
from dicgrl.errors import UserError, shown, unknown_name
from dicgrl.graph import Graph, Vocabulary
from dicgrl.graph.change import MERGE, RENAME, Change
from dicgrl.graph.frames import listed
from dicgrl.graph.labels import as_label, check_labels

Pair = Sequence[str | int]


def renaming(graph: Graph, names: Names, pairs: Iterable[Pair], of: str | None = None) -> Change:
    """The change by which ids get other labels.

    Args:
        graph: Knows the labels.
        names: Readable names.
        pairs: An old and a new label each.
        of: Which vocabulary they are of; the one that has the first unless given.

    Raises:
        UserError: An old label is not known, or a new one is.

    Example:
        >>> from dicgrl.graph import KnowledgeGraph, KnowledgeStream
        >>> graph = KnowledgeGraph()
        >>> part = graph.add(KnowledgeStream.from_labels("x", [[("Alein", "genre", "horror")]])[0])
        >>> renaming(graph, Names(), [("Alein", "Alien")]).labels
        {'vocabulary': 'entities', 'old': ['Alein'], 'new': ['Alien']}
    """
    given = _pairs(pairs)
    name, vocabulary = _vocabulary(graph, names, given, of)
    ids = [names.find(old, vocabulary) for old, _ in given]
    taken = set()
    for number, (old, new) in zip(ids, given, strict=True):
        _check_own(vocabulary, number, old)
        if not new:
            raise UserError(f"{shown(old)}: a new label cannot be empty")
        if new == vocabulary.labels([number])[0]:
            raise UserError(f"{shown(new)} is the label already: there is nothing to rename")
        if new in vocabulary or new in taken:
            raise UserError(
                f"{vocabulary.kind} {shown(new)} is known already: merge the two instead"
            )
        taken.add(new)
    if len(set(ids)) < len(ids):
        raise UserError(f"a {vocabulary.kind} is renamed twice")
    check_labels(taken)
    labels = {"vocabulary": name, "old": vocabulary.labels(ids), "new": [new for _, new in given]}
    return Change(RENAME, None, {"ids": np.array(ids, np.int64)}, labels)


def merging(graph: Graph, names: Names, pairs: Iterable[Pair], of: str | None = None) -> Change:
    """The change by which ids become one.

    Args:
        graph: Knows the labels.
        names: Readable names.
        pairs: The one that stays and the one that it takes in, each.
        of: As of `renaming`.

    Raises:
        UserError: A label is not known, or the two are of different kinds or one already.

    Example:
        >>> from dicgrl.graph import KnowledgeGraph, KnowledgeStream
        >>> graph = KnowledgeGraph()
        >>> part = graph.add(KnowledgeStream.from_labels("x", [[("Alien", "genre", "horror")]])[0])
        >>> merging(graph, Names(), [("Alien", "horror")]).arrays["ids"].tolist()
        [[0, 1]]
    """
    given = _pairs(pairs)
    name, vocabulary = _vocabulary(graph, names, given, of)
    ids: list[tuple[int, int]] = []
    gone: set[int] = set()
    for pair in given:
        kept, other = (names.find(label, vocabulary) for label in pair)
        if kept == other:
            raise UserError(f"{shown(pair[0])} and {shown(pair[1])} are already the same")
        if kept in gone or other in gone:
            raise UserError(f"{shown(pair[0])} and {shown(pair[1])}: one of them is merged before")
        gone.add(other)
        ids.append((kept, other))
    both = np.array(ids, np.int64)
    columns = [vocabulary.labels(both[:, i]) for i in (0, 1)]
    labels = {"vocabulary": name, "kept": columns[0], "gone": columns[1]}
    return Change(MERGE, None, {"ids": both}, labels)


def _pairs(pairs: Iterable[Pair]) -> list[tuple[str, str]]:
    found = []
    for pair in listed(pairs, "pairs of labels"):
        labels = tuple(map(as_label, pair)) if isinstance(pair, list | tuple) else ()
        if len(labels) != 2:
            raise UserError(f"expected pairs of labels, found {shown(str(pair))}")
        found.append((labels[0], labels[1]))
    if not found:
        raise UserError("no labels were given")
    return found


def _vocabulary(
    graph: Graph, names: Names, pairs: list[tuple[str, str]], of: str | None
) -> tuple[str, Vocabulary]:
    """The vocabulary that labels are of."""
    known = graph.vocabularies()
    if of is not None:
        if not isinstance(of, str) or of not in known:
            raise unknown_name("kind of label", of, known)
        return of, known[of]
    first = pairs[0][0]
    having = _kinds_with(known, [first]) or _kinds_with(known, names.called(first))
    if len(having) > 1:
        either = " or ".join(f"of={name}" for name in having)
        raise UserError(f"{shown(first)} is of several kinds: say which, {either}")
    if not having:
        name = next(iter(known))  # its message will name similar labels
        return name, known[name]
    _check_one_kind(known, having[0], pairs)
    return having[0], known[having[0]]


def _kinds_with(known: Mapping[str, Vocabulary], labels: Collection[str]) -> list[str]:
    """The kinds that have one of the labels."""
    return [name for name, vocabulary in known.items() if any(x in vocabulary for x in labels)]


def _check_one_kind(
    known: Mapping[str, Vocabulary], name: str, pairs: list[tuple[str, str]]
) -> None:
    """Refuse a label that is not of this kind, but of another."""
    for label in (label for pair in pairs for label in pair):
        others = [] if label in known[name] else _kinds_with(known, [label])
        if others:
            raise UserError(
                f"{shown(pairs[0][0])} is one of the {name}, {shown(label)} one of the {others[0]}"
            )


def _check_own(vocabulary: Vocabulary, number: int, label: str) -> None:
    """Refuse a label that only finds an id since another one was merged into it."""
    if label in vocabulary.merged:
        now = vocabulary.labels([number])[0]
        raise UserError(f"{shown(label)} was merged into {shown(now)}: rename that one")

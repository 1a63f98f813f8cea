"""Restricts answers to some entities, as `among` says.

It is a list of labels or names, or one of:

- `seen`: entities that occur at the asked end of the asked relation;
- `heads:RELATION` or `tails:RELATION`: entities that occur at that end of the named relation.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dicgrl.ask.names import Names
from dicgrl.errors import UserError, shown
from dicgrl.graph import KnowledgeGraph
from dicgrl.graph.arrays import IntArray, distinct
from dicgrl.graph.labels import as_label
from dicgrl.training.known import RELATION, TAIL

Among = str | Iterable[str]
SEEN = "seen"
_ENDS = {"heads": "head", "tails": "tail"}
_EXPECTED = "labels, seen, heads:RELATION or tails:RELATION"


def says_where(text: str) -> bool:
    """Whether a text says where entities were seen.

    Example:
        >>> [says_where(text) for text in ("seen", "tails:country", "people.txt")]
        [True, True, False]
    """
    end, colon, _ = text.partition(":")
    return text == SEEN or (bool(colon) and end in _ENDS)


class Candidates:
    """The entities that answers are taken from.

    Attributes:
        by_relation: Whether the entities depend on the relation of a question.

    Args:
        graph: The graph.
        names: Readable names of its labels.
        among: Which entities; see above.

    Raises:
        UserError: `among` is not understood, names something unknown, or leaves no entity.

    Example:
        >>> from dicgrl.graph import KnowledgeStream
        >>> graph = KnowledgeGraph()
        >>> facts = [("Alien", "genre", "horror"), ("Brazil", "genre", "satire")]
        >>> part = graph.add(KnowledgeStream.from_labels("films", [facts])[0])
        >>> found = Candidates(graph, Names(), "tails:genre").of(TAIL, relation=0)
        >>> graph.entities.labels(found)
        ['horror', 'satire']
    """

    def __init__(self, graph: KnowledgeGraph, names: Names, among: Among) -> None:
        self._graph = graph
        self.by_relation = isinstance(among, str) and among == SEEN
        self._by_question: dict[tuple[int, int], IntArray] = {}
        if not self.by_relation:
            self._every = self._kept(self._named(names, among))

    def of(self, asked: int, relation: int) -> IntArray:
        """Ids of the candidates of a question, rising.

        Args:
            asked: The column that is asked for, `HEAD` or `TAIL`.
            relation: Its relation, which does not matter unless `by_relation`.

        Raises:
            UserError: There are none, or a relation is asked for.
        """
        if asked == RELATION:
            raise UserError("among is about entities; this question asks for the relation")
        if not self.by_relation:
            return self._every
        if (asked, relation) not in self._by_question:
            side = "tail" if asked == TAIL else "head"
            (label,) = self._graph.relations.labels([relation])
            found = _seen(self._graph, relation, side, label)
            self._by_question[asked, relation] = self._kept(found)
        return self._by_question[asked, relation]

    def _named(self, names: Names, among: Among) -> IntArray:
        if isinstance(among, str):
            if not says_where(among):
                raise UserError(f"among={shown(among)}: expected {_EXPECTED}")
            end, _, relation = among.partition(":")
            number = names.find(relation, self._graph.relations)
            return _seen(self._graph, number, _ENDS[end], relation)
        if not isinstance(among, Iterable):
            raise UserError(f"among={among!r}: expected {_EXPECTED}")
        found = [names.find(as_label(label), self._graph.entities) for label in among]
        if not found:
            raise UserError("among names no entity: there is nothing to choose from")
        return distinct(np.array(found, dtype=np.int64))

    def _kept(self, wanted: IntArray) -> IntArray:
        """Those that may answer at all."""
        found = wanted[self._graph.may_answer(wanted)]
        if not len(found):
            raise UserError("among leaves no entity that may answer")
        return found


def _seen(graph: KnowledgeGraph, relation: int, side: str, label: str) -> IntArray:
    found = graph.seen(relation, side)
    if not len(found):
        raise UserError(f"no entity is known as a {side} of {shown(label)}: nothing to choose from")
    return found

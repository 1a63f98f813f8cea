"""What the page shows of a graph: entities to find, and what is known of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from dicgrl.ask.asking import Asking
from dicgrl.ask.links import LinkAsking
from dicgrl.ask.nodes import NodeAsking
from dicgrl.graph import KnowledgeGraph, Vocabulary
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.part import SPLITS
from dicgrl.learner import Learner
from dicgrl.serve.kinds import Kinds, kinds_of

MOST_FACTS = 500  # of an entity
_SIMILAR = 8
_EXAMPLES = 12


class Look:
    """What the page shows of a graph at one moment.

    Args:
        learner: The learner.
        asking: Answers, with what waits to be learned.
    """

    def __init__(self, learner: Learner, asking: Asking) -> None:
        self.learner, self.asking, self.names = learner, asking, asking.names
        self.graph: Any = asking.graph  # type: ignore[attr-defined]
        self.what = self.graph.part_type.vocabularies[0]
        self.vocabulary: Vocabulary = self.graph.vocabularies()[self.what]
        self.labels = list(self.vocabulary)
        every = np.arange(len(self.labels))
        self.degree: IntArray = self.graph.degree(every)
        gone = np.isin(every, self.graph.retired(self.what))
        gone |= np.array([label in self.vocabulary.merged for label in self.labels], dtype=bool)
        self.there = ~gone
        self.kinds = self._kinds()

    def overview(self) -> dict[str, Any]:
        """What there is: counts, relations or classes, and some entities to begin with."""
        graph = self.graph
        counts = {kind: len(v) for kind, v in graph.vocabularies().items()}
        counts[self.what] = int(self.there.sum())
        told: dict[str, Any] = {"what": self.what, "counts": counts}
        if isinstance(graph, KnowledgeGraph):
            often = np.bincount(graph.train[:, 1], minlength=len(graph.relations))
            told["relations"] = [
                {**self.named(graph.relations, i), "count": int(often[i])}
                for i in np.argsort(-often, kind="stable").tolist()
            ]
            counts["facts"] = len(graph.train)
        else:
            counts["facts"] = len(graph.edges)
        told["examples"] = [self.entity(i) for i in self._examples().tolist()]
        return told

    def listed(self, labels: Sequence[str]) -> list[dict[str, Any]]:
        """Entities by their labels, in a list."""
        return [self.entity(number) for number in self.vocabulary.ids(labels).tolist()]

    def entity(self, number: int) -> dict[str, Any]:
        """An entity or node in a list."""
        kind = self.kinds.names[int(self.kinds.of[number])]
        told = self.named(self.vocabulary, number)
        return {**told, "id": number, "degree": int(self.degree[number]), "kind": kind}

    def named(self, vocabulary: Vocabulary, number: int) -> dict[str, Any]:
        """The label and name of an id."""
        (label,) = vocabulary.labels([number])
        return {"label": label, "name": self.names.of(label)}

    def about(self, label: str) -> dict[str, Any]:
        """What is known about an entity or node.

        Raises:
            UserError: There is none of that label or name.
        """
        number = self.names.find(label, self.vocabulary)
        told = self.entity(number) | {"arrived": int(self.arrivals[number])}
        if isinstance(self.asking, LinkAsking):
            told |= self._facts(number, self.asking.graph)
        elif isinstance(self.asking, NodeAsking):
            told |= self._neighbours(number, self.asking)
        if self.there[number] and len(self.asking.vectors()[1]) > number:
            similar = self.asking.similar(self.labels[number], k=_SIMILAR)
            told["similar"] = [asdict(one) for one in similar]
        return told

    @property
    def arrivals(self) -> IntArray:
        """With which change each entity arrived, counted from 0; behind the last: not learned."""
        found = np.full(len(self.labels), len(self.learner.trainer.history), dtype=np.int64)
        for number, change in enumerate(self.learner.trainer.history):
            if change.part is not None:
                new: range = getattr(change.part, f"new_{self.what}")
                found[new.start : new.stop] = number
        return found

    def landmarks(self, k: int) -> list[dict[str, Any]]:
        """Entities that people may know: those with most facts."""
        best = np.argsort(-np.where(self.there, self.degree, -1), kind="stable")[:k]
        return [self.entity(i) for i in best.tolist()]

    def _examples(self) -> IntArray:
        """Entities with much to tell, of the most frequent kinds."""
        found: list[int] = []
        kinds = max(1, min(3, len(self.kinds.names) - 1))
        for kind in range(kinds):
            known = np.where(self.there & (self.kinds.of == kind), self.degree, -1)
            best = np.argsort(-known, kind="stable")[: _EXAMPLES // kinds]
            found += [i for i in best.tolist() if known[i] >= 0]
        return np.array(found, dtype=np.int64)

    def _kinds(self) -> Kinds:
        graph = self.graph
        if isinstance(graph, KnowledgeGraph):
            return kinds_of(graph, [self.names.of(label) for label in graph.relations])
        classes: Vocabulary = graph.vocabularies()["classes"]
        labels: IntArray = graph.labels
        names = [self.names.of(label) for label in classes]
        return Kinds([*names, "class not known"], np.where(labels < 0, len(names), labels))

    def _facts(self, number: int, graph: KnowledgeGraph) -> dict[str, Any]:
        one = np.array([number])
        rows = [("train", graph.train[graph.triples_of(one)[1]])]
        for split in SPLITS[1:]:
            held = graph.rows(split)
            rows.append((split, held[(held[:, [0, 2]] == number).any(1)]))
        told = [
            {
                "head": self.named(graph.entities, int(head)),
                "relation": self.named(graph.relations, int(relation)),
                "tail": self.named(graph.entities, int(tail)),
                "held_out": split != "train",
            }
            for split, found in rows
            for head, relation, tail in found[:MOST_FACTS].tolist()
        ]
        count = sum(len(found) for _, found in rows)
        return {"facts": told[:MOST_FACTS], "count": count}

    def _neighbours(self, number: int, asking: NodeAsking) -> dict[str, Any]:
        graph = asking.graph
        edges = graph.edges[graph.edges_of(np.array([number]))[1]]
        others = np.where(edges[:, 0] == number, edges[:, 1], edges[:, 0])
        known = int(graph.labels[number])
        return {
            "class": None if known < 0 else self.named(graph.classes, known),
            "learned": bool(np.isin(number, asking.trainer.nodes("train"))),
            "neighbours": [self.entity(i) for i in others[:MOST_FACTS].tolist()],
            "count": len(others),
        }


def points_of(look: Look) -> bytes:
    """What colours the map: arrival, kind and degree of each entity, uint16 [N, 3]."""
    columns: Sequence[IntArray] = (look.arrivals, look.kinds.of, look.degree)
    return np.minimum(np.stack(columns, axis=1), 65535).astype("<u2").tobytes()

"""Counts of a knowledge graph, part by part: the paper's appendix C, and irregular data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dicgrl.graph.arrays import ids_in
from dicgrl.graph.knowledge.graph import KnowledgeGraph
from dicgrl.graph.knowledge.keys import are_among, triple_keys
from dicgrl.graph.knowledge.part import KnowledgePart
from dicgrl.graph.part import SPLITS
from dicgrl.graph.stream import Counts


def taught_tests(parts: Sequence[KnowledgePart]) -> tuple[int, int]:
    """How many test triples are training triples of some part, and how many there are."""
    train, test = (
        np.concatenate([getattr(part, split) for part in parts]) for split in ("train", "test")
    )
    return int(are_among(test, train).sum()), len(test)


def describe_parts(parts: Iterable[KnowledgePart]) -> list[Counts]:
    """Counts of each part; `describe` says what they mean."""
    graph = KnowledgeGraph()
    rows = []
    for part in parts:
        before = len(graph.train)
        distinct = len(np.unique(triple_keys(part.train)))
        added = graph.add(part)
        held = np.concatenate([added.valid, added.test])
        every = np.concatenate([part.train, part.valid, part.test])
        rows.append(
            {
                **{split: len(getattr(part, split)) for split in SPLITS},
                "entities": len(part.new_entities),
                "relations": part.num_relations,
                "new_relations": len(part.new_relations),
                "accumulated_entities": part.num_entities,
                "accumulated_relations": part.num_relations,
                "irregular": {
                    "duplicates": len(part.train) - distinct,
                    "repeated": distinct - (len(graph.train) - before),
                    "self_loops": int((every[:, 0] == every[:, 2]).sum()),
                    "leaked": int(graph.contains(held).sum()),
                    "untrained": int((graph.degree(ids_in(added.new_entities)) == 0).sum()),
                },
            }
        )
    return rows

"""Divides a static knowledge graph into parts: by arrival, by a kind of growth, time or order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dicgrl.graph.holdout import check_shares
from dicgrl.graph.knowledge.builder import KnowledgeParts
from dicgrl.graph.knowledge.growth import StaticTriples, grow
from dicgrl.graph.knowledge.part import KnowledgePart
from dicgrl.graph.split import (
    GROWTH,
    KNOWLEDGE_WAYS,
    Shares,
    assign,
    by_part,
    check_way,
    first_mention,
)


def split_knowledge(
    static: KnowledgePart,
    by: str,
    shares: Shares,
    times: npt.ArrayLike | None,
    valid: float,
    test: float,
    seed: int,
) -> tuple[KnowledgePart, ...]:
    """See `KnowledgeStream.split`."""
    check_way(by, KNOWLEDGE_WAYS, "a knowledge graph", times)
    check_shares(valid, test)
    triples = np.concatenate([static.train, static.valid, static.test])
    kind = np.repeat(np.arange(3), [len(static.train), len(static.valid), len(static.test)])
    generator = np.random.default_rng(seed)
    arrival = np.zeros(static.num_entities, dtype=np.int64)  # 0 if never mentioned
    if by == "arrival":
        arrival = assign(by, shares, None, static.num_entities, generator, "entities")
        part_of = arrival[triples[:, [0, 2]]].max(axis=1, initial=0)
    elif by in GROWTH:
        counts = (len(static.train), static.num_entities, static.num_relations)
        part_of = grow(by, StaticTriples(triples, *counts, shares, generator))
        first_mention(arrival, triples[:, [0, 2]], part_of)
    else:
        part_of = assign(by, shares, times, len(triples), generator, "triples")
        first_mention(arrival, triples[:, [0, 2]], part_of)
    relation_arrival = np.zeros(static.num_relations, dtype=np.int64)
    first_mention(relation_arrival, triples[:, [1]], part_of)

    builder = KnowledgeParts()
    entity_id = np.empty(static.num_entities, dtype=np.int64)
    relation_id = np.empty(static.num_relations, dtype=np.int64)
    entities, relations = by_part(arrival, len(shares)), by_part(relation_arrival, len(shares))
    rows = by_part(3 * part_of + kind, 3 * len(shares))
    for index in range(len(shares)):
        arriving = entities[index]
        entity_id[arriving] = builder.entities.add(static.entities.labels(arriving))
        arriving = relations[index]
        relation_id[arriving] = builder.relations.add(static.relations.labels(arriving))
        train, *held = (
            np.stack([entity_id[r[:, 0]], relation_id[r[:, 1]], entity_id[r[:, 2]]], axis=1)
            for r in (triples[at] for at in rows[3 * index : 3 * index + 3])
        )
        moments = static.times[rows[3 * index]] if len(static.times) else static.times
        builder.add_held_out(train, valid, test, generator, held, moments)
    return builder.parts

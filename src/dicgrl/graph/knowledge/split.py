"""Divides a static knowledge graph into parts: by arrival of its entities, by time or by order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dicgrl.errors import UserError
from dicgrl.graph.holdout import check_shares
from dicgrl.graph.knowledge.builder import KnowledgeParts
from dicgrl.graph.knowledge.part import KnowledgePart
from dicgrl.graph.split import assign, first_mention


def split_knowledge(
    static: KnowledgePart,
    by: str,
    ratios: Sequence[float],
    times: npt.ArrayLike | None,
    valid: float,
    test: float,
    seed: int,
) -> tuple[KnowledgePart, ...]:
    """See `KnowledgeStream.split`."""
    check_shares(valid, test)
    triples = np.concatenate([static.train, static.valid, static.test])
    kind = np.repeat(np.arange(3), [len(static.train), len(static.valid), len(static.test)])
    generator = np.random.default_rng(seed)
    if by == "class":
        raise UserError("by='class': a knowledge graph has no classes; this is for networks")
    if by == "arrival":
        arrival = assign(by, ratios, None, static.num_entities, generator, "entities")
        part_of = arrival[triples[:, [0, 2]]].max(axis=1, initial=0)
    else:
        part_of = assign(by, ratios, times, len(triples), generator, "triples")
        arrival = np.zeros(static.num_entities, dtype=np.int64)  # never mentioned: known at once
        first_mention(arrival, triples[:, [0, 2]], part_of)
    relation_arrival = np.zeros(static.num_relations, dtype=np.int64)
    first_mention(relation_arrival, triples[:, [1]], part_of)

    builder = KnowledgeParts()
    old_entities, old_relations = list(static.entities), list(static.relations)
    entity_id = np.empty(static.num_entities, dtype=np.int64)
    relation_id = np.empty(static.num_relations, dtype=np.int64)
    for index in range(len(ratios)):
        arriving = np.flatnonzero(arrival == index)
        entity_id[arriving] = builder.entities.add(old_entities[i] for i in arriving)
        arriving = np.flatnonzero(relation_arrival == index)
        relation_id[arriving] = builder.relations.add(old_relations[i] for i in arriving)
        rows = [triples[(part_of == index) & (kind == split)] for split in range(3)]
        train, *held = (
            np.stack([entity_id[r[:, 0]], relation_id[r[:, 1]], entity_id[r[:, 2]]], axis=1)
            for r in rows
        )
        if valid or test:
            builder.add_held_out(train, valid, test, generator, held)
        else:
            builder.add(train, *held)
    return builder.parts

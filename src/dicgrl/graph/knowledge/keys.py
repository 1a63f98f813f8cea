"""One number for each triple, which never changes while the graph grows."""

from __future__ import annotations

import numpy as np

from dicgrl.common.room import room
from dicgrl.graph.arrays import IntArray

ENTITY_BITS = 24
RELATION_BITS = 15
MAX_ENTITIES = 1 << ENTITY_BITS  # 16.7 million
MAX_RELATIONS = 1 << RELATION_BITS


def triple_keys(triples: IntArray) -> IntArray:
    """One int64 per triple, [n]: 24 + 15 + 24 bits.

    Example:
        >>> keys = triple_keys(np.array([[0, 0, 1], [1, 0, 0]]))
        >>> len(set(keys.tolist()))
        2
    """
    keys = _wide(triples[:, 0])
    for bits, column in ((RELATION_BITS, 1), (ENTITY_BITS, 2)):  # in place: triples may be many
        keys <<= bits
        keys |= triples[:, column]
    return keys


def question_keys(triples: IntArray, asked: str) -> IntArray:
    """One int64 per question, [n]: (h, r, ?) where the tail is asked for, else (?, r, t)."""
    keys = _wide(triples[:, 0 if asked == "tail" else 2])
    keys <<= RELATION_BITS
    keys |= triples[:, 1]
    return keys


def _wide(ids: IntArray) -> IntArray:
    keys = room(len(ids), np.int64)
    keys[:] = ids
    return keys


def question_of(keys: IntArray) -> tuple[IntArray, IntArray]:
    """The relations and the given entities that `question_keys` made keys of, in 32 bits.

    Example:
        >>> keys = question_keys(np.array([[7, 3, 5]]), "tail")
        >>> [ids.tolist() for ids in question_of(keys)]
        [[3], [7]]
    """
    relations, entities = keys & (MAX_RELATIONS - 1), keys >> RELATION_BITS
    return relations.astype(np.int32), entities.astype(np.int32)

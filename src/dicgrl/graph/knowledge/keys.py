"""One number for each triple, which never changes while the graph grows."""

from __future__ import annotations

from dicgrl.graph.arrays import IntArray

ENTITY_BITS = 24
RELATION_BITS = 15
MAX_ENTITIES = 1 << ENTITY_BITS  # 16.7 million
MAX_RELATIONS = 1 << RELATION_BITS


def triple_keys(triples: IntArray) -> IntArray:
    """One int64 per triple, [n]: 24 + 15 + 24 bits.

    Example:
        >>> import numpy as np
        >>> keys = triple_keys(np.array([[0, 0, 1], [1, 0, 0]]))
        >>> len(set(keys.tolist()))
        2
    """
    head, relation, tail = triples[:, 0], triples[:, 1], triples[:, 2]
    return (((head << RELATION_BITS) | relation) << ENTITY_BITS) | tail


def question_keys(triples: IntArray, asked: str) -> IntArray:
    """One int64 per question, [n]: (h, r, ?) where the tail is asked for, else (?, r, t)."""
    given = triples[:, 0] if asked == "tail" else triples[:, 2]
    return (given << RELATION_BITS) | triples[:, 1]


def question_of(keys: IntArray) -> tuple[IntArray, IntArray]:
    """The relations and the given entities that `question_keys` made keys of.

    Example:
        >>> import numpy as np
        >>> keys = question_keys(np.array([[7, 3, 5]]), "tail")
        >>> [ids.tolist() for ids in question_of(keys)]
        [[3], [7]]
    """
    return keys & (MAX_RELATIONS - 1), keys >> RELATION_BITS

"""Keys: one number per triple and per question, which does not change while the graph grows.

The key of a triple is an int64 of 24 + 15 + 24 bits as long as the graph has at most 16.7 million
entities. Beyond that it is a pair of whole numbers, (head and relation, tail), stored as one
complex128: both are exact below 2^53, and NumPy sorts, searches and compares complex numbers by
their real part first and then by their imaginary part.
"""

from __future__ import annotations

import numpy as np

from dicgrl.common.room import room
from dicgrl.graph.arrays import BoolArray, IntArray, KeyArray, are_pairs

ENTITY_BITS = 24
RELATION_BITS = 15
NARROW_ENTITIES = 1 << ENTITY_BITS  # 16.7 million; triples of larger ids need pairs
MAX_ENTITIES = MAX_TRIPLES = (1 << 31) - 1  # ids and rows have 32 bits
MAX_RELATIONS = 1 << RELATION_BITS
_TAIL = (1 << ENTITY_BITS) - 1  # the bits of a tail


def triple_keys(triples: IntArray, *, wide: bool | None = None) -> KeyArray:
    """One key per triple, [n], ordered by head, then relation, then tail.

    Args:
        triples: The triples, [n, 3].
        wide: Whether keys are pairs; by default only if single numbers are too narrow. Keys can
            only be compared with keys of the same kind: see `common_keys`.

    Example:
        >>> keys = triple_keys(np.array([[0, 0, 1], [1, 0, 0]]))
        >>> len(set(keys.tolist()))
        2
    """
    if wide is None:
        wide = not fits(triples)
    if wide:
        pairs = room(len(triples), np.complex128)
        pairs.real, pairs.imag = question_keys(triples, "tail"), triples[:, 2]
        return pairs
    keys = question_keys(triples, "tail")
    keys <<= ENTITY_BITS  # in place: triples may be many
    keys |= triples[:, 2]
    return keys


def common_keys(*sets: IntArray) -> list[KeyArray]:
    """The keys of several sets of triples, all of one kind.

    Example:
        >>> few, many = common_keys(np.array([[0, 0, 1]]), np.array([[1 << 30, 0, 0], [0, 0, 1]]))
        >>> np.isin(many, few).tolist()
        [False, True]
    """
    wide = not all(map(fits, sets))
    return [triple_keys(triples, wide=wide) for triples in sets]


def are_among(triples: IntArray, others: IntArray) -> BoolArray:
    """Which triples are among others."""
    own, theirs = common_keys(triples, others)
    return np.isin(own, theirs)


def fits(triples: IntArray) -> bool:
    """Whether single numbers are wide enough for the keys of all triples."""
    return all(int(triples[:, end].max(initial=0)) < NARROW_ENTITIES for end in (0, 2))


def keys_or_none(triples: IntArray) -> IntArray:
    """Keys as single numbers; -1, which no triple has, for triples that need a pair."""
    enough = (triples[:, 0] < NARROW_ENTITIES) & (triples[:, 2] < NARROW_ENTITIES)
    return np.where(enough, triple_keys(triples, wide=False), -1)


def widened(keys: KeyArray) -> KeyArray:
    """The same keys as pairs."""
    if are_pairs(keys):
        return keys
    pairs = room(len(keys), np.complex128)
    pairs.real, pairs.imag = keys >> ENTITY_BITS, keys & _TAIL
    return pairs


def question_keys(triples: IntArray, asked: str) -> IntArray:
    """One int64 per question, [n]: (h, r, ?) if the tail is asked for, otherwise (?, r, t)."""
    keys = room(len(triples), np.int64)
    keys[:] = triples[:, 0 if asked == "tail" else 2]
    keys <<= RELATION_BITS
    keys |= triples[:, 1]
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


def triples_of_questions(keys: IntArray, *, wide: bool) -> tuple[KeyArray, KeyArray]:
    """For each question (h, r, ?), the first and the last key that an answer can have."""
    if wide:
        pairs = keys.astype(np.complex128)
        return pairs, pairs + 1j * MAX_ENTITIES
    enough = keys >> RELATION_BITS < NARROW_ENTITIES
    first = np.where(enough, keys, -1) << ENTITY_BITS  # no triple has a negative number
    return first, first + _TAIL

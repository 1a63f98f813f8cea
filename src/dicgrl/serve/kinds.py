"""Kinds of entities, told from the relations that they have: films have a cast, people are cast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dicgrl.graph import KnowledgeGraph
from dicgrl.graph.arrays import IntArray

_SAME = 0.6  # two ends of relations are of one kind where so much of the smaller is in the larger
_ENDS = 400  # ends of relations that are looked at, those with most facts first
_NAMED = 3  # relations that name a kind
MOST = 7  # kinds that have a colour


class Kinds(NamedTuple):
    """Kinds of entities.

    Attributes:
        names: Names of the kinds, the most frequent first; the last one is the rest.
        of: The kind of each entity, [N].
    """

    names: list[str]
    of: IntArray


def kinds_of(graph: KnowledgeGraph, names: Sequence[str]) -> Kinds:
    """Tell kinds of entities by which ends of which relations they are at.

    Ends that mostly the same entities are at make one kind. An entity is of the kind of the end at
    which it is most often.

    Args:
        graph: The knowledge graph.
        names: Readable names of its relations.
    """
    count, relations = len(graph.entities), max(1, len(graph.relations))
    facts = graph.train
    entity = np.concatenate([facts[:, 0], facts[:, 2]])
    end = np.concatenate([facts[:, 1], facts[:, 1] + relations])  # heads first, then tails
    sizes = np.bincount(end, minlength=2 * relations)
    looked = np.argsort(-sizes, kind="stable")[:_ENDS]
    looked = looked[sizes[looked] > 0]
    times = coo_array((np.ones(len(end)), (entity, end)), shape=(count, 2 * relations)).tocsr()
    times = times[:, looked]
    there = (times > 0).astype(np.float64)
    shared = (there.T @ there).toarray()
    held = shared.diagonal()
    overlap = shared / np.maximum(np.minimum(held[:, None], held[None]), 1.0)
    _, group = connected_components(overlap > _SAME, directed=False)
    groups = coo_array(
        (np.ones(len(looked)), (np.arange(len(looked)), group)),
        shape=(len(looked), int(group.max(initial=-1)) + 1),
    )
    by_group = (times @ groups).toarray()
    mine = by_group.argmax(1) if by_group.shape[1] else np.zeros(count, dtype=np.int64)
    mine = np.where(by_group.any(1), mine, -1)
    frequent = np.argsort(-np.bincount(mine[mine >= 0], minlength=by_group.shape[1]), kind="stable")
    frequent = frequent[:MOST]
    place = np.full(by_group.shape[1] + 1, len(frequent))  # the last is that of -1
    place[frequent] = np.arange(len(frequent))
    said = [_said(looked[group == each], relations, names) for each in frequent]
    return Kinds([*said, "other"], place[mine])


def _said(ends: IntArray, relations: int, names: Sequence[str]) -> str:
    """A kind in words; its ends come with the most frequent first."""
    heads = [names[end] for end in ends.tolist() if end < relations]
    tails = [names[end - relations] for end in ends.tolist() if end >= relations]
    said = [f"has {_listed(heads)}"] if heads else []
    return "; ".join([*said, f"is {_listed(tails)} of"] if tails else said)


def _listed(names: list[str]) -> str:
    more = ", ..." if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more

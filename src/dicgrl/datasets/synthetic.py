"""Synthetic knowledge graphs with known aspects: what does disentangling find, how does it scale?

Every entity has a level in each of A aspects, independently: its price says nothing about its age.
A relation belongs to one aspect and adds a number of levels; (h, r, t) is a fact if t has the level
of h plus that number. So the aspect that a relation should attend to is known, and entities that
are alike in one aspect are unlike in the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dicgrl.graph import KnowledgeStream, KnowledgeStreamBuilder
from dicgrl.graph.arrays import IntArray


@dataclass(frozen=True, slots=True)
class AspectGraph:
    """A graph with its truth.

    Attributes:
        stream: The graph as a stream of one part; `split` it to let it grow.
        level: Level of every entity in every aspect, [entities, aspects].
        aspect_of: The aspect of every relation, [relations].
    """

    stream: KnowledgeStream
    level: IntArray
    aspect_of: IntArray


def aspect_graph(
    entities: int = 1000,
    aspects: int = 4,
    relations_per_aspect: int = 5,
    levels: int = 8,
    triples: int = 20_000,
    valid: float = 0.05,
    test: float = 0.05,
    seed: int = 0,
) -> AspectGraph:
    """Draw a graph with known aspects.

    Args:
        entities: Number of entities.
        aspects: Number of independent aspects.
        relations_per_aspect: Relations of each aspect.
        levels: Levels of each aspect.
        triples: Facts to draw; those beyond the last level and repeats are dropped.
        valid: Share to hold out for validation.
        test: Share to hold out for testing.
        seed: Seed of every choice.

    Example:
        >>> graph = aspect_graph(entities=50, triples=200)
        >>> graph.stream[0].num_relations
        20
    """
    generator = np.random.default_rng(seed)
    level = generator.integers(levels, size=(entities, aspects))
    relations = aspects * relations_per_aspect
    aspect_of = np.arange(relations) % aspects
    shift = generator.integers(1 - levels // 2, levels // 2, size=relations)
    head = generator.integers(entities, size=triples)
    relation = generator.integers(relations, size=triples)
    aspect = aspect_of[relation]
    wanted = level[head, aspect] + shift[relation]
    # Entities sorted by (aspect, level): the members of a level are a range of that order.
    key = (np.arange(aspects) * levels + level).T.ravel()
    order = np.argsort(key, kind="stable")
    start = np.searchsorted(key[order], np.arange(aspects * levels + 1))
    group = aspect * levels + np.clip(wanted, 0, levels - 1)
    size = start[group + 1] - start[group]
    member = start[group] + (generator.random(triples) * size).astype(np.int64)
    exists = (wanted >= 0) & (wanted < levels) & (size > 0)
    tail = order[np.where(exists, member, 0)] % entities
    rows = np.unique(np.stack([head, relation, tail], 1)[exists], axis=0)

    builder = KnowledgeStreamBuilder("synthetic")
    builder.entities.add(f"entity {i}" for i in range(entities))
    builder.relations.add(f"relation {i} of aspect {a}" for i, a in enumerate(aspect_of))
    builder.add_held_out(rows, valid, test, generator)
    return AspectGraph(builder.build(), level, aspect_of)

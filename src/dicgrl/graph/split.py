"""Makes a stream out of one static graph: by entity arrival, by time, by order or by class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import UserError, unknown_name
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.builder import KnowledgeStreamBuilder, NetworkStreamBuilder
from dicgrl.graph.holdout import check_shares, hold_out_nodes
from dicgrl.graph.part import SPLITS
from dicgrl.graph.stream import KnowledgeStream, NetworkStream

WAYS = ("arrival", "time", "order", "class")


def split_knowledge(
    stream: KnowledgeStream,
    by: str,
    ratios: Sequence[float],
    times: npt.ArrayLike | None,
    valid: float,
    test: float,
    seed: int,
) -> KnowledgeStream:
    """See `KnowledgeStream.split`."""
    check_shares(valid, test)
    static = stream.merged()[0]
    triples = np.concatenate([static.train, static.valid, static.test])
    kind = np.repeat(np.arange(3), [len(static.train), len(static.valid), len(static.test)])
    generator = np.random.default_rng(seed)
    if by == "class":
        raise UserError("by='class': a knowledge graph has no classes; this is for networks")
    if by == "arrival":
        arrival = _assign(by, ratios, None, static.num_entities, generator, "entities")
        part_of = arrival[triples[:, [0, 2]]].max(axis=1, initial=0)
    else:
        part_of = _assign(by, ratios, times, len(triples), generator, "triples")
        arrival = np.zeros(static.num_entities, dtype=np.int64)  # never mentioned: known at once
        _first_mention(arrival, triples[:, [0, 2]], part_of)
    relation_arrival = np.zeros(static.num_relations, dtype=np.int64)
    _first_mention(relation_arrival, triples[:, [1]], part_of)

    builder = KnowledgeStreamBuilder(stream.name)
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
    return builder.build(stream.names)


def split_network(
    stream: NetworkStream,
    by: str,
    ratios: Sequence[float],
    times: npt.ArrayLike | None,
    valid: float,
    test: float,
    seed: int,
) -> NetworkStream:
    """See `NetworkStream.split`."""
    check_shares(valid, test)
    static = stream.merged()[0]
    generator = np.random.default_rng(seed)
    if by == "class":
        present = np.unique(static.labels[static.labels >= 0])
        # A node of no class, -1, comes first.
        of_class = np.zeros(static.num_classes + 1, dtype=np.int64)
        of_class[present] = _assign(by, ratios, times, len(present), generator, "classes")
        arrival = of_class[static.labels]
    else:
        arrival = _assign(by, ratios, times, static.num_nodes, generator, "nodes")
    edge_part = arrival[static.edges].max(axis=1, initial=0)
    role = np.full(static.num_nodes, -1, dtype=np.int64)
    for number, split in enumerate(SPLITS):
        role[getattr(static, split)] = number
    class_arrival = np.zeros(static.num_classes, dtype=np.int64)
    labelled = np.flatnonzero(static.labels >= 0)
    _first_mention(class_arrival, static.labels[labelled, None], arrival[labelled])

    builder = NetworkStreamBuilder(stream.name, stream.num_features)
    old_nodes, old_classes = list(static.nodes), list(static.classes)
    node_id = np.empty(static.num_nodes, dtype=np.int64)
    class_id = np.full(static.num_classes + 1, -1, dtype=np.int64)  # the last is 'not known'
    for index in range(len(ratios)):
        arriving = np.flatnonzero(arrival == index)
        first = len(builder.nodes)
        node_id[arriving] = builder.nodes.add(old_nodes[i] for i in arriving)
        classes = np.flatnonzero(class_arrival == index)
        class_id[classes] = builder.classes.add(old_classes[i] for i in classes)
        labels = class_id[static.labels[arriving]]
        sets = [np.flatnonzero(role[arriving] == number) for number in range(3)]
        if valid or test:
            train = sets[0]
            chosen = hold_out_nodes(labels[train], valid, test, generator)
            sets = [
                train[chosen[0]],
                *(np.concatenate([s, train[c]]) for s, c in zip(sets[1:], chosen[1:], strict=True)),
            ]
        builder.add(
            node_id[static.edges[edge_part == index]],
            static.features[arriving],
            labels,
            *(first + chosen for chosen in sets),
        )
    return builder.build(stream.names)


def _first_mention(arrival: IntArray, mentions: IntArray, part_of: IntArray) -> None:
    """Set `arrival[x]` to the first part whose rows mention x; others keep their value."""
    flat = mentions.ravel()
    parts = np.repeat(part_of, mentions.shape[1])
    first = np.full(len(arrival), np.iinfo(np.int64).max)
    np.minimum.at(first, flat, parts)
    arrival[flat] = first[flat]


def _assign(
    by: str,
    ratios: Sequence[float],
    times: npt.ArrayLike | None,
    count: int,
    generator: np.random.Generator,
    what: str,
) -> IntArray:
    """The part of each of `count` things."""
    shares = np.asarray(ratios, dtype=np.float64)
    if shares.ndim != 1 or not ((shares > 0).all() and abs(shares.sum() - 1) <= 1e-6):  # nan fails
        raise UserError(f"ratios {list(ratios)}: they must be above 0 and sum to 1")
    if by not in WAYS:
        raise unknown_name("way to split", by, WAYS)
    if (by == "time") != (times is not None):
        raise UserError(f"by={by!r}: times are needed for 'time' and for nothing else")
    ends = np.round(np.cumsum(shares) * count).astype(np.int64)
    ends[-1] = count  # whatever the shares' rounding left over
    if by == "time":
        values: npt.NDArray[Any] = np.asarray(times)
        if values.shape != (count,):
            raise UserError(
                f"times has shape {values.shape}; expected one for each of {count} {what}"
            )
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        # A cut inside a run of equal times moves to the end of that run.
        inner = ends[:-1][ends[:-1] > 0]
        ends[:-1][ends[:-1] > 0] = np.searchsorted(ordered, ordered[inner - 1], side="right")
    elif by == "arrival":
        order = generator.permutation(count)
    else:
        order = np.arange(count)
    sizes = np.diff(ends, prepend=0)
    if (sizes <= 0).any():
        raise UserError(
            f"part {int(np.argmax(sizes <= 0))} of {len(shares)} would be empty: {count} {what} "
            f"are too few{' or their times too alike' if by == 'time' else ''}"
        )
    parts = np.empty(count, dtype=np.int64)
    parts[order] = np.repeat(np.arange(len(shares)), sizes)
    return parts

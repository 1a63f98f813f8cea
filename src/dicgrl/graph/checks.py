"""Refuses parts that do not hold together, where they are built and where a graph takes them in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dicgrl.errors import UserError, shown
from dicgrl.graph.arrays import FloatArray, IntArray, as_edges, as_ids, as_triples, ids_in
from dicgrl.graph.part import SPLITS, KnowledgePart, NetworkPart, Part
from dicgrl.graph.vocabulary import Vocabulary


def checked(part: Part) -> Part:
    """The part by itself; whether it fits to a graph is for the graph to say.

    Raises:
        UserError: Something does not hold together.
    """
    if isinstance(part, KnowledgePart):
        return checked_knowledge(part)
    shape = np.shape(part.features)
    return checked_network(part, shape[1] if len(shape) == 2 else 0)


def checked_knowledge(part: KnowledgePart) -> KnowledgePart:
    """The part with int64 triples [n, 3], in which every id has a label.

    Raises:
        UserError: Something does not fit; the message names the split and the row.
    """
    of = f"of part {part.index}"
    _check_ids(f"new entities {of}", ids_in(part.new_entities), part.entities)
    _check_ids(f"new relations {of}", ids_in(part.new_relations), part.relations)
    found = {split: as_triples(getattr(part, split), f"{split} triples {of}") for split in SPLITS}
    for split, rows in found.items():
        for column, labels in enumerate((part.entities, part.relations, part.entities)):
            _check_ids(f"{split} triples {of}", rows[:, column], labels)
    train, valid, test = found.values()
    return replace(part, train=train, valid=valid, test=test)


def checked_network(part: NetworkPart, num_features: int) -> NetworkPart:
    """The part with int64 ids that have labels, finite features, and a class where one is needed.

    Nodes of a split that arrived earlier have their classes elsewhere: see `check_classes`.

    Args:
        part: The part.
        num_features: Length of a node's feature vector.

    Raises:
        UserError: Something does not fit; the message names the split and the row.
    """
    of = f"of part {part.index}"
    _check_ids(f"new nodes {of}", ids_in(part.new_nodes), part.nodes)
    _check_ids(f"new classes {of}", ids_in(part.new_classes), part.classes)
    edges = as_edges(part.edges, f"edges {of}")
    for ends in edges.T:
        _check_ids(f"edges {of}", ends, part.nodes)
    features = _checked_features(part, num_features)
    classes = as_ids(part.labels, f"classes {of}")
    if len(classes) != len(part.new_nodes):
        raise UserError(
            f"part {part.index} brings {len(part.new_nodes)} nodes, but {len(classes)} classes"
        )
    _check_ids(f"classes {of}", classes, part.classes, lowest=-1)
    sets = {split: as_ids(getattr(part, split), f"{split} nodes {of}") for split in SPLITS}
    for split, nodes in sets.items():
        _check_ids(f"{split} nodes {of}", nodes, part.nodes)
        rows = np.flatnonzero((nodes >= part.new_nodes.start) & (nodes < part.new_nodes.stop))
        check_classes(part, split, rows, classes[nodes[rows] - part.new_nodes.start])
    train, valid, test = sets.values()
    return replace(
        part, edges=edges, features=features, labels=classes, train=train, valid=valid, test=test
    )


def check_classes(part: NetworkPart, split: str, rows: IntArray, classes: IntArray) -> None:
    """Refuse a node of a split whose class is not known.

    Args:
        part: The part.
        split: The split.
        rows: Some of its rows.
        classes: Class ids of the nodes there, -1 where not known.
    """
    without = rows[classes < 0]
    if len(without):
        row = int(without[0])
        label = part.nodes.labels(getattr(part, split)[[row]])[0]
        raise UserError(
            f"{split} nodes of part {part.index}: row {row} is node {shown(label)}, which has no "
            "class"
        )


def _checked_features(part: NetworkPart, num_features: int) -> FloatArray:
    with np.errstate(over="ignore"):  # what is too large is found to be infinite
        features = np.ascontiguousarray(part.features, dtype=np.float32)
    if features.ndim != 2 or len(features) != len(part.new_nodes):
        raise UserError(
            f"part {part.index} brings {len(part.new_nodes)} nodes, but features of shape "
            f"{list(features.shape)}"
        )
    if features.shape[1] != num_features:
        raise UserError(
            f"part {part.index} has {features.shape[1]} features per node; this network has "
            f"{num_features}"
        )
    if not np.isfinite([features.min(initial=0), features.max(initial=0)]).all():
        row, column = np.argwhere(~np.isfinite(features))[0]
        label = part.nodes.labels([part.new_nodes[row]])[0]
        raise UserError(
            f"feature {column} of node {shown(label)} of part {part.index} is "
            f"{features[row, column]}; not finite"
        )
    return features


def _check_ids(what: str, ids: IntArray, labels: Vocabulary, lowest: int = 0) -> None:
    if ids.min(initial=0) < lowest or ids.max(initial=-1) >= len(labels):
        row = int(np.argmax((ids < lowest) | (ids >= len(labels))))
        raise UserError(
            f"{what}: row {row} has {labels.kind} id {ids[row]}; expected {lowest} <= id < "
            f"{len(labels)}"
        )

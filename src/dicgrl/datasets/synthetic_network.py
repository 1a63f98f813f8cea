"""Synthetic networks whose classes are known, of any size, that grow part by part.

Every node has a class; its features are the mean of that class plus noise, and an edge joins nodes
of one class with a given probability. High `same` gives a network in which neighbours tell a node's
class, low `same` one in which they have other classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dicgrl.errors import UserError
from dicgrl.graph import NetworkStream, NetworkStreamBuilder
from dicgrl.graph.arrays import IntArray


def class_network(
    nodes: int = 1000,
    classes: int = 5,
    degree: float = 6.0,
    same: float = 0.8,
    features: int = 16,
    signal: float = 1.0,
    shares: Sequence[float] = (0.7, 0.1, 0.1, 0.1),
    arrival: Sequence[int] = (),
    train: float = 0.3,
    valid: float = 0.2,
    seed: int = 0,
) -> NetworkStream:
    """Draw a network that grows.

    Args:
        nodes: Number of nodes.
        classes: Number of classes, all of about the same size.
        degree: Mean number of neighbours.
        same: Probability that an edge joins two nodes of one class.
        features: Length of a node's feature vector.
        signal: Length of the mean of a class, against noise of standard deviation 1 in each number.
        shares: Share of the nodes that arrives with each part; of each class those of the parts in
            which it is there already.
        arrival: The part with which each class arrives; all with the first unless given.
        train: Share of the nodes of a part to learn from.
        valid: Share to select a model with; the rest is to measure with.
        seed: Seed of every choice.

    Raises:
        UserError: `arrival` does not name a part for each class.

    Example:
        >>> stream = class_network(nodes=100, classes=3, arrival=(0, 0, 2))
        >>> [len(part.new_classes) for part in stream]
        [2, 0, 1, 0]
    """
    first = np.asarray(arrival or [0] * classes)
    if len(first) != classes or first.min() != 0 or first.max() >= len(shares):
        raise UserError(f"arrival={list(arrival)}: expected a part of {len(shares)} for each class")
    random = np.random.default_rng(seed)
    means = random.normal(size=(classes, features))
    means *= signal / np.linalg.norm(means, axis=1, keepdims=True)
    label = random.integers(classes, size=nodes)
    part_of = _arrivals(label, first, np.asarray(shares, dtype=np.float64), random)
    order = np.argsort(part_of, kind="stable")  # ids follow the arrival
    label, part_of = label[order], part_of[order]
    ends = _edges(label, classes, round(nodes * degree / 2), same, random)
    edge_part = part_of[ends].max(1)
    x = (means[label] + random.normal(size=(nodes, features))).astype(np.float32)
    role = np.searchsorted([train, train + valid], random.random(nodes), side="right")

    builder = NetworkStreamBuilder("synthetic network", features)
    named = np.argsort(first, kind="stable")  # classes are known in the order of their arrival
    rank = np.empty(classes, np.int64)
    rank[named] = np.arange(classes)
    for part in range(len(shares)):
        mine = np.flatnonzero(part_of == part)
        builder.nodes.add(f"node {node}" for node in mine)
        builder.classes.add(f"class {number}" for number in named[first[named] == part])
        sets = [mine[role[mine] == number] for number in range(3)]
        builder.add(ends[edge_part == part], x[mine], rank[label[mine]], *sets)
    return builder.build()


def _arrivals(
    label: IntArray, first: IntArray, shares: np.ndarray, random: np.random.Generator
) -> IntArray:
    """The part of every node: by the shares of those in which its class is there."""
    part_of = np.empty(len(label), np.int64)
    for number, since in enumerate(first):
        mine = np.flatnonzero(label == number)
        left = shares[since:] / shares[since:].sum()
        part_of[mine] = since + random.choice(len(left), size=len(mine), p=left)
    return part_of


def _edges(
    label: IntArray, classes: int, count: int, same: float, random: np.random.Generator
) -> IntArray:
    """Edges [count, 2]; the other end is of the same class, or of any other one alike."""
    by_class = np.argsort(label, kind="stable")
    size = np.bincount(label, minlength=classes)
    start = np.cumsum(size) - size
    one = random.integers(len(label), size=count)
    shift = np.where(random.random(count) < same, 0, random.integers(1, max(classes, 2), count))
    wanted = (label[one] + shift) % classes
    wanted = np.where(size[wanted] > 0, wanted, label[one])
    other = by_class[start[wanted] + (random.random(count) * size[wanted]).astype(np.int64)]
    return np.stack([one, other], 1)

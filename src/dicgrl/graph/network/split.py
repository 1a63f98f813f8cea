"""Divides a static network into parts: by arrival of its nodes, by time, by order or by class."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dicgrl.graph.holdout import check_shares
from dicgrl.graph.network.builder import NetworkParts
from dicgrl.graph.network.holdout import hold_out_nodes
from dicgrl.graph.network.part import NetworkPart
from dicgrl.graph.part import SPLITS
from dicgrl.graph.split import NETWORK_WAYS, Shares, assign, by_part, check_way, first_mention


def split_network(
    static: NetworkPart,
    by: str,
    shares: Shares,
    times: npt.ArrayLike | None,
    valid: float,
    test: float,
    seed: int,
) -> tuple[NetworkPart, ...]:
    """See `NetworkStream.split`."""
    check_way(by, NETWORK_WAYS, "a network", times)
    check_shares(valid, test)
    generator = np.random.default_rng(seed)
    if by == "class":
        present = np.unique(static.labels[static.labels >= 0])
        # A node of no class, -1, comes first.
        of_class = np.zeros(static.num_classes + 1, dtype=np.int64)
        of_class[present] = assign(by, shares, times, len(present), generator, "classes")
        arrival = of_class[static.labels]
    else:
        by = "arrival" if by == "nightly" else by  # they differ in the usual shares
        arrival = assign(by, shares, times, static.num_nodes, generator, "nodes")
    edge_part = arrival[static.edges].max(axis=1, initial=0)
    role = np.full(static.num_nodes, -1, dtype=np.int64)
    for number, split in enumerate(SPLITS):
        role[getattr(static, split)] = number
    class_arrival = np.zeros(static.num_classes, dtype=np.int64)
    labelled = np.flatnonzero(static.labels >= 0)
    first_mention(class_arrival, static.labels[labelled, None], arrival[labelled])

    builder = NetworkParts(static.features.shape[1])
    old_nodes, old_classes = list(static.nodes), list(static.classes)
    node_id = np.empty(static.num_nodes, dtype=np.int64)
    class_id = np.full(static.num_classes + 1, -1, dtype=np.int64)  # the last is 'not known'
    edges = by_part(edge_part, len(shares))
    for index, arriving in enumerate(by_part(arrival, len(shares))):
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
            node_id[static.edges[edges[index]]],
            static.features[arriving],
            labels,
            *(first + chosen for chosen in sets),
        )
    return builder.parts

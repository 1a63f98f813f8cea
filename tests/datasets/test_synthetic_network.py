from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicgrl import UserError
from dicgrl.datasets.synthetic_network import class_network
from dicgrl.graph import SPLITS, NetworkStream


def merged_labels(stream: NetworkStream) -> np.ndarray:
    return np.concatenate([part.labels for part in stream])


@settings(max_examples=20)
@given(
    nodes=st.integers(5, 80),
    arrival=st.lists(st.integers(0, 2), min_size=1, max_size=5).map(lambda x: (0, *x)),
    seed=st.integers(0, 99),
)
def test_every_node_arrives_once_and_no_edge_comes_before_its_ends(
    nodes: int, arrival: tuple[int, ...], seed: int
) -> None:
    shares = (0.5, 0.3, 0.2)
    stream = class_network(nodes, len(arrival), 4, 0.5, 3, 1.0, shares, arrival, seed=seed)
    assert [len(part.new_classes) for part in stream] == [arrival.count(i) for i in range(3)]
    seen = 0
    for part in stream:
        assert part.new_nodes.start == seen
        seen = part.new_nodes.stop
        assert (part.edges < seen).all()
        assert (part.labels < part.num_classes).all() and (part.labels >= 0).all()
        held = np.concatenate([getattr(part, split) for split in SPLITS])
        assert sorted(held) == list(part.new_nodes)  # every node has one role
    assert seen == nodes


@pytest.mark.parametrize("same", [0.1, 0.9])
def test_as_many_edges_join_nodes_of_one_class_as_was_asked(same: float) -> None:
    stream = class_network(2000, 4, 10, same)
    labels = merged_labels(stream)
    edges = np.concatenate([part.edges for part in stream])
    assert len(edges) == 10_000
    joined = (labels[edges[:, 0]] == labels[edges[:, 1]]).mean()
    assert abs(joined - same) < 4 * (same * (1 - same) / len(edges)) ** 0.5


def test_the_same_seed_draws_the_same_network() -> None:
    first, again, other = (class_network(50, 2, seed=seed) for seed in (1, 1, 2))
    for mine, theirs in zip(first, again, strict=True):
        assert np.array_equal(mine.edges, theirs.edges)
        assert np.array_equal(mine.features, theirs.features)
    assert not np.array_equal(first[0].features[:5], other[0].features[:5])


@pytest.mark.parametrize("arrival", [(0,), (1, 1), (0, 4)])
def test_classes_without_a_part_are_refused(arrival: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match="expected a part of 4 for each class"):
        class_network(20, 2, arrival=arrival)

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dicgrl.graph import NetworkGraph, NetworkStreamBuilder
from dicgrl.models import Components, NetworkModel
from dicgrl.training.neighbours import IndexedNeighbourhood, SampledNeighbourhood, WholeNetwork


class Network(NamedTuple):
    """Edges without self loops as pairs (source, target), each once."""

    nodes: int
    pairs: list[tuple[int, int]]

    @property
    def x(self) -> Tensor:
        """The number of a node is its one feature: so a row says which node it is."""
        return torch.arange(self.nodes, dtype=torch.float32)[:, None]

    @property
    def edge_index(self) -> Tensor:
        loops = [(i, i) for i in range(self.nodes)]
        return torch.tensor(self.pairs + loops, dtype=torch.long).T

    def draw(self, layers: int, count: int, seed: int = 0) -> SampledNeighbourhood:
        generator = torch.Generator().manual_seed(seed)
        return SampledNeighbourhood(self.x, self.edge_index, layers, count, generator)

    def into(self, node: int) -> set[int]:
        return {v for v, u in self.pairs if u == node}


@st.composite
def networks(draw: st.DrawFn) -> Network:
    nodes = draw(st.integers(1, 9))
    node = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=30, unique=True))
    return Network(nodes, [(v, u) for v, u in pairs if v != u])


@st.composite
def batches(draw: st.DrawFn, network: Network) -> list[int]:
    return draw(st.lists(st.integers(0, network.nodes - 1), min_size=1, unique=True))


def in_nodes(x: Tensor, edges: Tensor) -> tuple[list[int], list[tuple[int, int]]]:
    """Rows and edges in the numbers of the whole network."""
    rows = [int(value) for value in x[:, 0].tolist()]
    return rows, [(rows[v], rows[u]) for v, u in edges.T.tolist()]


@given(networks(), st.integers(1, 3), st.integers(1, 4), st.data())
def test_what_is_drawn_is_a_part_of_the_network(
    network: Network, layers: int, count: int, data: st.DataObject
) -> None:
    sampler = network.draw(layers, count)
    for _ in range(3):  # the second and third batch find no trace of the ones before
        batch = data.draw(batches(network))
        x, edges, positions, nodes = sampler(torch.tensor(batch))
        rows, found = in_nodes(x, edges)
        assert nodes.tolist() == rows
        assert [rows[i] for i in positions.tolist()] == batch
        assert len(set(rows)) == len(rows)  # no node twice
        assert len(set(found)) == len(found)  # no edge twice
        drawn = [(v, u) for v, u in found if v != u]
        assert set(drawn) <= set(network.pairs)
        assert len(found) - len(drawn) == len(rows)  # and a self loop for each

        # Layer by layer: who is reached in fewer than `layers` steps draws, once; nobody else.
        expanded, reached = set(), set(batch)
        for _ in range(layers):
            frontier = reached - expanded
            expanded |= frontier
            reached |= {v for v, u in drawn if u in frontier}
        assert reached == set(rows)
        for node in rows:
            own = [v for v, u in drawn if u == node]
            wanted = min(count, len(network.into(node))) if node in expanded else 0
            assert len(own) == wanted


@given(networks(), st.integers(1, 3), st.data())
def test_a_large_count_takes_every_neighbour(
    network: Network, layers: int, data: st.DataObject
) -> None:
    batch = data.draw(batches(network))
    reached, edges = set(batch), set()
    frontier = set(batch)
    for _ in range(layers):
        step = {(v, u) for v, u in network.pairs if u in frontier}
        edges |= step
        frontier = {v for v, _ in step} - reached
        reached |= frontier
    x, edge_index, _, _ = network.draw(layers, count=9)(torch.tensor(batch))
    rows, found = in_nodes(x, edge_index)
    assert set(rows) == reached
    assert {(v, u) for v, u in found if v != u} == edges


MODELS = [
    NetworkModel(name, num_features=1, hidden=3, heads=2, layers=layers, components=form)
    for name in ("gat", "sage")
    for layers in (1, 2, 3)
    for form in (None, Components(3, 2, "nodes"))
]


@pytest.mark.parametrize(
    "model",
    MODELS,
    ids=lambda m: f"{m.name}-{len(m.stack)}-{'divided' if m.components else 'plain'}",
)
@settings(max_examples=10)
@given(network=networks(), data=st.data())
def test_with_all_neighbours_a_batch_scores_as_in_the_whole_network(
    model: NetworkModel, network: Network, data: st.DataObject
) -> None:
    if not model.num_classes:
        model.grow(3)
    model.eval()
    batch = torch.tensor(data.draw(batches(network)))
    sampled = network.draw(len(model.stack), count=9)
    sampled.x = network.x / 5 - 1  # smaller numbers than the ones that name the nodes
    scores = []
    for neighbourhood in (WholeNetwork(sampled.x, network.edge_index), sampled):
        seen = neighbourhood(batch)
        scores.append(model(seen.x, seen.edges)[seen.positions])
    assert torch.allclose(*scores, atol=1e-5)


def test_the_whole_network_is_handed_on_as_it_is() -> None:
    x, edges, nodes = torch.ones(3, 2), torch.tensor([[0, 1], [1, 0]]), torch.tensor([2, 0])
    found = WholeNetwork(x, edges)(nodes)
    assert found.x is x and found.edges is edges and found.positions is nodes
    assert torch.equal(x[found.nodes], x)


STAR = Network(9, [(leaf, 0) for leaf in range(1, 9)])


@pytest.mark.parametrize("count", [1, 3])
def test_every_neighbour_is_as_likely_as_every_other(count: int) -> None:
    sampler = STAR.draw(1, count)
    times = 2000
    seen: Counter[int] = Counter()
    for _ in range(times):
        x, edges, _, _ = sampler(torch.tensor([0]))
        seen.update(v for v, u in in_nodes(x, edges)[1] if v != u)
    expected = times * count / 8
    spread = (expected * (1 - count / 8)) ** 0.5
    assert set(seen) == set(range(1, 9))
    assert all(abs(number - expected) < 5 * spread for number in seen.values())


@pytest.mark.parametrize("leaves", [32, 33, 47, 200])
def test_neighbours_of_a_hub_are_drawn_evenly_and_once(leaves: int) -> None:
    """Beyond 16 times the count not all edges are looked at."""
    count, times = 2, 4000
    sampler = Network(leaves + 1, [(leaf, 0) for leaf in range(1, leaves + 1)]).draw(1, count)
    seen: Counter[int] = Counter()
    for _ in range(times):
        x, edges, _, _ = sampler(torch.tensor([0]))
        drawn = [v for v, u in in_nodes(x, edges)[1] if v != u]
        assert len(drawn) == len(set(drawn)) == count
        seen.update(drawn)
    expected = times * count / leaves
    assert set(seen) == set(range(1, leaves + 1))
    assert all(abs(number - expected) < 5 * expected**0.5 for number in seen.values())


def test_a_seed_gives_the_same_draws_and_each_draw_is_new() -> None:
    def draws(seed: int) -> list[list[int]]:
        sampler = STAR.draw(1, 3, seed)
        return [sampler(torch.tensor([0]))[0][:, 0].tolist() for _ in range(5)]

    torch.manual_seed(1)
    outside = torch.get_rng_state()
    first = draws(0)
    assert torch.equal(torch.get_rng_state(), outside)  # no global state is used
    torch.manual_seed(2)
    assert draws(0) == first
    assert draws(1) != first
    assert len({tuple(rows) for rows in first}) > 1


def test_directions_are_kept() -> None:
    """Messages come from sources: a leaf of a star that only sends hears nobody."""
    x, edges, positions, nodes = STAR.draw(2, 4)(torch.tensor([5]))
    assert (x.tolist(), edges.tolist(), positions.tolist()) == ([[5.0]], [[0], [0]], [0])
    assert nodes.tolist() == [5]


def test_no_edges_and_no_nodes() -> None:
    bare = Network(3, [])
    x, edges, _, _ = bare.draw(2, 4)(torch.tensor([2, 0]))
    assert (sorted(x.tolist()), edges.tolist()) == ([[0.0], [2.0]], [[0, 1], [0, 1]])
    x, edges, positions, _ = STAR.draw(2, 4)(torch.tensor([], dtype=torch.long))
    assert x.shape == (0, 1) and edges.shape == (2, 0) and positions.shape == (0,)


def test_the_size_of_a_batch_follows_the_count_and_not_the_network() -> None:
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, 20_000, (2, 400_000), generator=generator)
    sampler = SampledNeighbourhood(torch.zeros(20_000, 1), edge_index, 2, 3, generator)
    x, edges, _, _ = sampler(torch.arange(10))
    assert len(x) <= 10 * (1 + 3 + 9)
    assert edges.shape[1] <= 10 * (3 + 9) + len(x)


def test_a_node_may_stand_in_a_batch_twice() -> None:
    once = STAR.draw(2, 9)(torch.tensor([0, 1]))
    twice = STAR.draw(2, 9)(torch.tensor([1, 0, 1]))
    assert torch.equal(once[0], twice[0])
    assert sorted(once[1].T.tolist()) == sorted(twice[1].T.tolist())
    assert twice[0][twice[2]][:, 0].tolist() == [1, 0, 1]


def graph_of(nodes: int, pairs: list[tuple[int, int]], parts: int) -> NetworkGraph:
    """Undirected edges between nodes, all there from the start, that arrive with several parts."""
    builder = NetworkStreamBuilder("random", num_features=1)
    builder.nodes.add(str(node) for node in range(nodes))
    none = np.empty(0, np.int64)
    for part in range(parts):
        count = nodes if part == 0 else 0
        edges = np.array(pairs[part::parts], dtype=np.int64).reshape(-1, 2)
        features = np.arange(count, dtype=np.float32)[:, None]
        builder.add(edges, features, np.full(count, -1), none, none, none)
    graph = NetworkGraph(num_features=1)
    for part_of in builder.build():
        graph.add(part_of)
    return graph


@given(networks(), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.data())
def test_the_index_of_a_graph_gives_the_same_kind_of_neighbourhood(
    network: Network, layers: int, count: int, parts: int, data: st.DataObject
) -> None:
    graph = graph_of(network.nodes, network.pairs, parts)
    both = {(v, u) for pair in network.pairs for v, u in (pair, pair[::-1])}
    draw = IndexedNeighbourhood(network.x, graph, layers, count, np.random.default_rng(0))
    for _ in range(2):
        batch = data.draw(batches(network))
        x, edges, positions, nodes = draw(torch.tensor(batch))
        assert isinstance(x, Tensor) and isinstance(edges, Tensor) and isinstance(nodes, Tensor)
        rows, found = in_nodes(x, edges)
        assert nodes.tolist() == rows and [rows[i] for i in positions.tolist()] == batch
        drawn = [(v, u) for v, u in found if v != u]
        assert len(set(found)) == len(found) and len(found) - len(drawn) == len(rows)
        assert set(drawn) <= both
        expanded, reached = set(), set(batch)
        for _ in range(layers):
            frontier = reached - expanded
            expanded |= frontier
            reached |= {v for v, u in drawn if u in frontier}
        assert reached == set(rows)
        for node in rows:
            own, there = [e for e in drawn if e[1] == node], [e for e in both if e[1] == node]
            assert len(own) == (min(count, len(there)) if node in expanded else 0)

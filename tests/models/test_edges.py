from __future__ import annotations

import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.models.edges import PreparedEdges, prepared


@st.composite
def networks(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    nodes = draw(st.integers(1, 8))
    node = st.integers(0, nodes - 1)
    return nodes, draw(st.lists(st.tuples(node, node), max_size=20))


def index_of(pairs: list[tuple[int, int]]) -> torch.Tensor:
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T


@given(networks())
def test_edges_are_sorted_by_target_and_know_where_they_stood(
    network: tuple[int, list[tuple[int, int]]],
) -> None:
    nodes, pairs = network
    edges = PreparedEdges(index_of(pairs), nodes)
    assert torch.equal(edges.index, index_of(pairs))
    proper = [(v, u) for v, u in pairs if v != u]
    assert len(edges) == len(proper)
    assert edges.target.tolist() == sorted(u for _, u in proper)
    found = zip(edges.source.tolist(), edges.target.tolist(), strict=True)
    assert list(found) == [proper[i] for i in edges.order.tolist()]


@given(networks(), st.integers(1, 25))
def test_blocks_hold_every_node_and_every_edge_once(
    network: tuple[int, list[tuple[int, int]]], most: int
) -> None:
    nodes, pairs = network
    edges = PreparedEdges(index_of(pairs), nodes)
    blocks = edges.blocks(most)
    assert edges.blocks(most) is blocks  # cut once
    assert [node for b in blocks for node in range(b.first, b.stop)] == list(range(nodes))
    joined = [
        (v, u + b.first)
        for b in blocks
        for v, u in zip(b.source.tolist(), b.target.tolist(), strict=True)
    ]
    assert joined == list(zip(edges.source.tolist(), edges.target.tolist(), strict=True))
    for block in blocks:
        assert len(block.source) <= most or block.stop == block.first + 1
        assert all(0 <= u < block.stop - block.first for u in block.target.tolist())
    for left, right in itertools.pairwise(blocks):
        # A block is not cut too early: the next node would not have fitted.
        extra = int((right.target == 0).sum())
        assert len(left.source) + extra > most


def test_what_is_prepared_stays() -> None:
    index = torch.tensor([[0, 1], [1, 0]])
    edges = prepared(index, 2)
    assert prepared(edges, 2) is edges

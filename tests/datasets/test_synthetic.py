from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dicgrl.datasets.synthetic import AspectGraph, aspect_graph
from dicgrl.graph import SPLITS


def facts(graph: AspectGraph) -> np.ndarray:
    return np.concatenate([getattr(graph.stream[0], split) for split in SPLITS])


@settings(max_examples=20)
@given(
    entities=st.integers(2, 30),
    aspects=st.integers(1, 4),
    relations=st.integers(1, 4),
    levels=st.integers(2, 9),
    seed=st.integers(0, 99),
)
def test_every_fact_obeys_the_rule_of_its_relation(
    entities: int, aspects: int, relations: int, levels: int, seed: int
) -> None:
    graph = aspect_graph(entities, aspects, relations, levels, triples=150, seed=seed)
    assert graph.level.shape == (entities, aspects)
    assert graph.level.min() >= 0 and graph.level.max() < levels
    steps: dict[int, set[int]] = {}
    for h, r, t in facts(graph).tolist():
        aspect = graph.aspect_of[r]
        steps.setdefault(r, set()).add(int(graph.level[t, aspect] - graph.level[h, aspect]))
    assert all(len(found) == 1 for found in steps.values())  # a relation adds always the same


def test_aspects_are_those_in_the_names_and_of_one_size() -> None:
    graph = aspect_graph(entities=30, aspects=3, relations_per_aspect=4, triples=500)
    names = list(graph.stream.relations)
    assert len(names) == 12 and len(set(names)) == 12
    assert [int(name.rsplit(" ", 1)[1]) for name in names] == graph.aspect_of.tolist()
    assert np.bincount(graph.aspect_of).tolist() == [4, 4, 4]
    assert graph.stream[0].num_entities == 30


def test_all_of_a_level_are_reached_and_nobody_else() -> None:
    graph = aspect_graph(entities=12, aspects=1, relations_per_aspect=1, levels=2, triples=20_000)
    level = graph.level[:, 0]
    expected = {  # with two levels a relation can only add nothing
        (h, 0, t) for h in range(12) for t in range(12) if level[h] == level[t]
    }
    assert {tuple(row) for row in facts(graph).tolist()} == expected


def test_facts_are_drawn_once_and_held_out() -> None:
    graph = aspect_graph(entities=200, triples=5000, valid=0.1, test=0.2)
    part = graph.stream[0]
    rows = facts(graph)
    assert len(np.unique(rows, axis=0)) == len(rows) <= 5000
    assert len(part.valid) == pytest.approx(0.1 * len(rows), abs=1)
    assert len(part.test) == pytest.approx(0.2 * len(rows), abs=1)
    taught = set(part.train[:, [0, 2]].ravel().tolist())
    assert set(part.test[:, [0, 2]].ravel().tolist()) <= taught


def test_aspects_are_independent() -> None:
    level = aspect_graph(entities=4000, aspects=3, levels=6, triples=10).level
    correlation = np.corrcoef(level.T) - np.eye(3)
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


def test_the_same_seed_gives_the_same_graph() -> None:
    first, same, other = (aspect_graph(entities=50, triples=300, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(facts(first), facts(same))
    assert np.array_equal(first.level, same.level)
    assert not np.array_equal(first.level, other.level)


def test_facts_can_be_scored_perfectly() -> None:
    """The rule is a translation: entities at their levels, relations their number of levels."""
    from dicgrl.models import TransE

    graph = aspect_graph(entities=40, aspects=2, relations_per_aspect=3, levels=5, triples=400)
    rows = facts(graph)
    level = torch.from_numpy(graph.level).double()
    aspect = torch.from_numpy(graph.aspect_of[rows[:, 1]])[:, None]
    head, tail = (level[rows[:, c]].gather(1, aspect) for c in (0, 2))
    step = torch.zeros(6, 1).double()
    step[rows[:, 1]] = tail - head
    assert TransE(1).score(head, step[rows[:, 1]], tail).tolist() == [0] * len(rows)

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.datasets.synthetic import aspect_graph
from dicgrl.evaluation.disentanglement import adjusted_rand, overlap, recovery
from dicgrl.settings import Settings
from dicgrl.strategies.bounds import Lower
from dicgrl.trainers import LinkTrainer

groupings = st.integers(2, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)


@given(groupings)
def test_adjusted_rand_is_that_of_scikit_learn(pair: tuple[list[int], list[int]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    first, second = (np.array(labels) for labels in pair)
    expected = metrics.adjusted_rand_score(first, second)
    assert adjusted_rand(first, second) == pytest.approx(expected, abs=1e-12)


@given(groupings, st.permutations(range(5)))
def test_adjusted_rand_does_not_care_for_names_or_order(
    pair: tuple[list[int], list[int]], names: list[int]
) -> None:
    first, second = (np.array(labels) for labels in pair)
    value = adjusted_rand(first, second)
    assert adjusted_rand(np.array(names)[first], second) == pytest.approx(value)
    assert adjusted_rand(second, first) == pytest.approx(value)
    assert value <= 1 + 1e-12
    assert adjusted_rand(first, np.array(names)[first]) == pytest.approx(1.0)


def test_adjusted_rand_of_unrelated_groupings_is_zero_on_average() -> None:
    generator = np.random.default_rng(0)
    values = [
        adjusted_rand(generator.integers(3, size=30), generator.integers(4, size=30))
        for _ in range(300)
    ]
    assert abs(np.mean(values)) < 5 * np.std(values) / np.sqrt(300)


sets_of_three = st.lists(st.sets(st.integers(0, 6), min_size=3, max_size=3), min_size=4, max_size=9)


@given(sets_of_three)
def test_overlap_is_the_jaccard_index(sets: list[set[int]]) -> None:
    shared = overlap(np.array([sorted(chosen) for chosen in sets]), 7)
    for i, j in itertools.product(range(len(sets)), repeat=2):
        expected = len(sets[i] & sets[j]) / len(sets[i] | sets[j])
        assert shared[i, j] == pytest.approx(expected, abs=1e-6)


@given(sets_of_three)
def test_separation_is_the_chance_that_relatives_overlap_more(sets: list[set[int]]) -> None:
    aspects = [i % 2 for i in range(len(sets))]
    pairs = list(itertools.combinations(range(len(sets)), 2))
    common = {(i, j): len(sets[i] & sets[j]) for i, j in pairs}  # rises with Jaccard here
    wins = [
        (common[a] > common[b]) + 0.5 * (common[a] == common[b])
        for a in pairs
        if aspects[a[0]] == aspects[a[1]]
        for b in pairs
        if aspects[b[0]] != aspects[b[1]]
    ]
    chosen = np.array([sorted(one) for one in sets])
    got = recovery(chosen, 7, np.array(aspects))
    assert got["separation"] == pytest.approx(sum(wins) / len(wins))


def test_closed_forms() -> None:
    aspect_of = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    perfect = np.stack([2 * aspect_of, 2 * aspect_of + 1], 1)
    assert recovery(perfect, 6, aspect_of) == {"separation": 1.0, "rand": 1.0}
    assert recovery(perfect[:, ::-1], 6, aspect_of)["rand"] == 1.0
    same = np.tile([0, 1], (8, 1))
    assert recovery(same, 6, aspect_of)["separation"] == 0.5  # nothing tells them apart
    # Components spread so that only relations of different aspects share one.
    crossed = np.array([[0], [1], [0], [1]])
    assert recovery(crossed, 2, np.array([0, 0, 1, 1]))["separation"] == 0.25


def separation(routing: str, seed: int, epochs: int) -> float:
    graph = aspect_graph(100, 2, 6, 6, triples=5000, seed=seed)
    settings = Settings(
        dim=32,
        components=4,
        top=2,
        routing=routing,
        negatives=8,
        batch=512,
        epochs=epochs,
        lr=0.02,
        margin=4.0,
        beta=0.0,
        validate_every=epochs,
    )
    trainer = LinkTrainer(settings, seed, torch.device("cpu"))
    trainer.take(graph.stream[0])
    attention, division = trainer.model.attention, trainer.model.components
    assert attention is not None and division is not None
    start = division.route(attention.rows).chosen
    Lower(Lower.Settings()).learn(trainer)
    chosen = division.route(attention.rows).chosen
    assert torch.equal(chosen, start) == (routing == "published")
    return recovery(chosen.numpy(), 4, graph.aspect_of)["separation"]


def test_learned_routing_finds_the_aspects_and_published_routing_does_not() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        learned = np.mean([separation("learned", seed, 40) for seed in range(2)])
        # Without a gradient the routing stays the random choice of the start: an epoch shows it.
        published = np.mean([separation("published", seed, 1) for seed in range(2)])
    finally:
        torch.set_num_threads(threads)
    assert learned > published + 0.15
    assert learned > 0.65

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.strategies.activation import Activation, Links, _largest, activate, component_bits
from dicgrl.strategies.activator import within_evenly
from dicgrl.strategies.activator_links import LinkActivator, would_activate
from dicgrl.strategies.activator_nodes import NodeActivator
from dicgrl.trainers import LinkTrainer, NodeTrainer
from tests.growing import (
    activator,
    break_ties,
    settings_of,
    strategy_of,
    stream_of,
    trainer_of,
)
from tests.slow_activation import Link, edge_link, slow_activation, triple_link

Ints = npt.NDArray[np.int64]


class Plain:
    """A graph of links in lists."""

    def __init__(self, links: list[Link]) -> None:
        self.links = links

    def ends(self, rows: Ints) -> Ints:
        return as_ends([self.links[i] for i in rows])

    def components(self, rows: Ints) -> Ints:
        return as_bits([self.links[i] for i in rows])

    def links_of(self, nodes: Ints, degree: Ints) -> tuple[Ints, Ints]:
        assert degree.tolist() == self.degree(nodes).tolist()
        pairs = [
            (at, row)
            for at, node in enumerate(nodes.tolist())
            for row, link in enumerate(self.links)
            if node in link.ends
        ]
        at, rows = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return at, rows

    def degree(self, nodes: Ints) -> Ints:
        return np.array([sum(n in link.ends for link in self.links) for n in nodes], np.int64)


def as_ends(links: list[Link]) -> Ints:
    return np.array([link.ends for link in links], dtype=np.int64).reshape(-1, 2)


def as_bits(links: list[Link]) -> Ints:
    return np.array([sum(2**k for k in link.components) for link in links], dtype=np.int64)


def as_set(bits: int) -> set[int]:
    return {k for k in range(63) if bits >> k & 1}


node = st.integers(0, 5)
link = st.builds(Link, st.tuples(node, node), st.sets(st.integers(0, 4), min_size=1, max_size=3))
links = st.lists(link, max_size=10)


@given(links, links, st.sampled_from([1, 2]))
def test_what_is_activated_is_what_the_definition_says(
    old: list[Link], new: list[Link], orders: int
) -> None:
    found = activate(Plain(old), as_ends(new), as_bits(new), orders)
    expected, looked = slow_activation(old, new, orders)
    assert found.rows.tolist() == sorted(expected)  # each once, in order of arrival
    assert found.candidates == len(looked)
    for row, order, common, merit in zip(
        found.rows.tolist(), found.order, found.common.tolist(), found.merit, strict=True
    ):
        assert (order, as_set(common)) == (expected[row].order, expected[row].common)
        assert merit == pytest.approx(expected[row].merit)


def test_a_chain_is_followed_two_links_and_only_in_shared_components() -> None:
    """New: 0-1 in {0, 1}. Old: 1-2 {1, 2}, 2-3 {2}, 2-4 {1}, 4-5 {1}, 0-5 {3}."""
    old = [
        Link((1, 2), {1, 2}),
        Link((2, 3), {2}),
        Link((2, 4), {1}),
        Link((4, 5), {1}),
        Link((0, 5), {3}),
    ]
    new = [Link((0, 1), {0, 1})]
    first = activate(Plain(old), as_ends(new), as_bits(new), orders=1)
    assert first.rows.tolist() == [0] and as_set(int(first.common[0])) == {1}
    assert first.merit.tolist() == [1 / 2]  # half of its components, all of the node's links
    both = activate(Plain(old), as_ends(new), as_bits(new), orders=2)
    assert (both.rows.tolist(), both.order.tolist()) == ([0, 2], [1, 2])
    assert (first.candidates, both.candidates) == (2, 4)  # 4-5 is out of sight
    assert both.merit.tolist() == [1 / 2, 1 / 2 / 3]  # node 2 shares with three old links


def test_a_hub_does_not_fill_the_budget() -> None:
    """Ten old links at a hub share what one link at another node has for itself."""
    old = [Link((0, i), {0}) for i in range(2, 12)] + [Link((1, 2), {0})]
    new = [Link((0, 20), {0}), Link((1, 20), {0})]
    found = activate(Plain(old), as_ends(new), as_bits(new), orders=1)
    assert found.merit.tolist() == pytest.approx([0.1] * 10 + [1.0])
    assert found.within(1, "top", np.random.default_rng(0)).rows.tolist() == [10]


def activation(merit: list[float]) -> Activation:
    rows = np.arange(len(merit)) * 3
    return Activation(rows, rows * 0 + 1, rows * 0 + 1, np.array(merit), len(merit))


merits = st.lists(st.floats(1e-6, 1e6), max_size=12)


@given(merits, st.integers(0, 14), st.sampled_from(["top", "sample"]), st.integers(0, 5))
def test_a_budget_is_kept_without_repeats(
    merit: list[float], budget: int, selection: str, seed: int
) -> None:
    every = activation(merit)
    chosen = every.within(budget, selection, np.random.default_rng(seed))
    assert len(chosen) == min(budget, len(merit))
    rows = chosen.rows.tolist()
    assert rows == sorted(set(rows)) and set(rows) <= set(every.rows.tolist())
    assert chosen.merit.tolist() == [merit[row // 3] for row in rows]  # it goes with its link
    if selection == "top" and rows:
        left = [m for i, m in enumerate(merit) if i * 3 not in rows]
        assert min(chosen.merit) >= max(left, default=-math.inf)


@given(
    st.dictionaries(st.integers(0, 20), st.floats(1e-6, 1e6), max_size=12),
    st.sets(st.integers(0, 20)),
    st.integers(0, 22),
    st.sampled_from(["top", "sample"]),
)
def test_what_was_used_before_is_free_and_others_share_what_is_left(
    merit: dict[int, float], used: set[int], left: int, selection: str
) -> None:
    rows = np.array(sorted(merit), dtype=np.int64)
    values = np.array([merit[row] for row in sorted(merit)])
    every = Activation(rows, rows * 0 + 1, rows * 0 + 1, values, len(rows))
    budget, before = len(used) + left, np.array(sorted(used), dtype=np.int64)
    chosen = every.within(budget, selection, np.random.default_rng(0), before).rows.tolist()
    bought = set(chosen) - used
    others = merit.keys() - used
    assert chosen == sorted(merit.keys() & used | bought)
    assert bought <= others and len(bought) == min(left, len(others))
    if selection == "top" and bought:
        worst = min(merit[row] for row in bought)
        assert worst >= max((merit[row] for row in others - bought), default=-math.inf)


def test_a_budget_that_is_spent_allows_what_was_used_and_nothing_else() -> None:
    every, used = activation([5.0, 1.0, 3.0]), np.array([3, 99])
    for budget in (0, 2):
        chosen = every.within(budget, "top", np.random.default_rng(0), used)
        assert chosen.rows.tolist() == [3]


@pytest.mark.parametrize("form", ["transe-divided", "gat-divided"])
@pytest.mark.parametrize("selection", ["top", "sample", "even"])
def test_a_part_that_activates_anew_keeps_to_its_budget(form: str, selection: str) -> None:
    """A fan of one shows other neighbours each time, and would use up more and more of them."""
    trainer = grown(form, fan=1, orders=1, selection=selection)
    unbounded, used = set(), np.empty(0, np.int64)
    for _ in range(20):
        unbounded |= set(activator(trainer).activate(3).positions.tolist())
        used = np.union1d(used, activator(trainer).activate(3, used).positions)
    assert len(used) == 3 < len(unbounded)


@given(st.integers(1, 12), st.sets(st.integers(0, 19), max_size=12), st.integers(0, 3))
def test_even_draws_keep_what_was_used_and_fill_what_is_left(
    budget: int, used: set[int], seed: int
) -> None:
    generator = np.random.default_rng(seed)
    drawn = generator.choice(20, budget, replace=False)
    before = np.array(sorted(used), dtype=np.int64)
    chosen = within_evenly(drawn, budget, before, generator).tolist()
    assert chosen == sorted(set(chosen)) and used <= set(chosen)
    assert set(chosen) - used <= set(drawn.tolist())
    assert len(chosen) == max(len(used), budget)


def test_even_draws_are_even_beside_what_was_used() -> None:
    generator = np.random.default_rng(0)
    used, times = np.array([1, 4]), 4000
    seen: Counter[int] = Counter()
    for _ in range(times):
        drawn = generator.choice(8, 4, replace=False)
        seen.update(within_evenly(drawn, 4, used, generator).tolist())
    chance = 2 / 6  # two of the six others
    spread = math.sqrt(times * chance * (1 - chance))
    assert seen[1] == seen[4] == times
    assert all(abs(seen[row] - times * chance) < 5 * spread for row in (0, 2, 3, 5, 6, 7))


@pytest.mark.parametrize("form", ["transe-divided", "gat-divided"])
def test_even_draws_come_from_the_whole_history_and_open_what_is_activated(form: str) -> None:
    """A fan of one activates little; what it does not reach is drawn as often."""
    trainer = grown(form, fan=1, orders=1, selection="even")
    every = trainer.nodes("train", 0, 2) if isinstance(trainer, NodeTrainer) else None
    old = set(range(trainer.count("train", 0, 2)) if every is None else every.tolist())
    drawn: Counter[int] = Counter()
    times, budget = 400, len(old) // 3
    for _ in range(times):
        found = activator(trainer).activate(budget)
        drawn.update(found.positions.tolist())
        assert len(found.positions) == len(found.examples) == len(found.weight) == budget
        assert set(found.weight.tolist()) <= {trainer.settings.weight1, trainer.settings.weight2}
        assert len(found.concerned) <= found.activated  # by merit, not by what was drawn
    assert set(drawn) == old
    chance = budget / len(old)
    spread = math.sqrt(times * chance * (1 - chance))
    assert all(abs(count - times * chance) < 5 * spread for count in drawn.values())


def test_what_is_not_activated_weighs_like_order_2() -> None:
    rows = np.array([2, 5, 9])
    every = Activation(rows, np.array([1, 2, 1]), rows, rows * 1.0, 3)
    assert every.orders_of(np.array([0, 2, 5, 7, 9, 11])).tolist() == [2, 1, 2, 2, 1, 2]
    assert every.at(rows < 0).orders_of(rows).tolist() == [2, 2, 2]


def test_a_sample_follows_merit() -> None:
    """One of three is drawn with chances 1 : 2 : 5."""
    generator = np.random.default_rng(0)
    every = activation([1.0, 2.0, 5.0])
    times = 4000
    seen = Counter(int(every.within(1, "sample", generator).rows[0]) for _ in range(times))
    for row, chance in ((0, 1 / 8), (3, 2 / 8), (6, 5 / 8)):
        spread = math.sqrt(times * chance * (1 - chance))
        assert abs(seen[row] - times * chance) < 5 * spread


@given(st.lists(st.sets(st.integers(0, 61), min_size=3, max_size=3), max_size=5))
def test_bits_hold_sets_of_up_to_62_components(sets: list[set[int]]) -> None:
    chosen = np.array([sorted(one) for one in sets], dtype=np.int64).reshape(-1, 3)
    assert [as_set(bits) for bits in component_bits(chosen).tolist()] == sets


def test_two_random_choices_of_4_of_8_nearly_always_share_a_component() -> None:
    bits = component_bits(np.array(list(itertools.combinations(range(8), 4))))
    sharing = (bits[:, None] & bits != 0).mean()
    assert sharing == pytest.approx(1 - 1 / math.comb(8, 4))  # all but the complement: 98.6 %


def grown(form: str, **changes: Any) -> LinkTrainer | NodeTrainer:
    """A trainer that has learned two parts and taken in the third."""
    settings = settings_of(form, "dicgrl", start="random", **changes)
    trainer, learner = trainer_of(settings), strategy_of(settings)
    stream = stream_of(form)
    for part in stream[:2]:
        trainer.take(part)
        learner.learn(trainer)
    if isinstance(trainer, NodeTrainer):
        break_ties(trainer.model)
    trainer.take(stream[2])
    return trainer


def links_of(trainer: LinkTrainer | NodeTrainer) -> Links:
    """The old and new links that the newest part of a trainer speaks of."""
    found = activator(trainer)
    assert isinstance(found, LinkActivator | NodeActivator)
    return found._links()


def check(found: Activation, old: list[Link], new: list[Link], orders: int) -> None:
    expected, looked = slow_activation(old, new, orders)
    assert expected and found.rows.tolist() == sorted(expected)
    assert found.candidates == len(looked)
    assert found.order.tolist() == [expected[row].order for row in sorted(expected)]
    assert [as_set(bits) for bits in found.common.tolist()] == [
        expected[row].common for row in sorted(expected)
    ]
    assert found.merit.tolist() == pytest.approx([expected[r].merit for r in sorted(expected)])


@pytest.mark.parametrize("orders", [1, 2])
@pytest.mark.parametrize("form", ["transe-divided", "transe-published", "transe-nodes"])
def test_a_part_of_a_knowledge_graph_concerns_what_the_definition_says(
    form: str, orders: int
) -> None:
    trainer = grown(form)
    assert isinstance(trainer, LinkTrainer)
    graph = links_of(trainer)
    rows = np.arange(graph.old, len(trainer.graph.train))
    found = activate(graph, graph.ends(rows), graph.components(rows), orders)
    old = [triple_link(trainer.model, row) for row in trainer.examples("train", 0, 2).tolist()]
    new = [triple_link(trainer.model, row) for row in trainer.examples("train", 2).tolist()]
    check(found, old, new, orders)


@pytest.mark.parametrize("orders", [1, 2])
@pytest.mark.parametrize("form", ["gat-divided", "sage-divided"])
def test_a_part_of_a_network_concerns_what_the_definition_says(form: str, orders: int) -> None:
    trainer = grown(form)
    assert (
        isinstance(trainer, NodeTrainer) and trainer.graph is not None and trainer.part is not None
    )
    graph = links_of(trainer)
    rows = np.arange(graph.old, len(trainer.graph.edges))
    found = activate(graph, graph.ends(rows), graph.components(rows), orders)
    x = trainer.x.tolist()
    new = [edge_link(trainer.model, x, edge) for edge in trainer.part.edges.tolist()]
    before = trainer.graph.edges[: len(trainer.graph.edges) - len(new)].tolist()
    check(found, [edge_link(trainer.model, x, edge) for edge in before], new, orders)


@pytest.mark.parametrize("form", ["transe-divided", "gat-divided"])
@pytest.mark.parametrize("fan", [1, 2])
def test_a_fan_is_drawn_among_the_old_neighbours(form: str, fan: int) -> None:
    """Nodes with many new links still show as many old ones as they have, up to the fan."""
    trainer = grown(form, fan=fan)
    graph = links_of(trainer)
    old = [set(ends) for ends in graph.ends(np.arange(graph.old)).tolist()]
    nodes = np.arange(16)
    degree = [sum(node in ends for ends in old) for node in range(16)]
    assert graph.degree(nodes).tolist() == degree
    for _ in range(20):
        at, rows = graph.links_of(nodes, graph.degree(nodes))
        for node in range(16):
            own = rows[at == node].tolist()
            assert len(set(own)) == len(own) == min(fan, degree[node])
            assert all(row < graph.old and node in old[row] for row in own)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_the_first_of_equal_merits_come_first(merits: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(merits)))
    keys = np.array(merits, dtype=np.float64)
    expected = np.argsort(-keys, kind="stable")[:count]
    assert sorted(_largest(keys, count).tolist()) == sorted(expected.tolist())


def test_whoever_asks_about_one_triple_sees_all_its_neighbours() -> None:
    every, few = grown("transe-divided", fan=0), grown("transe-divided", fan=1)
    assert isinstance(every, LinkTrainer) and isinstance(few, LinkTrainer)
    triple = every.graph.train[-1]
    expected, found = (would_activate(each, triple, orders=2)[0] for each in (every, few))
    assert len(expected) > 2
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.candidates == expected.candidates

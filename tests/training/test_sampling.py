from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from dicgrl.training import NegativeSampler
from dicgrl.training.known import HEAD, TAIL
from tests.slow import Triple, rows_of, slow_answers

R = 2


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[Triple]]:
    """From empty to saturated: every triple of the graph is kept with a drawn probability."""
    count = draw(st.integers(1, 6))
    everything = [(h, r, t) for h in range(count) for r in range(R) for t in range(count)]
    density = draw(st.sampled_from([0.1, 0.5, 0.9, 1.0]))
    kept = draw(st.randoms(use_true_random=False))
    return count, [triple for triple in everything if kept.random() <= density]


def free(count: int, known: list[Triple], triple: Triple, side: str) -> set[int]:
    h, r, t = triple
    key = (h, r) if side == "tail" else (r, t)
    return set(range(count)) - slow_answers(known, side).get(key, set())


@given(graphs(), st.integers(0, 99))
def test_every_draw_is_an_unknown_triple_of_a_seen_entity(
    graph: tuple[int, list[Triple]], seed: int
) -> None:
    count, known = graph
    sampler = NegativeSampler(rows_of(known), count, R, generator(seed))
    # Known triples, and questions that nothing is known about.
    asked = [*known, *((h, r, 0) for h in range(count) for r in range(R))]
    some_empty = False
    for side, column in (("head", HEAD), ("tail", TAIL)):
        drawn = sampler.draw(rows_of(asked), column, 7)
        assert drawn.shape == (len(asked), 7)
        for triple, entities in zip(asked, drawn.tolist(), strict=True):
            allowed = free(count, known, triple, side)
            some_empty |= not allowed
            assert set(entities) <= (allowed or {-1})
    assert sampler.saturated or not some_empty


@given(graphs())
def test_every_entity_that_is_no_answer_can_be_drawn(graph: tuple[int, list[Triple]]) -> None:
    count, known = graph
    sampler = NegativeSampler(rows_of(known), count, R, generator(1))
    asked = [(h, r, t) for h in range(count) for r in range(R) for t in range(count)]
    for side, column in (("head", HEAD), ("tail", TAIL)):
        drawn = sampler.draw(rows_of(asked), column, 300)
        for triple, entities in zip(asked, drawn.tolist(), strict=True):
            # One of 6 is missed by 300 draws with probability (5/6)^300 < 1e-23.
            assert set(entities) == (free(count, known, triple, side) or {-1})


@pytest.mark.parametrize("answers", [[], [0], [19], [3, 4, 5, 11], [0, 1, 2, 17, 18, 19]])
@pytest.mark.parametrize("column", [HEAD, TAIL])
def test_draws_are_uniform(answers: list[int], column: int) -> None:
    count, draws = 20, 40_000
    others = [(i, 1, i) for i in range(count)]  # another question's answers must not leak in
    rows = [(7, 0, a) if column == TAIL else (a, 0, 7) for a in answers]
    sampler = NegativeSampler(rows_of(rows + others), count, R, generator(3))
    drawn = sampler.draw(rows_of([(7, 0, 7)]), column, draws)[0]
    times = torch.bincount(drawn, minlength=count).double()
    assert not times[answers].any()
    allowed = [i for i in range(count) if i not in answers]
    expected = draws / len(allowed)
    statistic = ((times[allowed] - expected) ** 2 / expected).sum().item()
    assert statistic < chi2.ppf(1 - 1e-4, len(allowed) - 1)


def test_two_draws_of_one_question_are_independent() -> None:
    sampler = NegativeSampler(rows_of([(0, 0, 1)]), 4, 1, generator(5))
    pairs = sampler.draw(rows_of([(0, 0, 1)] * 9000), TAIL, 2)
    times = torch.bincount(pairs[:, 0] * 4 + pairs[:, 1], minlength=16).double()
    times = times[times > 0]
    assert len(times) == 9  # 3 x 3 allowed entities
    statistic = ((times - 1000) ** 2 / 1000).sum().item()
    assert statistic < chi2.ppf(1 - 1e-4, 8)


@pytest.mark.parametrize(("count", "heads", "tails"), [(64, 32, 32), (7, 3, 4), (1, 0, 1)])
def test_half_have_another_head_and_half_another_tail(count: int, heads: int, tails: int) -> None:
    known = rows_of([(0, 0, 1), (1, 1, 2), (3, 0, 0)])
    sampler = NegativeSampler(known, 9, R, generator())
    drawn = sampler.corrupt(known, count)
    assert [tuple(side.shape) for side in drawn] == [(3, heads), (3, tails)]


def test_the_same_seed_draws_the_same_and_global_state_does_not_count() -> None:
    known = rows_of([(0, 0, 1), (1, 1, 2), (3, 0, 0)])

    def draw(seed: int) -> list[torch.Tensor]:
        torch.manual_seed(torch.seed() % 1000)
        sampler = NegativeSampler(known, 50, R, generator(seed))
        return [*sampler.corrupt(known, 40), *sampler.corrupt(known, 40)]

    with torch.random.fork_rng():
        first, same, other = draw(1), draw(1), draw(2)
    assert all(torch.equal(a, b) for a, b in zip(first, same, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))
    assert not torch.equal(first[0], first[2])  # the generator moves on


def test_a_saturated_question_is_marked_and_others_are_not() -> None:
    known = rows_of([(0, 0, 0), (0, 0, 1), (0, 0, 2), (1, 0, 0)])
    sampler = NegativeSampler(known, 3, 1, generator())
    assert sampler.saturated
    drawn = sampler.draw(known, TAIL, 20)
    assert (drawn[:3] == -1).all()
    assert set(drawn[3].tolist()) == {1, 2}
    assert not NegativeSampler(known, 4, 1, generator()).saturated


@given(graphs(), st.data(), st.integers(0, 99))
def test_draws_from_a_range_stay_inside_and_reach_all_of_it(
    graph: tuple[int, list[Triple]], data: st.DataObject, seed: int
) -> None:
    count, known = graph
    start = data.draw(st.integers(0, count - 1))
    stop = data.draw(st.integers(start, count))
    sampler = NegativeSampler(rows_of(known), range(start, stop), R, generator(seed))
    asked = [(h, r, t) for h in range(count) for r in range(R) for t in range(count)]
    some_empty = False
    for side, column in (("head", HEAD), ("tail", TAIL)):
        drawn = sampler.draw(rows_of(asked), column, 300)
        for triple, entities in zip(asked, drawn.tolist(), strict=True):
            allowed = free(count, known, triple, side) & set(range(start, stop))
            some_empty |= not allowed
            assert set(entities) == (allowed or {-1})
    assert sampler.saturated or not some_empty


def test_draws_from_a_range_are_uniform() -> None:
    answers, draws = [3, 9, 10, 18], 40_000
    sampler = NegativeSampler(rows_of([(7, 0, a) for a in answers]), range(8, 18), 1, generator(3))
    drawn = sampler.draw(rows_of([(7, 0, 7)]), TAIL, draws)[0]
    times = torch.bincount(drawn, minlength=20).double()
    allowed = [8, *range(11, 18)]
    assert times[allowed].sum() == draws
    expected = draws / len(allowed)
    statistic = ((times[allowed] - expected) ** 2 / expected).sum().item()
    assert statistic < chi2.ppf(1 - 1e-4, len(allowed) - 1)


@given(graphs(), st.integers(0, 99), st.integers(1, 9), st.integers(2, 5))
def test_shared_entities_are_marked_for_each_triple_that_they_answer(
    graph: tuple[int, list[Triple]], seed: int, count: int, share: int
) -> None:
    entities, known = graph
    asked = [*known, *((h, r, 0) for h in range(entities) for r in range(R))]
    sampler = NegativeSampler(rows_of(known), entities, R, generator(seed))
    heads, tails, mask = sampler.shared(rows_of(asked), count, share)
    groups = -(-len(asked) // share)
    assert heads.shape == (groups, count // 2) and tails.shape == (groups, count - count // 2)
    assert mask.shape == (len(asked), count)
    for number, triple in enumerate(asked):
        allowed = [
            entity in free(entities, known, triple, side)
            for side, some in (("head", heads), ("tail", tails))
            for entity in some[number // share].tolist()
        ]
        assert mask[number].tolist() == allowed


@given(graphs(), st.integers(0, 99), st.integers(2, 5))
def test_shared_entities_are_none_that_is_retired(
    graph: tuple[int, list[Triple]], seed: int, share: int
) -> None:
    """Every other entity is retired; the others are marked as where there are no others."""
    count, known = graph
    apart = [(2 * h + 1, r, 2 * t + 1) for h, r, t in known]
    retired = torch.arange(0, 2 * count, 2)
    sampler = NegativeSampler(rows_of(apart), 2 * count, R, generator(seed), retired)
    heads, tails, mask = sampler.shared(rows_of(apart), 200, share)
    for number, triple in enumerate(known):
        for side, some, marked in (
            ("head", heads, mask[:, :100]),
            ("tail", tails, mask[:, 100:]),
        ):
            row = some[number // share]
            assert set(row.tolist()) == set(range(1, 2 * count, 2))
            allowed = free(count, known, triple, side)
            assert marked[number].tolist() == [(e - 1) // 2 in allowed for e in row.tolist()]


def test_shared_entities_come_from_the_range_alone() -> None:
    known = rows_of([(0, 0, 4), (4, 1, 5), (2, 0, 6)])
    sampler = NegativeSampler(known, range(4, 7), R, generator())
    heads, tails, mask = sampler.shared(known, 200, 2)
    assert set(heads.unique().tolist()) == set(tails.unique().tolist()) == {4, 5, 6}
    assert mask[0, 100:].tolist() == [entity != 4 for entity in tails[0].tolist()]
    assert mask[1, :100].tolist() == [entity != 4 for entity in heads[0].tolist()]


def test_questions_of_triples_of_32_bits_are_told_apart() -> None:
    """With 1,000 relations the keys of these two questions are equal modulo 2^32."""
    known = torch.tensor([[5_000_000, 300, 1]], dtype=torch.int32)
    other = torch.tensor([[705_033, 4, 0]], dtype=torch.int32)
    sampler = NegativeSampler(known, 2, 1000, generator())
    assert set(sampler.draw(known, TAIL, 50).flatten().tolist()) == {0}
    assert set(sampler.draw(other, TAIL, 50).flatten().tolist()) == {0, 1}

from __future__ import annotations

from collections.abc import Collection

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dicgrl.evaluation import Ranker, Ranks, ranking_metrics
from dicgrl.models import Components, KnowledgeModel
from tests.slow import Triple, rows_of, slow_answers
from tests.watching import scored_blocks

CONVKB = pytest.param("convkb", {})
DIVISIONS = {
    "plain": None,
    "relation": Components(2, 1, "relation"),
    "relation published": Components(2, 1, "relation", "published"),
    "nodes": Components(2, 1, "nodes"),
    "triple": Components(2, 1, "triple"),
}
Expected = tuple[list[int], list[int], list[int]]  # higher, equal, candidates


def model_of(
    division: str, entities: int, relations: int, seed: int, name: str = "transe"
) -> KnowledgeModel:
    """A model of small whole numbers: scores have no rounding, so that ties are ties."""
    options = {"filters": 2} if name == "convkb" else {"p": 1}
    model = KnowledgeModel(name, 4, DIVISIONS[division], options)
    model.grow(entities, relations)
    generator = torch.Generator().manual_seed(seed)
    weights = [table.rows for table in model.tables().values()]
    for values in weights + [parameter.detach() for parameter in model.parameters()]:
        values.copy_(torch.randint(-1, 2, values.shape, generator=generator))
    return model


@torch.no_grad()
def slow_side(
    model: KnowledgeModel,
    known: list[Triple],
    asked: list[Triple],
    candidates: range,
    side: str,
    elsewhere: Collection[int] = (),
) -> Expected:
    """Ranks one candidate after the other; some relations do not lead back to the same entity."""
    answers = slow_answers(known, side)
    result: Expected = ([], [], [])
    for h, r, t in asked:
        truth, given = (h, t) if side == "head" else (t, h)
        left_out = answers.get((r, t) if side == "head" else (h, r), set())
        if r in elsewhere:
            left_out = left_out | {given}
        others = [e for e in candidates if e != truth and e not in left_out]
        if r in elsewhere and truth == given:  # nobody is given it
            for values, value in zip(result, (len(others), 0, len(others) + 1), strict=True):
                values.append(value)
            continue
        own, *scores = (
            model.score(*rows_of([(e, r, t) if side == "head" else (h, r, e)]).unbind(1)).item()
            for e in (truth, *others)
        )
        result[0].append(sum(score > own for score in scores))
        result[1].append(sum(score == own for score in scores))
        result[2].append(len(others) + 1)
    return result


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[Triple], list[Triple], range]:
    count = draw(st.integers(1, 7))
    entity = st.integers(0, count - 1)
    triple = st.tuples(entity, st.integers(0, 2), entity)
    known = draw(st.lists(triple, max_size=25))
    asked = draw(st.lists(triple, min_size=1, max_size=6))
    ends = sorted((draw(st.integers(0, count)), draw(st.integers(0, count))))
    candidates = draw(st.sampled_from([range(count), range(*ends)]))
    return count, known + asked * draw(st.booleans()), asked, candidates


def check(
    model: KnowledgeModel, case: tuple[int, list[Triple], list[Triple], range], bound: int
) -> None:
    _, known, asked, candidates = case
    ranks = Ranker(rows_of(known), 3, bound).rank(model, rows_of(asked), candidates)
    for number, side in enumerate(("head", "tail")):
        higher, equal, left = slow_side(model, known, asked, candidates, side)
        assert ranks.higher[number].tolist() == higher
        assert ranks.equal[number].tolist() == equal
        assert ranks.candidates[number].tolist() == left
    for elsewhere in ({0, 2}, {0, 1, 2}, set[int]()):
        others = ranks.among_others(torch.tensor([r in elsewhere for _, r, _ in asked]))
        found = (others.higher, others.equal, others.candidates)
        for number, side in enumerate(("head", "tail")):
            expected = slow_side(model, known, asked, candidates, side, elsewhere)
            assert tuple(values[number].tolist() for values in found) == expected


bounds = st.sampled_from([1, 30, 100, 500, 1 << 20])  # from a pair at a time to all at once


@pytest.mark.parametrize("division", DIVISIONS)
@settings(max_examples=25)
@given(case=cases(), bound=bounds, seed=st.integers(0, 99))
def test_ranks_are_those_of_plain_loops(
    division: str, case: tuple[int, list[Triple], list[Triple], range], bound: int, seed: int
) -> None:
    check(model_of(division, case[0], 3, seed), case, bound)


@pytest.mark.parametrize("division", ["plain", "relation"])
@given(case=cases(), bound=st.sampled_from([1, 600, 3000, 1 << 20]), seed=st.integers(0, 99))
def test_ranks_of_convkb_are_those_of_plain_loops(
    division: str, case: tuple[int, list[Triple], list[Triple], range], bound: int, seed: int
) -> None:
    check(model_of(division, case[0], 3, seed, "convkb"), case, bound)


@pytest.mark.parametrize("division", DIVISIONS)
def test_the_memory_bound_does_not_change_the_result(division: str) -> None:
    model = model_of(division, 30, 3, 1)
    generator = torch.Generator().manual_seed(2)
    triples = torch.stack(
        [torch.randint(high, (12,), generator=generator) for high in (30, 3, 30)], 1
    )
    results = [
        Ranker(triples, 3, bound).rank(model, triples, range(30)) for bound in (1 << 30, 3000, 500)
    ]
    for other in results[1:]:
        for name in ("higher", "equal", "candidates"):
            assert torch.equal(getattr(other, name), getattr(results[0], name))


@pytest.mark.parametrize("division", ["plain", "relation", "nodes"])
def test_scores_stay_under_the_memory_bound(division: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(division, 50, 3, 1)
    triples = torch.stack([torch.arange(30), torch.arange(30) % 3, torch.arange(30)], 1)
    pairs: list[int] = []
    original = KnowledgeModel.candidate_scores

    def watched(self: KnowledgeModel, *arguments: object) -> Tensor:
        scores = original(self, *arguments)  # type: ignore[arg-type]
        pairs.append(scores.numel())
        if self.one_relation_per_block:
            block = arguments[0]
            assert isinstance(block, Tensor) and len(block[:, 1].unique()) == 1
        return scores

    monkeypatch.setattr(KnowledgeModel, "candidate_scores", watched)
    bound = 20 * (model.pair_bytes() + 6)
    Ranker(triples, 3, bound).rank(model, triples, range(50))
    assert max(pairs) <= 20
    assert len(pairs) > 100


def test_queries_of_one_relation_are_scored_together(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("relation", 50, 3, 1)
    triples = torch.stack([torch.arange(30), torch.arange(30) % 3, torch.arange(30)], 1)
    calls = scored_blocks(monkeypatch)
    Ranker(triples, 3).rank(model, triples, range(50))
    assert len(calls) == 3 * 2  # relations x sides


@pytest.mark.parametrize("bound", [1, 1 << 30])
def test_a_constant_scorer_gets_the_middle_rank(bound: int) -> None:
    model = KnowledgeModel("transe", 4)
    model.grow(11, 1)
    for table in model.tables().values():
        table.rows.zero_()
    known = rows_of([(0, 0, 1), (0, 0, 2), (3, 0, 4)])
    ranks = Ranker(known, 1, bound).rank(model, known, range(11))
    assert ranks.realistic[0].tolist() == [6.0] * 3  # one of 11
    assert ranks.realistic[1].tolist() == [5.5, 5.5, 6.0]  # another known tail is left out
    assert ranks.optimistic.tolist() == [[1.0] * 3] * 2
    assert ranks.pessimistic[1].tolist() == [10.0, 10.0, 11.0]
    assert ranks.candidates.tolist() == [[11, 11, 11], [10, 10, 11]]


@pytest.mark.parametrize("bound", [1, 1 << 30])
def test_scores_that_are_no_numbers_do_not_look_good(bound: int) -> None:
    model = model_of("plain", 11, 1, 0)
    model.entities.rows[4] = torch.nan  # the scores of one entity
    triples = rows_of([(0, 0, 4), (1, 0, 2)])
    ranks = Ranker(triples[:0], 1, bound).rank(model, triples, range(11))
    assert ranks.realistic[1, 0] == 11  # the true answer has no score: the last
    assert ranks.higher[1, 1] >= 1  # a candidate without a score does not give way
    others = ranks.among_others(torch.tensor([True, True]))
    assert others.realistic[1, 0] == 10  # one candidate less, and still the last
    model.relations.rows.fill_(torch.nan)
    ranks = Ranker(triples[:0], 1, bound).rank(model, triples, range(11))
    assert ranking_metrics(ranks)["mrr"] == pytest.approx(1 / 11)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5))
def test_the_three_ranks(counts: list[tuple[int, int]]) -> None:
    higher, equal = (torch.tensor([column, column]) for column in zip(*counts, strict=True))
    ranks = Ranks(higher, equal, higher + equal + 1)
    assert torch.equal(ranks.realistic, (ranks.optimistic + ranks.pessimistic) / 2)
    for i, (above, same) in enumerate(counts):
        # What random tie-breaking gives: each place among the equals is as likely as another.
        places = [above + 1 + place for place in range(same + 1)]
        assert ranks.realistic[0, i].item() == pytest.approx(sum(places) / len(places))
        assert (ranks.optimistic[0, i], ranks.pessimistic[0, i]) == (places[0], places[-1])


def test_ranking_leaves_the_mode_and_the_tables_as_they_were() -> None:
    model = KnowledgeModel("convkb", 4, options={"filters": 2, "dropout": 0.5})
    model.grow(5, 1)
    triples = rows_of([(0, 0, 1), (2, 0, 3)])
    for mode in (True, False):
        model.train(mode)
        first = Ranker(triples, 1).rank(model, triples, range(5))
        again = Ranker(triples, 1).rank(model, triples, range(5))
        assert torch.equal(first.higher, again.higher)  # no dropout while ranking
        assert model.training is mode
    assert model.entities.touched() is None


def test_no_triples_have_no_ranks() -> None:
    model = model_of("relation", 5, 3, 0)
    ranks = Ranker(rows_of([]), 3).rank(model, rows_of([]), range(5))
    assert ranks.realistic.shape == (2, 0)
    assert set(ranking_metrics(ranks, torch.empty(0, dtype=torch.bool)).values()) == {0.0}


@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize(("name", "options"), [("transe", {"p": 1}), ("transe", {"p": 2}), CONVKB])
@pytest.mark.parametrize("pairs", [1, 7, 40, 200, 10_000])
def test_twins_tie_however_the_work_is_divided(
    division: str, name: str, options: dict[str, int], pairs: int
) -> None:
    """Entities with equal vectors have equal scores; rounding must not tell them apart."""
    model = KnowledgeModel(name, 32, DIVISIONS[division], options)
    model.grow(30, 2)
    rows = model.entities.rows.view(30, -1)
    rows[15:] = rows[:15]
    generator = torch.Generator().manual_seed(2)
    triples = torch.stack(
        [torch.randint(high, (5,), generator=generator) for high in (15, 2, 15)], 1
    )
    triples[2:, [0, 2]] += 15
    ranker = Ranker(triples[:0], 2, pairs * (model.pair_bytes() + 6))
    for candidates in (range(30), range(5), range(13, 22)):
        ranks = ranker.rank(model, triples, candidates)
        for number, column in enumerate((0, 2)):
            twin = (triples[:, column] + 15) % 30
            there = (twin >= candidates.start) & (twin < candidates.stop)
            assert (ranks.equal[number, there] >= 1).all()
            assert (ranks.equal[number, ~there] == 0).all()

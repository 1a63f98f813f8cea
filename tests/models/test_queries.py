"""Query decoders: their formulas, and fast paths that do what `score` does.

The references are complex numbers written out one by one, and autograd through `score`.
"""

from __future__ import annotations

import cmath

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dicgrl.evaluation import Ranker
from dicgrl.kernels.batch import Batch
from dicgrl.models import Components, KnowledgeModel, QueryScorer, Scorer, scorer
from dicgrl.models.fast import Side
from dicgrl.models.queries import Dot, Likeness, Modulus, Norm
from dicgrl.models.queries.batch import QueryBatch
from dicgrl.models.queries.ranks import MatrixCounts, QueryCounts

DECODERS = ("transe", "distmult", "complex", "rotate")
SIDES: tuple[Side, ...] = ("head", "tail")
LIKENESSES = (Dot(), Norm(1), Norm(2), Modulus())
DIVISIONS = {
    "plain": None,
    "learned": Components(4, 2),
    "published": Components(4, 2, routing="published"),
    "by weight": Components(4, 3, order="weight"),
}
every_decoder = pytest.mark.parametrize("name", DECODERS)
every_division = pytest.mark.parametrize("division", DIVISIONS)
every_likeness = pytest.mark.parametrize("likeness", LIKENESSES, ids=str)
ENTITIES, RELATIONS, LENGTH = 23, 3, 24


def made(name: str, division: str = "plain") -> KnowledgeModel:
    model = KnowledgeModel(name, LENGTH, DIVISIONS[division], seed=1)
    model.grow(ENTITIES, RELATIONS)
    return model


def triples_of(count: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    highs = (ENTITIES, RELATIONS, ENTITIES)
    return torch.stack([torch.randint(h, (count,), generator=generator) for h in highs], 1)


def decoder(name: str, dim: int = 6) -> QueryScorer:
    found = scorer(name)(dim)
    assert isinstance(found, QueryScorer)
    return found


def numbers(vector: Tensor) -> list[complex]:
    values = vector.tolist()
    return [complex(*values[i : i + 2]) for i in range(0, len(values), 2)]


def by_hand(name: str, head: Tensor, relation: Tensor, tail: Tensor) -> float:
    """The score of one triple."""
    if name == "distmult":
        return float((head * relation * tail).sum())
    if name == "complex":
        parts = zip(*map(numbers, (head, relation, tail)), strict=True)
        return sum((h * r * t.conjugate()).real for h, r, t in parts)
    turned = zip(numbers(head), relation.tolist(), numbers(tail), strict=True)
    return -sum(abs(h * cmath.exp(1j * angle) - t) for h, angle, t in turned)


@pytest.mark.parametrize("name", ["distmult", "complex", "rotate"])
def test_scores_are_the_formulas(name: str) -> None:
    torch.manual_seed(0)
    found = decoder(name)
    h, t = torch.randn(2, 5, 6)
    r = torch.randn(5, found.relation_width(6))
    expected = torch.tensor([by_hand(name, *each) for each in zip(h, r, t, strict=True)])
    torch.testing.assert_close(found.score(h, r, t), expected)


@every_decoder
def test_both_sides_ask_for_the_same_score(name: str) -> None:
    torch.manual_seed(0)
    found = decoder(name)
    h, t = torch.randn(2, 5, 6)
    r = torch.randn(5, found.relation_width(6))
    expected = found.score(h, r, t)
    for side, ends in (("tail", (h, t)), ("head", (t, h))):
        query = found.query(ends[0], r, side)
        torch.testing.assert_close(found.likeness.of(query, ends[1]), expected)
    torch.testing.assert_close(found.score_tails(h, r, t).diagonal(), expected)
    torch.testing.assert_close(found.score_heads(h, r, t).diagonal(), expected)


@every_decoder
@pytest.mark.parametrize("side", SIDES)
def test_gradients_of_a_query_are_those_of_autograd(name: str, side: Side) -> None:
    torch.manual_seed(0)
    found = decoder(name)
    end, gradient = torch.randn(2, 5, 6)
    ends = end.requires_grad_(), torch.randn(5, found.relation_width(6), requires_grad=True)
    expected = torch.autograd.grad(found.query(*ends, side), ends, gradient)
    with torch.no_grad():
        got = found.query_gradients(*ends, side, gradient)
    for ours, reference in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, reference)


@every_likeness
@pytest.mark.parametrize("parts", [0, 3])
def test_a_block_and_its_slopes_are_what_autograd_says(likeness: Likeness, parts: int) -> None:
    torch.manual_seed(0)
    queries, x, upstream = torch.randn(4, 12), torch.randn(4, 5, 12), torch.randn(4, 5)
    x[1, 2] = queries[1]  # a distance of zero
    q, c = queries.clone().requires_grad_(), x.clone().requires_grad_()
    gate = torch.ones(4, max(parts, 1), requires_grad=True)

    def gated(vectors: Tensor, width: int) -> Tensor:
        return vectors * gate.repeat_interleave(width, 1).view(4, *[1] * (vectors.dim() - 2), 12)

    width = 12 // max(parts, 1)
    expected = likeness.of(gated(q, width)[:, None], gated(c, width))
    expected.backward(upstream)  # type: ignore[no-untyped-call]
    scores = likeness.block_(x.clone(), queries)
    torch.testing.assert_close(scores, expected.detach())
    pull = likeness.pull(scores, upstream)
    slopes = likeness.slopes_(x.clone(), queries, pull, parts)
    torch.testing.assert_close(slopes.candidates, c.grad)
    assert slopes.queries is not None
    torch.testing.assert_close(slopes.queries, q.grad)
    if parts:
        assert slopes.gates is not None
        torch.testing.assert_close(slopes.gates, gate.grad)
    alone = likeness.slopes_(x.clone(), queries, pull, parts, asked=False)
    assert alone.queries is None and alone.gates is None
    torch.testing.assert_close(alone.candidates, c.grad)


@every_decoder
@every_division
@pytest.mark.parametrize("opened", ["all", "some", "no relation"])
def test_a_fast_batch_gives_the_scores_and_gradients_of_the_slow_one(
    name: str, division: str, opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dicgrl.models.queries.comparison._BLOCK", 2 * 5 * 12)
    generator = torch.Generator().manual_seed(3)
    triples = triples_of(11)
    others = torch.randint(ENTITIES, (11, 9), generator=generator)
    others[0, 0] = triples[0, 0]  # a replacement may be the entity itself
    upstream = torch.randn(11, generator=generator), torch.randn(11, 9, generator=generator)
    found = []
    for fast in (False, True):
        model = made(name, division)
        if opened != "all":
            for kind, table in model.tables().items():
                first = len(table) // 2 if opened == "some" or kind != "relations" else len(table)
                table.restrict(torch.arange(first, len(table)))
        path = model.fast_batch()
        assert isinstance(path, QueryBatch)
        if not fast:
            monkeypatch.setattr(model, "fast_batch", lambda: None)
        *scores, _ = model.score_links(triples, others[:, :4], others[:, 4:])
        torch.autograd.backward(scores, upstream)
        kept = {
            kind: table.gradient * (1.0 if (pace := table.pace()) is None else (pace > 0))
            for kind, table in model.tables().items()
        }
        found.append(kept | {"positive": scores[0].detach(), "negative": scores[1].detach()})
    for kind, expected in found[0].items():
        torch.testing.assert_close(found[1][kind], expected, rtol=1e-4, atol=1e-5)
        if opened == "all" and (kind != "attention" or DIVISIONS[division].learned):
            assert expected.abs().sum() > 0


@every_decoder
def test_a_batch_without_a_side_or_without_triples(name: str) -> None:
    model = made(name)
    triples, none = triples_of(4), torch.empty(4, 0, dtype=torch.long)
    others = torch.arange(8).view(4, 2)
    both = model.score_links(triples, others, others)[1]
    torch.testing.assert_close(model.score_links(triples, others, none)[1], both[:, :2])
    torch.testing.assert_close(model.score_links(triples, none, others)[1], both[:, 2:])
    assert model.score_links(triples[:0], others[:0], others[:0])[1].shape == (0, 4)


@every_likeness
@given(rows=st.integers(1, 70), width=st.integers(1, 30), seed=st.integers(0, 9))
def test_a_pair_is_rounded_alike_wherever_it_stands(
    likeness: Likeness, rows: int, width: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    queries, candidates = torch.randn(2, rows, 2 * width, generator=generator)
    found = likeness.pairs(queries, candidates)
    torch.testing.assert_close(found, likeness.of(queries, candidates))
    order = torch.randperm(rows, generator=generator)
    assert torch.equal(likeness.pairs(queries[order], candidates[order]), found[order])
    first = rows // 3
    assert torch.equal(likeness.pairs(queries[first:], candidates[first:]), found[first:])
    assert torch.equal(likeness.pairs(queries[-1:], candidates[-1:]), found[-1:])


@every_likeness
@given(columns=st.integers(1, 300), width=st.integers(1, 90), scale=st.floats(1e-3, 1e3))
def test_a_matrix_is_as_near_to_its_pairs_as_promised(
    likeness: Likeness, columns: int, width: int, scale: float
) -> None:
    generator = torch.Generator().manual_seed(columns)
    queries = torch.randn(5, 2 * width, generator=generator)
    candidates = torch.randn(columns, 2 * width, generator=generator) * scale
    longest = torch.linalg.vector_norm(candidates, dim=1).max()
    with torch.no_grad():
        found = likeness.matrix(queries, candidates)
    for column, vector in enumerate(candidates):
        pairs = likeness.pairs(queries, vector.expand_as(queries))
        off = (found[:, column] - pairs).abs()
        assert (off <= likeness.slack(queries, longest, pairs)).all()


@pytest.mark.parametrize("name", ["distmult", "complex", "rotate"])
@every_division
@pytest.mark.parametrize("candidates", [range(ENTITIES), range(4, 15), range(5, 5)], ids=str)
@pytest.mark.parametrize("bound", [1 << 20, 600], ids=["one block", "blocks"])
def test_matrices_rank_twins_the_same(
    name: str, division: str, candidates: range, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference scores one pair after the other, in double precision."""
    monkeypatch.setattr("dicgrl.models.queries.ranks._QUESTIONS", 3)
    monkeypatch.setattr("dicgrl.models.queries.ranks._PAIRS", 2)
    model = made(name, division)
    assert isinstance(model.fast_counts(), MatrixCounts)
    vectors = model.entities.rows.view(ENTITIES, -1)
    vectors[ENTITIES // 2 + 1 :] = vectors[: ENTITIES // 2]
    known, asked = triples_of(60, 1), triples_of(20, 2)
    ranks = Ranker(known, RELATIONS, bound).rank(model, asked, candidates)
    facts = {tuple(triple) for triple in known.tolist()}
    for column, side in ((0, 0), (2, 1)):
        for number, triple in enumerate(asked.tolist()):
            competing = [
                other
                for entity in candidates
                if (other := replaced(triple, column, entity)) != triple
                and tuple(other) not in facts
            ]
            truth, *scores = precise(model, torch.tensor([triple, *competing]))
            same = sum(abs(score - truth) < 1e-9 for score in scores)
            assert ranks.equal[side, number] == same
            assert ranks.higher[side, number] == sum(score > truth + 1e-9 for score in scores)
            assert ranks.candidates[side, number] == len(competing) + 1


def precise(model: KnowledgeModel, triples: Tensor) -> list[float]:
    """Scores in double precision."""
    heads, relations, tails = triples.unbind(1)
    route = model.route(heads, relations, tails)
    h, t = (model.entity_vectors(ids, route).double() for ids in (heads, tails))
    scores = model.scorer.score(h, model.relation_vectors(relations, route).double(), t)
    return [float(score) for score in scores.detach()]


def replaced(triple: list[int], column: int, entity: int) -> list[int]:
    return [*triple[:column], entity, *triple[column + 1 :]]


@pytest.mark.parametrize("name", ["distmult", "complex", "rotate"])
def test_what_is_no_number_makes_no_answer_look_good(name: str) -> None:
    model = made(name)
    model.entities.rows[4] = torch.nan
    triples = torch.tensor([[0, 0, 4], [1, 0, 2]])
    ranks = Ranker(triples[:0], RELATIONS).rank(model, triples, range(ENTITIES))
    assert ranks.higher[1, 0] == ENTITIES - 1
    alone = Ranker(triples[:0], RELATIONS).rank(model, triples, range(5, ENTITIES))
    assert 1 <= ranks.higher[1, 1] <= alone.higher[1, 1] + 5


def test_rotations_put_a_newcomer_where_it_scores_best() -> None:
    torch.manual_seed(0)
    found = decoder("rotate")
    given, angles = torch.randn(5, 6), torch.randn(5, 3)
    tails = found.place_entity(given, angles, "tail")
    heads = found.place_entity(given, angles, "head")
    assert tails is not None and heads is not None
    torch.testing.assert_close(found.score(given, angles, tails), torch.zeros(5), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.score(heads, angles, given), torch.zeros(5), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["distmult", "complex"])
@pytest.mark.parametrize("side", SIDES)
def test_no_vector_as_long_as_its_neighbour_beats_where_a_product_puts_a_newcomer(
    name: str, side: Side
) -> None:
    torch.manual_seed(0)
    found = decoder(name)
    given, relation = torch.randn(2, 4, 6)
    placed = found.place_entity(given, relation, side)
    assert placed is not None
    torch.testing.assert_close(placed.norm(dim=1), given.norm(dim=1))
    others = (
        torch.nn.functional.normalize(torch.randn(500, 4, 6), dim=-1) * given.norm(dim=1)[:, None]
    )
    query = found.query(given, relation, side)
    assert (found.likeness.of(query, others) < found.likeness.of(query, placed)).all()


@pytest.mark.parametrize("name", ["distmult", "complex", "rotate"])
def test_a_relation_that_all_triples_agree_about_is_found(name: str) -> None:
    torch.manual_seed(0)
    found = decoder(name)
    relation = torch.randn(found.relation_width(6))
    heads = torch.randn(400, 6)
    tails = found.query(heads, relation.expand(400, -1), "tail")
    told = found.place_relation(heads, tails)
    assert told is not None
    settled = found.settle_relation(told.mean(0, keepdim=True))[0]
    if name == "rotate":
        torch.testing.assert_close(settled.cos(), relation.cos())
        torch.testing.assert_close(settled.sin(), relation.sin())
    else:  # drawn to zero by a tenth
        torch.testing.assert_close(settled, relation / 1.1, rtol=0.1, atol=0.01)


def test_angles_next_to_a_half_turn_do_not_cancel_out() -> None:
    found = decoder("rotate", 2)
    told = found.place_relation(
        torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[-1.0, 0.1], [-1.0, -0.1]])
    )
    assert told is not None
    (angle,) = found.settle_relation(told.mean(0)).abs().tolist()
    assert angle == pytest.approx(cmath.pi, abs=1e-5)


@pytest.mark.parametrize("name", ["distmult", "complex"])
def test_n3_is_the_sum_of_cubes(name: str) -> None:
    torch.manual_seed(0)
    h, r, t = torch.randn(3, 2, 6)
    regulariser = scorer(name)(6, n3=0.5).regulariser()
    assert regulariser is not None and scorer(name)(6, n3=0.0).regulariser() is None
    pairs = [
        [vector.tolist() if name == "distmult" else numbers(vector) for vector in each]
        for each in (h, r, t)
    ]
    expected = [0.5 * sum(abs(x) ** 3 for each in pairs for x in each[row]) for row in range(2)]
    torch.testing.assert_close(regulariser(h, r, t), torch.tensor(expected))


class Mirrored(scorer("transe")):  # type: ignore[misc]
    """Another query, of which TransE's kernels know nothing."""

    def query(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        return relation - given


def test_who_asks_otherwise_keeps_the_fast_path_of_all_queries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dicgrl.kernels._ANYWHERE", True)
    assert Mirrored.query_gradients is QueryScorer.query_gradients and not Mirrored.linear
    assert not isinstance(scorer("transe")(4).fast_batch(torch.zeros(1, 4)), QueryBatch)
    assert isinstance(Mirrored(4).fast_batch(torch.zeros(1, 4)), QueryBatch)
    assert isinstance(Mirrored(4).fast_counts(torch.zeros(1, 4)), QueryCounts)


def test_a_batch_is_compared_by_its_queries_alone() -> None:
    """A scorer that says how to ask has a fast batch."""

    class Scaled(QueryScorer):
        likeness = Dot()

        def query(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
            return 2 * given * relation

    rows = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    triples = torch.tensor([[0, 1, 2], [3, 0, 0]])
    batch = Batch(rows, rows[:2], triples, torch.tensor([[1, 3], [2, 2]]), 1, None, 1, False)
    positive, negative = QueryBatch(Scaled(6), kernels=False, blocks=True).scores(batch)
    heads, relations, tails = triples.unbind(1)
    torch.testing.assert_close(positive, 2 * (rows[heads] * rows[relations] * rows[tails]).sum(-1))
    assert negative.shape == (2, 2)
    assert issubclass(Scaled, Scorer)

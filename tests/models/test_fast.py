"""A scorer's fast paths: they do what the generic path does, and are not inherited by mistake.

The toy is DistMult with a gradient and counts that are written down, in plain PyTorch: a decoder
with a kernel needs no more than this file has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from dicgrl.evaluation import Ranker, Ranks
from dicgrl.kernels.batch import Batch
from dicgrl.models import Components, KnowledgeModel, Scorer, Table, TransE
from dicgrl.models.fast import FastBatch, FastCounts, Questions
from dicgrl.training import LinkObjective, NegativeSampler, RowAdam, make_loss
from tests.watching import scored_blocks

SLOW, FAST = "slow-product-of-the-tests", "fast-product-of-the-tests"
DIVISIONS = {
    "plain": None,
    "learned": Components(4, 2),
    "published": Components(4, 2, routing="published"),
    "by weight": Components(4, 3, order="weight"),
}
every_division = pytest.mark.parametrize("division", DIVISIONS)
ENTITIES, RELATIONS, DIM = 23, 3, 16


class SlowProduct(Scorer):
    """h . r . t, by the generic path."""

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return (head * relation * tail).sum(-1)


class ProductBatch(FastBatch):
    """The products of a batch and their gradients."""

    negative_bytes = 77

    def _vectors(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Heads, relations and tails, [b, l], and replacements, [b, m, l]."""
        h, _, t = batch.triples.unbind(1)
        ends = [batch.entities[batch.entity_rows(ids)].flatten(1) for ids in (h, t)]
        others = batch.entities[batch.entity_rows(batch.others)]
        relation = batch.relations[batch.relation_rows()].flatten(1)
        return ends[0], relation, ends[1], others.view(*batch.others.shape, -1)

    def scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        assert not torch.is_grad_enabled()
        h, r, t, x = self._vectors(batch)
        heads, tails = batch.sides()
        negative = [
            (x[:, heads] * (r * t)[:, None]).sum(-1),
            (x[:, tails] * (h * r)[:, None]).sum(-1),
        ]
        return (h * r * t).sum(-1), torch.cat(negative, 1)

    def add_gradients(
        self,
        batch: Batch,
        scores: tuple[Tensor, Tensor],
        upstream: tuple[Tensor, Tensor],
        into: tuple[Tensor, Tensor | None],
        gated: bool,
    ) -> Tensor | None:
        positive, negative = upstream
        assert scores[0].shape == positive.shape and scores[1].shape == negative.shape
        h, r, t, x = self._vectors(batch)
        heads, tails = batch.sides()
        # What stands at the head and at the tail: the triple's own and the weighted replacements.
        other_heads = torch.einsum("bm,bml->bl", negative[:, heads], x[:, heads])
        other_tails = torch.einsum("bm,bml->bl", negative[:, tails], x[:, tails])
        own = positive[:, None]
        d_h = r * (own * t + other_tails)
        d_t = r * (own * h + other_heads)
        d_r = own * h * t + other_heads * t + other_tails * h
        d_x = torch.cat(
            [
                negative[:, heads, None] * (r * t)[:, None],
                negative[:, tails, None] * (h * r)[:, None],
            ],
            1,
        )
        entities, relations = into
        ids = batch.triples
        for where, gradient in ((ids[:, 0], d_h), (ids[:, 2], d_t), (batch.others, d_x)):
            rows = batch.entity_rows(where).reshape(-1)
            entities.index_add_(0, rows, gradient.reshape(-1, entities.shape[1]))
        if relations is not None:
            rows = batch.relation_rows().reshape(-1)
            relations.index_add_(0, rows, d_r.reshape(-1, relations.shape[1]))
        if not gated:
            return None
        assert batch.chosen is not None and batch.divided
        each = h * d_h + r * d_r + t * d_t + (x * d_x).sum(1)
        return each.view(*batch.chosen.shape, -1).sum(-1)


class ProductCounts(FastCounts):
    """Counts one question after the other."""

    pair_bits = 64
    asked: ClassVar[list[int]] = []  # questions of each call

    def count(
        self, questions: Questions, candidates: Sequence[range]
    ) -> tuple[Tensor, Tensor, Tensor]:
        self.asked.append(len(questions.answers))
        first, last, known = questions.known
        counts = torch.zeros(3, len(questions.answers), dtype=torch.long)
        for number, answer in enumerate(questions.answers.tolist()):
            scores = self._scores(questions, number)
            others = set(known[first[number] : last[number]].tolist()) - {answer}
            for entity in (entity for some in candidates for entity in some):
                if entity in others:
                    counts[2, number] += 1
                elif entity != answer:
                    counts[0, number] += scores[entity] > scores[answer]
                    counts[1, number] += scores[entity] == scores[answer]
        return counts[0], counts[1], counts[2]

    def scores(self, questions: Questions, entities: Tensor) -> Tensor:
        scores = [self._scores(questions, i)[some] for i, some in enumerate(entities.T)]
        return torch.stack(scores, 1)

    def _scores(self, questions: Questions, number: int) -> Tensor:
        """Those of all entities for one question."""
        every = questions.entities.view(len(questions.entities), -1, questions.size)
        if questions.chosen is not None:
            every = every[:, questions.chosen[number]]
        query = questions.given[number] * questions.relations[number]
        return (query * every.flatten(1)).sum(-1)


class FastProduct(SlowProduct):
    """The same with fast paths."""

    def fast_batch(self, rows: Tensor) -> FastBatch | None:
        assert rows.shape[0] == 0 or rows.dim() == 2
        return ProductBatch()

    def fast_counts(self, rows: Tensor) -> FastCounts | None:
        return ProductCounts()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Scorer, "registry", Scorer.registry | {SLOW: SlowProduct, FAST: FastProduct}
    )
    ProductCounts.asked.clear()


def made(name: str, division: str) -> KnowledgeModel:
    model = KnowledgeModel(name, DIM, DIVISIONS[division], seed=1)
    model.grow(ENTITIES, RELATIONS)
    return model


def triples_of(count: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    highs = (ENTITIES, RELATIONS, ENTITIES)
    return torch.stack([torch.randint(h, (count,), generator=generator) for h in highs], 1)


@every_division
@pytest.mark.parametrize("opened", ["all", "some", "no relation"])
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_a_fast_batch_trains_like_the_generic_path(
    division: str, opened: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that knows nothing of large tables gets copies of their rows, if these are plain."""
    known = triples_of(40)
    found = []
    for name in (SLOW, FAST):
        if large and name == FAST:
            monkeypatch.setattr(Table, "dense_bytes", 0)
        model = made(name, division)
        by_copies = not large or division == "plain"
        assert (model.fast_batch() is not None) is (name == FAST and by_copies)
        if opened != "all":
            for kind, table in model.tables().items():
                first = len(table) // 2 if opened == "some" or kind != "relations" else len(table)
                table.restrict(torch.arange(first, len(table)))
        generator = torch.Generator().manual_seed(3)
        sampler = NegativeSampler(known, ENTITIES, RELATIONS, generator)
        objective = LinkObjective(sampler, make_loss("selfadversarial", 1.0, 1.0), 7)
        optimiser = RowAdam(model.tables().values(), lr=0.02)
        losses = []
        for _ in range(4):
            loss = objective(model, known, torch.ones(len(known)))
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(loss.detach())
        rows = {kind: table.rows.clone() for kind, table in model.tables().items()}
        found.append(rows | {"losses": torch.stack(losses)})
    start = made(SLOW, division)
    for kind, expected in found[0].items():
        torch.testing.assert_close(found[1][kind], expected, rtol=1e-4, atol=1e-5)
        if kind != "losses" and (opened != "no relation" or kind != "relations"):
            assert not torch.equal(expected, start.tables()[kind].rows)


def counts(ranks: Ranks) -> list[list[int]]:
    assert ranks.own is not None
    every = (ranks.higher, ranks.equal, ranks.candidates, ranks.own)
    return [row for values in every for row in values.tolist()]


@every_division
@pytest.mark.parametrize("candidates", [range(ENTITIES), range(4, 15), range(5, 5)], ids=str)
@pytest.mark.parametrize("bound", [1 << 20, 8 * (ENTITIES + 31) * 4], ids=["one block", "blocks"])
def test_fast_counts_rank_like_the_generic_path(
    division: str, candidates: range, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, asked = triples_of(200, 1), triples_of(30, 2)
    found = []
    for name in (SLOW, FAST):
        model = made(name, division)
        for table in model.tables().values():  # whole numbers: no rounding, and ties
            values = torch.randint(
                -1, 2, table.rows.shape, generator=torch.Generator().manual_seed(4)
            )
            table.rows.copy_(values)
        with monkeypatch.context() as patch:
            blocks = scored_blocks(patch)
            found.append(counts(Ranker(known, RELATIONS, bound).rank(model, asked, candidates)))
        assert not blocks or name == SLOW
    assert found[0] == found[1]
    assert not candidates or sum(ProductCounts.asked) == 2 * len(asked)
    if len(candidates) == ENTITIES:
        assert sum(found[0][0]) and sum(found[0][2])  # higher, and equal
        assert len(ProductCounts.asked) == 2 or bound < 1 << 20


def test_a_fast_batch_says_what_a_negative_needs() -> None:
    assert made(FAST, "plain").link_bytes() == 77
    assert made(SLOW, "plain").link_bytes() > 4 * 3 * DIM


def test_a_fast_path_for_plain_vectors_leaves_divided_ones_to_the_generic_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for path in (ProductBatch, ProductCounts):
        monkeypatch.setattr(path, "handles_components", False)
    for division in DIVISIONS:
        model = made(FAST, division)
        assert (model.fast_batch() is not None) is (division == "plain")
        assert (model.fast_counts() is not None) is (division == "plain")


class Weighed(TransE):
    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return 2 * super().score(head, relation, tail)


class WeighedFurther(Weighed):
    """Its parent's score is not TransE's."""


class Mixed:
    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return (head * relation * tail).sum(-1)


class MixedIn(Mixed, TransE):
    pass


class Renamed(TransE):
    """It scores as TransE and starts elsewhere."""

    def initial(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        return torch.zeros(count, width)


class OtherTails(TransE):
    def score_tails(self, head: Tensor, relation: Tensor, tails: Tensor) -> Tensor:
        return super().score_tails(head, relation, tails)


class Declared(TransE):
    """Who scores otherwise may still say that the fast path agrees."""

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return (head + relation - tail).abs().sum(-1).neg()

    fast_batch = TransE.fast_batch


@pytest.mark.parametrize(
    ("kind", "batch", "ranks"),
    [
        (TransE, True, True),
        (Renamed, True, True),
        (Weighed, False, False),
        (WeighedFurther, False, False),
        (MixedIn, False, False),
        (OtherTails, True, False),
        (Declared, True, False),
        (SlowProduct, False, False),
        (FastProduct, True, True),
    ],
)
def test_who_scores_otherwise_does_not_inherit_a_fast_path(
    kind: type[Scorer], batch: bool, ranks: bool
) -> None:
    assert (kind.fast_batch is not Scorer.fast_batch) is batch
    assert (kind.fast_counts is not Scorer.fast_counts) is ranks
    assert (kind(4).fast_batch(torch.zeros(1, 4)) is not None) is batch


def test_another_score_is_what_is_trained_and_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "weighed-of-the-tests"
    monkeypatch.setitem(Scorer.registry, name, Weighed)
    model, plain = made(name, "plain"), made("transe", "plain")
    others = torch.tensor([[3, 4], [5, 6]])
    for got, expected in zip(
        model.score_links(triples_of(2), others, others)[:2],
        plain.score_links(triples_of(2), others, others)[:2],
        strict=True,
    ):
        torch.testing.assert_close(got, 2 * expected)

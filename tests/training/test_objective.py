from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dicgrl.models import Components, KnowledgeModel, Table
from dicgrl.training import LinkObjective, NegativeSampler, make_loss
from dicgrl.training.known import HEAD, TAIL
from dicgrl.training.losses import SelfAdversarial
from dicgrl.training.objective import step_bytes
from tests.kernels.test_training import DECODERS
from tests.slow import rows_of, slow_score

TRIPLES = rows_of([(0, 0, 1), (1, 1, 2), (3, 0, 4), (4, 1, 4)])
WEIGHT = torch.tensor([1.0, 0.5, 2.0, 1.0])


def model_of(components: Components | None) -> KnowledgeModel:
    model = KnowledgeModel("transe", 8, components, seed=3)
    model.grow(6, 2)
    return model


@pytest.mark.parametrize("components", [None, Components(4, 2)], ids=["plain", "disentangled"])
@pytest.mark.parametrize("loss", ["softmargin", "margin", "selfadversarial", "softmax"])
@pytest.mark.parametrize("count", [1, 5, 6])
def test_the_loss_is_that_of_the_drawn_triples(
    components: Components | None, loss: str, count: int
) -> None:
    model = model_of(components)
    chosen = make_loss(loss, 1.0, 1.0)
    sampler = NegativeSampler(TRIPLES, 6, 2, torch.Generator().manual_seed(4))
    heads, tails = sampler.corrupt(TRIPLES, count)
    positive = [slow_score(model, (h, r, t)) for h, r, t in TRIPLES.tolist()]
    negative = [
        [slow_score(model, (x, r, t)) for x in heads[i].tolist()]
        + [slow_score(model, (h, r, x)) for x in tails[i].tolist()]
        for i, (h, r, t) in enumerate(TRIPLES.tolist())
    ]
    expected = chosen(torch.tensor(positive), torch.tensor(negative), None, WEIGHT)
    again = NegativeSampler(TRIPLES, 6, 2, torch.Generator().manual_seed(4))
    got = LinkObjective(again, chosen, count, beta=0.0)(model, TRIPLES, WEIGHT)
    assert got.item() == pytest.approx(expected.item(), rel=1e-4)


class Recorded:
    """A loss that keeps what it was given."""

    def __call__(
        self, positive: Tensor, negative: Tensor, mask: Tensor | None, _: Tensor
    ) -> Tensor:
        self.positive, self.negative, self.mask = positive, negative, mask
        return positive.sum() * 0

    def level(self, positive: Tensor) -> Tensor:
        return positive[:, None] - 2.0


def test_a_saturated_question_has_its_negatives_masked() -> None:
    # Entity 0 knows everybody, so that no tail is left to draw.
    known = rows_of([(0, 0, 0), (0, 0, 1), (0, 0, 2), (1, 0, 2)])
    model = KnowledgeModel("transe", 4)
    model.grow(3, 1)
    sampler = NegativeSampler(known, 3, 1, torch.Generator().manual_seed(0))
    recorded = Recorded()
    LinkObjective(sampler, recorded, 4)(model, known, torch.ones(4))
    assert recorded.mask is not None
    # (0, 0, 0) and (0, 0, 1): heads are free; (0, 0, 2) and (1, 0, 2): head 2 is free.
    assert recorded.mask[:3].tolist() == [[True, True, False, False]] * 3
    assert recorded.mask[3].tolist() == [True] * 4
    free = NegativeSampler(TRIPLES, 6, 2, torch.Generator().manual_seed(0))
    LinkObjective(free, recorded, 4)(model_of(None), TRIPLES, WEIGHT)
    assert recorded.mask is None


def test_where_there_is_no_negative_no_other_row_is_touched() -> None:
    known = rows_of([(1, 0, 0), (1, 0, 1), (1, 0, 2), (0, 0, 2), (2, 0, 2)])
    model = KnowledgeModel("transe", 4)
    model.grow(3, 1)
    sampler = NegativeSampler(known, 3, 1, torch.Generator().manual_seed(0))
    asked = rows_of([(1, 0, 2)])  # everybody answers both of its questions
    LinkObjective(sampler, SelfAdversarial(), 4)(model, asked, torch.ones(1)).backward()  # type: ignore[no-untyped-call]
    touched = model.entities.touched()
    assert touched is not None and set(touched.tolist()) == {1, 2}


def test_heads_come_first_and_none_is_known() -> None:
    model = model_of(None)
    sampler = NegativeSampler(TRIPLES, 6, 2, torch.Generator().manual_seed(2))
    recorded = Recorded()
    LinkObjective(sampler, recorded, 7)(model, TRIPLES, WEIGHT)
    assert recorded.negative.shape == (4, 7)
    for i, (h, r, t) in enumerate(TRIPLES.tolist()):
        for side, columns in ((HEAD, recorded.negative[i, :3]), (TAIL, recorded.negative[i, 3:])):
            candidates = [(x, r, t) if side == HEAD else (h, r, x) for x in range(6)]
            allowed = [slow_score(model, c) for c in candidates if list(c) not in TRIPLES.tolist()]
            for score in columns.tolist():
                assert min(abs(score - a) for a in allowed) < 1e-4


def test_the_normalisation_loss_counts_for_disentangled_models_only() -> None:
    def loss(components: Components | None, beta: float) -> float:
        sampler = NegativeSampler(TRIPLES, 6, 2, torch.Generator().manual_seed(2))
        objective = LinkObjective(sampler, make_loss("margin", 1.0, 1.0), 4, beta)
        return objective(model_of(components), TRIPLES, WEIGHT).item()

    assert loss(None, 0.0) == loss(None, 5.0)
    assert loss(Components(4, 2), 0.0) < loss(Components(4, 2), 5.0)


def test_a_bar_stands_where_the_loss_has_its_level() -> None:
    model, recorded = model_of(Components(4, 2)), Recorded()
    bars = torch.tensor([[-1.0, -2.0], [0.5, 3.0], [-4.0, 0.0], [7.0, -7.0]])
    shifted, plain = [], []
    for into, given in ((shifted, bars), (plain, None)):
        sampler = NegativeSampler(TRIPLES, 6, 2, torch.Generator().manual_seed(2))
        LinkObjective(sampler, recorded, 5)(model, TRIPLES, WEIGHT, given)
        into.append(recorded.negative)
    # Two other heads, three other tails; the level of this loss is 2 below the positive.
    at = torch.stack([bars[:, 0]] * 2 + [bars[:, 1]] * 3, 1)
    expected = plain[0] - at + recorded.positive[:, None] - 2.0
    torch.testing.assert_close(shifted[0], expected)


@pytest.mark.parametrize("components", [None, Components(4, 2)], ids=["plain", "disentangled"])
@pytest.mark.parametrize("decoder", ["l1", "l2", "distmult", "complex"])
@pytest.mark.parametrize("share", [2, 3, 4, 9])
@pytest.mark.parametrize("few", [False, True], ids=["all move", "some move"])
def test_triples_that_share_negatives_learn_as_if_each_had_them_alone(
    components: Components | None, decoder: str, share: int, few: bool
) -> None:
    name, options = DECODERS[decoder]
    triples = TRIPLES.repeat(2, 1)[:7]
    heads = torch.randint(6, (-(-7 // share), 3), generator=torch.Generator().manual_seed(1))
    tails = torch.randint(6, (-(-7 // share), 2), generator=torch.Generator().manual_seed(2))
    found = []
    for once in (True, False):
        model = KnowledgeModel(name, 8, components, options, seed=3)
        model.grow(6, 2)
        if few:
            for table in model.tables().values():
                table.restrict(torch.arange(len(table) // 2))
        others = [heads, tails]
        if not once:
            others = [each.repeat_interleave(share, 0)[:7] for each in others]
        positive, negative, _ = model.score_links(triples, *others, share=share if once else 1)
        (positive.sum() + (negative * torch.arange(35.0).view(7, 5)).sum()).backward()  # type: ignore[no-untyped-call]
        paces = [table.pace() for table in model.tables().values()]
        gradients = [
            table.gradient if pace is None else table.gradient * pace
            for table, pace in zip(model.tables().values(), paces, strict=True)
        ]
        touched = model.entities.touched()
        assert touched is not None
        dirty = model.entities.gradient.any(1).nonzero()[:, 0]
        assert set(dirty.tolist()) <= set(touched.tolist())  # or nobody would clear them
        found.append((positive, negative, *gradients))
    for mine, theirs in zip(*found, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_a_shared_negative_that_is_known_counts_for_nothing() -> None:
    known = rows_of([(0, 0, 1), (0, 0, 2), (1, 0, 2), (3, 0, 3)])
    model = KnowledgeModel("transe", 4)
    model.grow(4, 1)
    sampler = NegativeSampler(known, 4, 1, torch.Generator().manual_seed(0))
    drawn = NegativeSampler(known, 4, 1, torch.Generator().manual_seed(0)).shared(known, 6, 2)
    loss = SelfAdversarial(1.0, 1.0)
    got = LinkObjective(sampler, loss, 6, share=2)(model, known, torch.ones(4))
    expected = 0.0
    for number, (h, r, t) in enumerate(known.tolist()):
        others = [(x, r, t) for x in drawn[0][number // 2].tolist()]
        others += [(h, r, x) for x in drawn[1][number // 2].tolist()]
        scores = [slow_score(model, each) for each in others if list(each) not in known.tolist()]
        one = loss(
            torch.tensor([slow_score(model, (h, r, t))]),
            torch.tensor([scores or [-1e9]]),
            None,
            torch.ones(1),
        )
        expected += one.item() / 4
    assert got.item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("share", [1, 3])
@pytest.mark.parametrize("components", [None, Components(4, 2)], ids=["plain", "divided"])
def test_what_a_step_takes_more_on_a_large_table_are_the_gradients_of_touched_rows(
    share: int, components: Components | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Table, "dense_bytes", 0)
    model = KnowledgeModel("transe", 8, components, seed=1)
    model.grow(50, 2)
    known = torch.randint(50, (20, 3), generator=torch.Generator().manual_seed(0))
    known[:, 1] %= 2
    sampler = NegativeSampler(known, 50, 2, torch.Generator().manual_seed(3))
    objective = LinkObjective(sampler, make_loss("margin", 4.0, 1.0), 6, share=share)
    objective(model, known, torch.ones(20)).backward()  # type: ignore[no-untyped-call]
    large, small = (step_bytes(model, 20, 6, share, sparse=sparse) for sparse in (True, False))
    assert large - small == 4 * model.entities.gradient.numel()


def test_a_step_copies_no_vectors_of_negatives() -> None:
    model = KnowledgeModel("transe", 256)
    assert step_bytes(model, 1024, 512, sparse=False) < 1024 * 512 * 4 * 256 / 10

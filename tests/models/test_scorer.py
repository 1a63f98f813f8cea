from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from dicgrl import UserError
from dicgrl.models import ConvKB, KnowledgeModel, Scorer, TransE, scorer
from tests.slow import slow_convkb, slow_transe

DIM = 5


def vectors(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, DIM, generator=generator, dtype=torch.float64)


def convkb(**options: float) -> ConvKB:
    made = ConvKB(DIM, filters=4, **options)  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(3)
    made.initialise(generator)
    with torch.no_grad():
        made.bias.normal_(generator=generator)  # zero at the start, which would hide it
    return made.double().eval()


SCORERS = {
    "transe p=1": lambda: TransE(DIM, p=1),
    "transe p=2": lambda: TransE(DIM, p=2),
    "convkb": convkb,
}
every_scorer = pytest.mark.parametrize("name", SCORERS)


def slow(made: Scorer, h: Tensor, r: Tensor, t: Tensor) -> float:
    rows = h.tolist(), r.tolist(), t.tolist()
    if isinstance(made, TransE):
        return slow_transe(*rows, made.p)
    assert isinstance(made, ConvKB)
    return slow_convkb(made, *rows)


@every_scorer
def test_scores_are_those_of_the_formula(name: str) -> None:
    made = SCORERS[name]()
    h, r, t = vectors(7, seed=1), vectors(7, seed=2), vectors(7, seed=3)
    expected = [slow(made, h[i], r[i], t[i]) for i in range(7)]
    assert made.score(h, r, t).tolist() == pytest.approx(expected, rel=1e-12)


@every_scorer
def test_leading_shapes_broadcast(name: str) -> None:
    made = SCORERS[name]()
    h, r, t = vectors(4, 1, seed=1), vectors(4, 1, seed=2), vectors(4, 3, seed=3)
    scores = made.score(h, r, t)
    assert scores.shape == (4, 3)
    for b in range(4):
        for m in range(3):
            assert scores[b, m].item() == pytest.approx(slow(made, h[b, 0], r[b, 0], t[b, m]))
    heads = made.score(t, r, h)
    assert heads[2, 1].item() == pytest.approx(slow(made, t[2, 1], r[2, 0], h[2, 0]))


@every_scorer
@pytest.mark.parametrize(("queries", "candidates"), [(3, 6), (6, 3), (1, 4), (4, 1)])
def test_all_pairs_at_once_are_the_scores_of_each_pair(
    name: str, queries: int, candidates: int
) -> None:
    made = SCORERS[name]()
    known, r = vectors(queries, seed=1), vectors(queries, seed=2)
    others = vectors(candidates, seed=3)
    tails, heads = made.score_tails(known, r, others), made.score_heads(others, r, known)
    assert tails.shape == heads.shape == (queries, candidates)
    for q in range(queries):
        for c in range(candidates):
            assert tails[q, c].item() == pytest.approx(slow(made, known[q], r[q], others[c]))
            assert heads[q, c].item() == pytest.approx(slow(made, others[c], r[q], known[q]))


@every_scorer
@pytest.mark.parametrize("shapes", [((3,), (3,), (3,)), ((2, 1), (2, 1), (2, 3)), ((3,), (1,), ())])
def test_gradients_are_right(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    made = SCORERS[name]()
    inputs = [vectors(*shape, seed=i).requires_grad_() for i, shape in enumerate(shapes)]
    parameters = list(made.parameters())

    def function(h: Tensor, r: Tensor, t: Tensor, *_: Tensor) -> Tensor:
        return made.score(h, r, t)

    assert torch.autograd.gradcheck(function, (*inputs, *parameters))


def test_convkb_is_a_convolution() -> None:
    made = convkb()
    filters = made.bias.numel()
    convolution = nn.Conv2d(1, filters, (1, 3)).double()
    with torch.no_grad():
        convolution.weight.copy_(made.kernel.T.reshape(filters, 1, 1, 3))
        convolution.bias.copy_(made.bias)  # type: ignore[union-attr]
    h, r, t = vectors(6, seed=1), vectors(6, seed=2), vectors(6, seed=3)
    matrix = torch.stack([h, r, t], -1)[:, None]  # [b, 1, dim, 3]
    seen = convolution(matrix).relu()[..., 0]  # [b, M, dim]
    expected = torch.einsum("bmd,dm->b", seen, made.weight)
    torch.testing.assert_close(made.score(h, r, t), expected)


def test_dropout_is_for_training_only_and_right_on_average() -> None:
    made = convkb(dropout=0.4)
    h, r, t = vectors(1, seed=1), vectors(1, seed=2), vectors(1, seed=3)
    steady = made.score(h, r, t)
    assert torch.equal(steady, made.score(h, r, t))
    assert steady.item() == pytest.approx(slow(made, h[0], r[0], t[0]))
    made.train()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        many = made.score(h.expand(4000, DIM), r.expand(4000, DIM), t.expand(4000, DIM))
    assert len(many.unique()) > 100
    error = many.std().item() / math.sqrt(4000)
    assert abs(many.mean().item() - steady.item()) < 5 * error


@pytest.mark.parametrize("p", [1, 2])
def test_a_perfect_translation_scores_zero_and_has_a_finite_gradient(p: int) -> None:
    h, r = vectors(2, seed=1).requires_grad_(), torch.zeros(2, DIM, dtype=torch.float64)
    scores = TransE(DIM, p=p).score(h, r, h.detach())
    assert scores.tolist() == [0, 0]
    scores.sum().backward()
    assert h.grad is not None and h.grad.isfinite().all()


@pytest.mark.parametrize("p", [0, 3, -1])
def test_other_norms_are_refused(p: int) -> None:
    with pytest.raises(UserError, match=f"p={p}"):
        TransE(DIM, p=p)


def test_an_unknown_scorer_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UserError, match="did you mean 'transe'"):
        scorer("tranze")
    with pytest.raises(UserError, match="convkb"):
        KnowledgeModel("convkp", length=4)


def test_start_values_depend_on_the_generator_alone() -> None:
    for name in ("transe", "convkb"):
        rows = [
            scorer(name)(DIM).initial(50, 3, torch.Generator().manual_seed(seed))
            for seed in (1, 1, 2)
        ]
        assert rows[0].shape == (50, 3)
        assert torch.equal(rows[0], rows[1]) and not torch.equal(rows[0], rows[2])
        assert len(rows[0].unique()) > 140


def test_convkb_starts_as_distances_of_three_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dicgrl.models.convkb._NOISE", 0.0)
    made = ConvKB(8, filters=20)
    made.initialise(torch.Generator())
    h, t = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(1))
    r = torch.rand(6, 8, generator=torch.Generator().manual_seed(2))  # both ways needs r > 0
    translation, both_ways, reflection = h + r - t, (h - t).abs() - r, h + t - r
    expected = torch.cat(
        [translation[:, ::2], both_ways[:, 1::4], reflection[:, 3::4]], dim=1
    ).abs()
    torch.testing.assert_close(made.score(h, r, t), -expected.sum(1))


def test_convkb_with_few_filters_starts_as_transe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dicgrl.models.convkb._NOISE", 0.0)
    made = ConvKB(DIM, filters=3)
    made.initialise(torch.Generator())
    h, r, t = (vectors(4, seed=seed).float() for seed in (1, 2, 3))
    torch.testing.assert_close(made.score(h, r, t), TransE(DIM, p=1).score(h, r, t))


def test_convkb_starts_at_random_where_asked() -> None:
    made = ConvKB(dim=64, filters=32, filters_start="random")
    made.initialise(torch.Generator().manual_seed(0))
    for weight in (made.kernel, made.weight):
        assert weight.mean().abs() < 0.1 * weight.std()
        assert len(torch.unique(weight)) == weight.numel()
    with pytest.raises(UserError, match="filters_start"):
        ConvKB(dim=4, filters_start="nowhere")

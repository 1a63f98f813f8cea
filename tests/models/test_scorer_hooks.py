"""What a scorer may say about its relations and its loss."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dicgrl.evaluation import Ranker
from dicgrl.models import Components, KnowledgeModel, Scorer
from dicgrl.models.scorer import Regulariser
from dicgrl.strategies.start import place_newcomers
from dicgrl.training import LinkObjective, NegativeSampler, RowAdam, make_loss

NAME = "rotation-of-the-tests"
DIVISIONS = {
    "plain": None,
    "learned": Components(4, 2),
    "published": Components(4, 2, routing="published"),
    "nodes": Components(4, 2, "nodes"),
    "triple": Components(4, 2, "triple"),
}
every_division = pytest.mark.parametrize("division", DIVISIONS)
TRIPLES = torch.tensor([[0, 0, 1], [1, 1, 2], [2, 0, 3], [4, 1, 0]])
WEIGHT = torch.tensor([1.0, 0.5, 2.0, 1.0])


class Rotation(Scorer):
    """Pairs of numbers are turned by an angle, of which a relation has half as many."""

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return (self.place_entity(head, relation, "tail") - tail).abs().sum(-1).neg()

    def relation_width(self, width: int) -> int:
        return width // 2

    def initial_relations(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        return torch.full((count, width), 0.5)

    def place_entity(self, given: Tensor, relation: Tensor, side: str) -> Tensor:
        angle = relation if side == "tail" else -relation
        x, y = given[..., ::2], given[..., 1::2]
        turned = (x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos())
        return torch.stack(turned, -1).flatten(-2)

    def place_relation(self, head: Tensor, tail: Tensor) -> Tensor:
        angles = (torch.atan2(e[..., 1::2], e[..., ::2]) for e in (tail, head))
        return next(angles) - next(angles)


class Cubic(Rotation):
    """With the cubes of all numbers in the loss, as in N3."""

    share = 0.25

    def regulariser(self) -> Regulariser | None:
        def cubes(head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
            return self.share * torch.cat([head, relation, tail], -1).abs().pow(3).sum(-1)

        return cubes if self.share else None


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scorer, "registry", Scorer.registry | {NAME: Rotation, "cubic": Cubic})


def made(division: str, name: str = NAME) -> KnowledgeModel:
    model = KnowledgeModel(name, 16, DIVISIONS[division], seed=1)
    model.grow(5, 2)
    return model


def loss_of(model: KnowledgeModel) -> Tensor:
    sampler = NegativeSampler(TRIPLES, 5, 2, torch.Generator().manual_seed(4))
    return LinkObjective(sampler, make_loss("margin", 1.0, 1.0), 4)(model, TRIPLES, WEIGHT)


@every_division
def test_the_table_of_relations_has_the_width_that_the_scorer_says(division: str) -> None:
    model = made(division)
    width = {"plain": 8, "published": 4}.get(division, 2)
    assert (model.relations.width, model.entities.width) == (
        width,
        16 if division == "plain" else 4,
    )
    h, r, t = TRIPLES.unbind(1)
    assert model.relation_vectors(r, model.route(h, r, t)).shape == (4, model.active // 2)
    loss_of(model).backward()  # type: ignore[no-untyped-call]
    RowAdam(model.tables().values(), lr=0.1).step()
    assert (model.relations.rows != 0.5).any()
    ranks = Ranker(TRIPLES, 2).rank(model, TRIPLES, range(5))
    assert ranks.higher.shape == (2, 4)


@every_division
def test_relations_start_in_their_own_way(division: str) -> None:
    model = made(division)
    assert (model.relations.rows == 0.5).all()
    assert not (model.entities.rows == 0.5).any()


@pytest.mark.parametrize("division", ["plain", "learned", "published"])
def test_newcomers_start_where_the_scorer_places_them(division: str) -> None:
    model = made(division)
    model.grow(1, 1)
    triples = torch.tensor([[0, 2, 1], [3, 0, 5]])
    place_newcomers(model, triples, 5, 2)
    scores = model.score(*triples.unbind(1))
    # A turn keeps lengths: entity 1 is at the right angles from 0, and 5 is where it should be.
    assert scores[1].item() == pytest.approx(0, abs=1e-5)
    route = model.route(*triples[:1].unbind(1))
    ends = [model.entity_vectors(triples[:1, i], route).view(1, -1, 2) for i in (0, 2)]
    lengths = ends[0].norm(dim=-1), ends[1].norm(dim=-1)
    at_the_angle = ends[1] * (lengths[0] / lengths[1])[..., None]
    turned = model.scorer.place_entity(
        ends[0].flatten(-2), model.relation_vectors(triples[:1, 1], route), "tail"
    )
    assert turned is not None
    torch.testing.assert_close(turned, at_the_angle.flatten(-2), rtol=1e-4, atol=1e-5)


@every_division
def test_a_regulariser_is_a_term_of_the_loss(division: str) -> None:
    plain, cubic = made(division), made(division, "cubic")
    h, r, t = TRIPLES.unbind(1)
    route = plain.route(h, r, t)
    vectors = [plain.entity_vectors(h, route), plain.relation_vectors(r, route),
               plain.entity_vectors(t, route)]  # fmt: skip
    each = torch.stack([v.abs().pow(3).sum(-1) for v in vectors]).sum(0).detach()
    expected = 0.25 * (each * WEIGHT).sum() / WEIGHT.sum()
    difference = loss_of(cubic) - loss_of(plain)
    torch.testing.assert_close(difference.detach(), expected, rtol=1e-4, atol=1e-5)


def test_a_regulariser_moves_vectors_and_not_attention() -> None:
    model = made("learned", "cubic")
    h, r, t = TRIPLES.unbind(1)
    term = model.regularisation(TRIPLES, model.route(h, r, t))
    assert term is not None
    term.sum().backward()  # type: ignore[no-untyped-call]
    assert model.attention is not None
    assert model.entities.gradient.any() and model.relations.gradient.any()
    assert not model.attention.gradient.any()


def test_without_a_regulariser_no_vector_is_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    model = made("learned", "cubic")
    monkeypatch.setattr(Cubic, "share", 0.0)
    monkeypatch.setattr(model, "entity_vectors", None)
    assert model.regularisation(TRIPLES, None) is None
    assert KnowledgeModel("transe", 8).regularisation(TRIPLES, None) is None

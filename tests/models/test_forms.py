"""Vectors of length 1 and inverse relations: scores, ranks and gradients, slowly and fast."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from dicgrl.errors import UserError
from dicgrl.evaluation import Ranker
from dicgrl.models import Components, KnowledgeModel
from dicgrl.models.reciprocal import backward, forward
from dicgrl.models.unit import unit
from dicgrl.settings import Settings
from dicgrl.training.objective import score_inverses

DECODERS = ("transe", "distmult", "complex", "rotate", "convkb")
KNOWN = torch.tensor([[0, 0, 1], [2, 1, 3], [4, 0, 4], [1, 1, 0], [5, 0, 2], [0, 0, 5]])


def model_of(name: str = "transe", **form: bool) -> KnowledgeModel:
    options: dict[str, Any] = {"filters": 3} if name == "convkb" else {}
    model = KnowledgeModel(name, 8, None, options, seed=3, **form)
    model.grow(7, 2)
    return model


def slow(model: KnowledgeModel, triple: list[int], *, inverse: bool = False) -> Tensor:
    """The score of one triple, from the bare scorer."""
    bare = model_of(model.name).scorer
    bare.load_state_dict(
        {key.split("inner.")[-1]: value for key, value in model.scorer.state_dict().items()}
    )
    h, r, t = triple
    ends = [model.entities.rows[h], model.entities.rows[t]]
    relation = model.relations.rows[r]
    if model.inverses:
        half = len(relation) // 2
        relation = relation[half:] if inverse else relation[:half]
    vectors = [ends[1], relation, ends[0]] if inverse else [ends[0], relation, ends[1]]
    if model.normalise:
        vectors = [vector / vector.norm() for vector in vectors]
    return bare.score(*vectors).detach()


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("inverses", [False, True])
def test_ranks_are_those_of_the_slow_scores(name: str, normalise: bool, inverses: bool) -> None:
    model = model_of(name, normalise=normalise, inverses=inverses)
    ranks = Ranker(KNOWN, 2).rank(model, KNOWN, range(7))
    known = {tuple(row) for row in KNOWN.tolist()}
    for i, triple in enumerate(KNOWN.tolist()):
        for side, column in ((0, 0), (1, 2)):
            inverse = inverses and column == 0
            true, higher = slow(model, triple, inverse=inverse), 0
            for other in range(7):
                asked = [*triple[:column], other, *triple[column + 1 :]]
                if tuple(asked) not in known:
                    higher += int(slow(model, asked, inverse=inverse) > true)
            assert ranks.higher[side, i].item() == higher


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("normalise", [False, True])
def test_batches_are_scored_in_both_directions(name: str, normalise: bool) -> None:
    model = model_of(name, normalise=normalise, inverses=True)
    heads, tails = torch.tensor([[6], [0]]), torch.tensor([[3, 4], [5, 5]])
    for inverse in (False, True):
        score = partial(score_inverses, model) if inverse else model.score_links
        positive, negative = score(KNOWN[:2], heads, tails)[:2]
        for i, (h, r, t) in enumerate(KNOWN[:2].tolist()):
            asked = (
                [[h, r, t]]
                + [[int(o), r, t] for o in heads[i]]
                + [[h, r, int(o)] for o in tails[i]]
            )
            expected = torch.stack([slow(model, each, inverse=inverse) for each in asked])
            found = torch.cat([positive[i : i + 1], negative[i]]).detach()
            assert torch.allclose(found, expected, atol=1e-5)


def test_a_length_changes_no_score_and_directions_learn() -> None:
    model = model_of(normalise=True)
    before = model.score(*KNOWN.unbind(1)).detach()
    model.entities.rows.mul_(torch.rand(7, 1) + 0.5)
    scores = model.score(*KNOWN.unbind(1))
    assert torch.allclose(scores, before, atol=1e-6)
    scores.sum().backward()
    along = (model.entities.gradient * model.entities.rows).sum(1)
    assert model.entities.gradient.any() and along.abs().max() < 1e-4


def test_both_halves_of_a_relation_learn() -> None:
    model = model_of(inverses=True)
    for score in (model.score_links, partial(score_inverses, model)):
        score(KNOWN, KNOWN[:, :1], KNOWN[:, 2:])[0].sum().backward()
    assert forward(model.relations.gradient).any(1).all()
    assert backward(model.relations.gradient).any(1).all()


@pytest.mark.parametrize("inverses", [False, True])
def test_a_newcomer_is_placed_where_its_questions_look(inverses: bool) -> None:
    model = model_of(inverses=inverses)
    h, r, t = (model.entity_vectors(torch.tensor([0]), None),
               model.relation_vectors(torch.tensor([1]), None),
               model.entity_vectors(torch.tensor([2]), None))  # fmt: skip
    for given, side in ((h, "tail"), (t, "head")):
        placed = model.scorer.place_entity(given, r, side)  # type: ignore[arg-type]
        assert placed is not None
        score = model.scorer.score_tails if side == "tail" else model.scorer.score_heads
        best = score(given, r, placed) if side == "tail" else score(placed, r, given)
        assert best.item() == pytest.approx(0, abs=1e-5)
    between = model.scorer.place_relation(h, t)
    assert between is not None and between.shape == r.shape
    assert torch.allclose(model.scorer.score(h, between, t), torch.zeros(1), atol=1e-5)


def test_a_model_of_this_form_comes_back_from_its_configuration() -> None:
    model = model_of("rotate", normalise=True, inverses=True)
    again = KnowledgeModel(**model.configuration())
    again.grow(7, 2)
    assert torch.equal(again.relations.rows, model.relations.rows)
    assert "inverses" not in model_of().configuration()


def test_components_have_no_inverses() -> None:
    with pytest.raises(UserError, match="inverses=true needs a plain model"):
        KnowledgeModel("transe", 8, Components(4, 2), inverses=True)
    with pytest.raises(UserError, match="inverses=true needs a plain model"):
        Settings("transe", "lower", components=4, top=2, inverses=True)


def test_routed_vectors_are_scaled_as_a_whole() -> None:
    model = KnowledgeModel("transe", 8, Components(4, 2), seed=1, normalise=True)
    model.grow(5, 2)
    triples = torch.tensor([[0, 1, 2], [3, 0, 4]])
    route = model.route(*triples.unbind(1))
    h, r, t = (
        unit(vectors)
        for vectors in (
            model.entity_vectors(triples[:, 0], route),
            model.relation_vectors(triples[:, 1], route),
            model.entity_vectors(triples[:, 2], route),
        )
    )
    assert torch.allclose(model.score(*triples.unbind(1)), -(h + r - t).abs().sum(1), atol=1e-6)
    ranks = Ranker(triples, 2).rank(model, triples, range(5))
    assert ranks.higher.max() <= 4

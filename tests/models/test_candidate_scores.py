"""Scores of many candidates at once, entities or relations, against one triple after the other."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dicgrl.models import Components, DistMult, KnowledgeModel, Scorer, TransE
from dicgrl.models.fast import Side

MODELS = ("transe", "distmult", "complex", "rotate", "convkb")
DIVISIONS = {
    "plain": None,
    "relation": Components(4, 2),
    "published": Components(4, 2, routing="published"),
    "by weight": Components(4, 3, order="weight"),
    "nodes": Components(4, 2, "nodes"),
    "triple": Components(4, 2, "triple"),
}
ENTITIES, RELATIONS, LENGTH = 23, 5, 16
every_model = pytest.mark.parametrize("name", MODELS)
every_division = pytest.mark.parametrize("division", DIVISIONS)


def made(name: str, division: str = "plain") -> KnowledgeModel:
    model = KnowledgeModel(name, LENGTH, DIVISIONS[division], seed=1)
    model.grow(ENTITIES, RELATIONS)
    return model.eval()


@every_model
@every_division
@torch.no_grad()
def test_scores_of_relations_are_those_of_triples(name: str, division: str) -> None:
    model = made(name, division)
    heads, tails = torch.tensor([3, 0, 7, 3]), torch.tensor([4, 0, 22, 9])
    found = model.relation_scores(heads, tails, 1, RELATIONS)
    for row, (head, tail) in enumerate(zip(heads, tails, strict=True)):
        for relation in range(1, RELATIONS):
            expected = model.score(head[None], torch.tensor([relation]), tail[None])[0]
            torch.testing.assert_close(found[row, relation - 1], expected, rtol=1e-4, atol=1e-5)


@every_model
@every_division
@pytest.mark.parametrize("side", ["head", "tail"])
@torch.no_grad()
def test_scores_among_entities_are_those_of_triples(name: str, division: str, side: Side) -> None:
    model = made(name, division)
    triples = torch.tensor([[3, 2, 4], [0, 2, 0], [7, 2, 22]])  # of one relation
    column = 0 if side == "head" else 2
    some = torch.tensor([1, 4, 5, 17, 22])
    found = model.scores_among(triples, side, some)
    whole = model.candidate_scores(triples, side, 2, ENTITIES)
    for row, triple in enumerate(triples):
        for entities, scores in ((some, found), (torch.arange(2, ENTITIES), whole)):
            each = triple.repeat(len(entities), 1)
            each[:, column] = entities
            expected = model.score(*each.unbind(1))
            torch.testing.assert_close(scores[row], expected, rtol=1e-4, atol=1e-5)


@pytest.fixture
def other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scorer, "registry", dict(Scorer.registry))


@pytest.mark.usefixtures("other_names")
@pytest.mark.parametrize("parent", [TransE, DistMult])
def test_a_scorer_that_scores_otherwise_inherits_no_scores_of_relations(
    parent: type[Scorer],
) -> None:
    class Weighed(parent, name="weighed-for-relations"):  # type: ignore[misc, valid-type, call-arg]
        def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
            found: Tensor = 2 * super().score(head, relation, tail)
            return found

    class Turned(parent, name="turned-for-relations"):  # type: ignore[misc, valid-type, call-arg]
        def query(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
            found: Tensor = super().query(given, relation.flip(-1), side)
            return found

    generator = torch.Generator().manual_seed(0)
    heads, relations, tails = (torch.randn(n, 8, generator=generator) for n in (4, 3, 4))
    for kind in (Weighed, Turned):
        made = kind(8)
        expected = made.score(heads[:, None], relations[None], tails[:, None])
        found = made.score_relations(heads, relations, tails)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

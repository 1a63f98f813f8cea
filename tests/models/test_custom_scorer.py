"""A new scoring function is one class: found by name, trained and ranked like the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from dicgrl import UserError
from dicgrl.common.options import option
from dicgrl.evaluation import Ranker, ranking_metrics
from dicgrl.models import Components, KnowledgeModel, Scorer, scorer
from dicgrl.models.scorer import ScorerSettings
from dicgrl.settings import Settings
from dicgrl.training import LinkObjective, NegativeSampler, Schedule, TrainingSet, fit, make_loss

NAME = "distmult-of-the-tests"


@pytest.fixture(autouse=True)
def distmult() -> Iterator[type[Scorer]]:
    class DistMult(Scorer, name=NAME):
        @dataclass(frozen=True)
        class Settings(ScorerSettings):
            scale: float = option(1.0, "What scores are multiplied by.", above=0)

        def __init__(self, dim: int, scale: float = 1.0) -> None:
            super().__init__(dim)
            self.scale = scale

        def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
            return self.scale * (head * relation * tail).sum(-1)

    yield DistMult
    del Scorer.registry[NAME]


def test_it_is_found_by_name_with_its_settings(distmult: type[Scorer]) -> None:
    assert scorer(NAME) is distmult
    settings = Settings().parsed([f"model={NAME}", "scale=3"])
    assert settings.of(distmult.Settings).as_dict() == {"scale": 3.0}
    with pytest.raises(UserError, match=r"^scale=0\.0: expected a number above 0"):
        settings.parsed(["scale=0"])
    with pytest.raises(UserError, match=f"^scale has no effect with this model; {NAME} uses it"):
        Settings("transe").parsed(["scale=3"])
    model = KnowledgeModel(NAME, 4, options=settings.of(distmult.Settings).as_dict())
    model.grow(3, 1)
    rows, relation = model.entities.rows, model.relations.rows
    expected = 3 * (rows[0] * relation[0] * rows[2]).sum()
    got = model.score(torch.tensor(0), torch.tensor(0), torch.tensor(2))
    assert got.item() == pytest.approx(expected.item())


@pytest.mark.parametrize("components", [None, Components(4, 2)], ids=["plain", "disentangled"])
def test_it_trains(components: Components | None) -> None:
    # Who is in one group knows each other: what a product of vectors can learn.
    triples = torch.tensor(
        [[a, 0, b] for a in range(12) for b in range(12) if a != b and a % 3 == b % 3]
    )
    model = KnowledgeModel(NAME, 16, components, seed=1)
    model.grow(12, 1)
    ranker = Ranker(triples, 1)
    before = ranking_metrics(ranker.rank(model, triples, range(12)))["mrr"]
    generator = torch.Generator().manual_seed(0)
    objective = LinkObjective(
        NegativeSampler(triples, 12, 1, generator), make_loss("softmargin", 0.0, 1.0), 8
    )
    schedule = Schedule(epochs=40, batch=12, lr=0.05)
    training_set = TrainingSet(lambda t, w: objective(model, t, w), triples)
    fit(model, training_set, schedule, generator)
    after = ranking_metrics(ranker.rank(model, triples, range(12)))["mrr"]
    assert before < 0.7
    assert after > 0.95

"""What speaks for a triple, in graphs where that is known by construction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dicgrl import Learner
from dicgrl.ask.support import Support, agreement, pulls
from dicgrl.models import Scorer
from dicgrl.training.known import HEAD, TAIL

TOWNS, FIRMS, PEOPLE = 4, 8, 96
Triple = tuple[str, str, str]


def town_of(person: int) -> str:
    return f"town{person % FIRMS % TOWNS}"


def facts() -> list[Triple]:
    """Who works for a firm lives in its town, and is housed by it; what they like says nothing."""
    draw = np.random.default_rng(0)
    given = [(f"firm{i}", "located in", f"town{i % TOWNS}") for i in range(FIRMS)]
    for i in range(PEOPLE):
        person, town = f"person{i}", town_of(i)
        given.append((person, "works for", f"firm{i % FIRMS}"))
        given += [(person, "likes", f"food{j}") for j in draw.choice(20, 3, replace=False)]
        given += [(person, "lives in", town), (town, "houses", person), (person, "votes in", town)]
    return given


HIDDEN = ("person0", "lives in", town_of(0))


@pytest.fixture(scope="module", params=["plain", "divided", "product"])
def learner(request: pytest.FixtureRequest) -> Iterator[Learner]:
    changes: dict[str, Any] = {
        "plain": {},
        "divided": {"components": 4, "top": 3},
        "product": {"loss": "softmargin", "margin": 0.0},
    }[request.param]
    model = "transe"
    if request.param == "product":  # any score will do

        class Product(Scorer, name="product-of-this-test"):
            def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
                return (head * relation * tail).sum(-1)

        model = Product.name
    learner = Learner(
        model, "lower", dim=24, epochs=60, lr=0.02, negatives=16, batch=128, device="cpu", **changes
    )
    learner.learn([fact for fact in facts() if fact != HIDDEN])
    yield learner
    Scorer.registry.pop("product-of-this-test", None)


def of_kind(found: list[Support], kind: str) -> list[Support]:
    return [entry for entry in found if entry.kind == kind]


def test_each_kind_of_support_is_found_with_how_often_its_rule_holds(learner: Learner) -> None:
    found = learner.explain(*HIDDEN, k=5).support
    path = next(entry for entry in of_kind(found, "path") if entry.facts[0][1] == "works for")
    assert path.facts == [("person0", "works for", "firm0"), ("firm0", "located in", "town0")]
    assert path.holds == 1.0 and path.seen == PEOPLE - 1
    (pair,) = of_kind(found, "pair")
    assert pair.facts == [("person0", "votes in", "town0")] and pair.holds == 1.0
    (inverse,) = of_kind(found, "inverse")
    assert inverse.facts == [("town0", "houses", "person0")] and inverse.holds == 1.0
    alike = of_kind(found, "alike")
    assert alike and all(entry.facts[0][1:] == ("lives in", "town0") for entry in alike)
    assert all(entry.holds is None for entry in alike)
    assert all(entry.contribution > 0 for entry in found)
    strengths = [entry.contribution for entry in found]
    assert strengths == sorted(strengths, reverse=True)


def test_what_makes_a_fact_true_contributes_more_than_what_does_not(learner: Learner) -> None:
    found = learner.explain(*HIDDEN, k=99).support
    work = next(e for e in of_kind(found, "about") if e.facts[0][1] == "works for")
    assert work.holds == 1.0 and work.seen == PEOPLE // FIRMS - 1
    tastes = [e for e in of_kind(found, "about") if e.facts[0][1] == "likes"]
    assert all(work.contribution > taste.contribution for taste in tastes)
    assert all(taste.holds is not None and taste.holds < 0.8 for taste in tastes)
    elsewhere = learner.explain("person0", "lives in", "town1", k=99).support
    assert work.contribution > max(
        (e.contribution for e in of_kind(elsewhere, "about") if e.facts == work.facts), default=-1
    )


def test_what_is_known_does_not_support_itself(learner: Learner) -> None:
    known = ("person5", "lives in", town_of(5))
    for entry in learner.explain(*known, k=99).support:
        assert known not in entry.facts


def test_a_triple_agrees_with_itself_and_the_cosine_is_that_of_small_steps(
    learner: Learner,
) -> None:
    """The change of one score by a step along the gradient of another, both by differences."""
    trainer = learner.trainer
    graph, model = trainer.graph, trainer.model
    one, other = graph.train[[FIRMS, FIRMS + 1]]
    assert one[HEAD] == other[HEAD]
    itself = agreement(trainer, one, HEAD, one[None], np.array([HEAD]))
    assert itself == pytest.approx([1.0], abs=1e-5)
    mine, theirs = (pulls(trainer, row[None], HEAD)[0] for row in (one, other))
    rows = model.entities.rows.view(model.num_entities, -1)
    kept = rows[one[HEAD]].clone()
    mean = rows.mean(0)

    def score(vector: torch.Tensor) -> float:
        rows[one[HEAD]] = vector
        triple = torch.from_numpy(one.copy())[None]
        with torch.no_grad():
            return model.score(*triple.unbind(1)).double().item()

    step = 1e-3
    changed = (score(mean + step * theirs) - score(mean - step * theirs)) / (2 * step)
    rows[one[HEAD]] = kept
    assert changed == pytest.approx((mine @ theirs).item(), abs=0.05 * theirs.norm().item() ** 2)


def test_hubs_are_bounded(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dicgrl.ask.support.FAN", 5)
    found = learner.explain("person1", "lives in", "town0", k=99).support
    assert len([e for e in found if e.kind == "about"]) <= 10
    assert pulls(learner.trainer, learner.trainer.graph.train[:7], TAIL).shape[0] == 7

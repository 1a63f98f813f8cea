"""DiCGRL on knowledge graphs: what is new arrives alone, behind a shield."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dicgrl.strategies.activator_links import LinkActivator
from dicgrl.strategies.mixed import MixedSet
from dicgrl.trainers import ExampleGroup, LinkTrainer
from dicgrl.training.gradients import take_gradients
from tests.growing import (
    activator,
    knowledge_stream,
    settings_of,
    strategy_of,
    trainer_of,
    watch_fit,
    weights,
)
from tests.strategies.test_dicgrl import begun, changed_rows, every_form


def watch_shield(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The triples of each shield that is raised from now on."""
    shielded: list[Tensor] = []
    original = LinkActivator.shield

    def watched(self: LinkActivator, triples: Tensor) -> ExampleGroup | None:
        shielded.append(triples)
        return original(self, triples)

    monkeypatch.setattr(LinkActivator, "shield", watched)
    return shielded


@every_form
@pytest.mark.parametrize("shield", ["0", "5", "all"])
def test_old_rows_and_weights_rest_while_new_ones_arrive(form: str, shield: str) -> None:
    changes: dict[str, Any] = {"shield": shield, "weight_decay": 0.1}
    trainer = begun(form, news_only=True, arrive_epochs=3, later_epochs=0, **changes)
    before, first_new = weights(trainer), trainer.old_rows()
    learned = strategy_of(trainer.settings).learn(trainer)
    after = weights(trainer)
    assert [fit.epochs for fit in learned.fits] == [3]
    assert learned.replayed == {"0": 0, "5": 5, "all": trainer.count("train", 0, 1)}[shield]
    for key, values in before.items():
        name = key.split("/")[0]
        old = values[: first_new[name]] if name in first_new else values
        assert torch.equal(after[key][: len(old)] if old.dim() else after[key], old), key
    assert not torch.equal(after["entities/rows"], before["entities/rows"])
    assert learned.details["drift"] == {"mean": 0.0, "largest": 0.0, "rows": 0}


def test_a_shield_compares_old_triples_with_new_entities_only() -> None:
    trainer = begun("transe-divided", negatives=30)
    assert trainer.part is not None
    old = trainer.examples("train", 0, 1)
    ends = set(old[:, [0, 2]].flatten().tolist())
    # Without its own answers a triple touches what it is compared with, here a self loop.
    one = torch.tensor([[0, 0, 0]])
    group = activator(trainer).shield(one)
    assert group is not None
    for shield, (objective, batch) in (
        (True, group[:2]),
        (False, (activator(trainer).objective(old), one)),
    ):
        objective(batch, torch.ones(1)).backward()
        touched = take_gradients(trainer.model)["table/entities"].any(1).view(-1, 4).any(1)
        others = set(touched.nonzero()[:, 0].tolist()) - {0}
        assert others & set(trainer.part.new_entities)
        assert bool(others & ends) != shield


def test_examples_that_shield_and_are_activated_count_once() -> None:
    trainer = begun("transe-divided", arrive_epochs=1, later_epochs=1, shield="all", budget="all")
    learned = strategy_of(trainer.settings).learn(trainer)
    assert learned.activated > 0
    assert learned.replayed == trainer.count("train", 0, 1)


@pytest.mark.parametrize("guard", [False, True])
def test_the_activated_examples_may_shield_and_then_count_once(
    guard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: dict[str, Any] = {"shield": "activated", "budget": "6", "guard": guard, "fan": 2}
    trainer = begun("transe-divided", arrive_epochs=2, later_epochs=2, **changes)
    shielded = watch_shield(monkeypatch)
    training_sets = watch_fit(trainer, monkeypatch)
    learned = strategy_of(trainer.settings).learn(trainer)
    arrival, update = training_sets
    assert isinstance(arrival, MixedSet) and isinstance(update, MixedSet)
    _, shield = arrival.groups
    _, activated, *guards = update.groups
    rows = {tuple(row) for row in activated.examples.tolist()}
    assert len(rows) == 6 == learned.replayed
    assert [{tuple(row) for row in triples.tolist()} for triples in shielded] == [rows]
    assert len(shield.examples) == 6
    assert guards == ([shield] if guard else [])  # without it, the shield is down in the update


def test_a_shield_is_raised_for_newcomers_that_arrive_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainer = begun("transe-divided", arrive_epochs=0, later_epochs=1, shield="5", guard=True)
    shielded = watch_shield(monkeypatch)
    strategy_of(trainer.settings).learn(trainer)
    assert shielded == []


def test_a_shield_of_activated_examples_says_what_was_activated() -> None:
    trainer = begun(
        "transe-divided", arrive_epochs=1, later_epochs=0, shield="activated", budget="3"
    )
    learned = strategy_of(trainer.settings).learn(trainer)
    assert learned.candidates >= learned.activated > 3 == learned.replayed


@pytest.mark.parametrize("newcomers", [True, False])
def test_facts_about_what_is_known_are_learned_where_there_is_no_update(newcomers: bool) -> None:
    settings = settings_of("transe-divided", "dicgrl", arrive_epochs=3, later_epochs=0, lr=0.05)
    trainer = trainer_of(settings)
    assert isinstance(trainer, LinkTrainer)
    first, second, _ = knowledge_stream()
    trainer.take(first)
    strategy_of(settings).learn(trainer)
    known = np.array([[1, 0, 2], [3, 1, 1]])
    train = np.concatenate([second.train, known]) if newcomers else known
    part = replace(second, train=train)
    if not newcomers:
        entities, relations = first.new_entities.stop, first.new_relations.stop
        part = replace(
            part,
            new_entities=range(entities, entities),
            new_relations=range(relations, relations),
            valid=second.valid[:0],
            test=second.test[:0],
        )
    trainer.take(part)
    before = weights(trainer)
    learned = strategy_of(settings).learn(trainer)
    assert [fit.epochs for fit in learned.fits] == ([3, 3] if newcomers else [3])
    moved = changed_rows(before, weights(trainer), "entities")
    assert {row // trainer.model.count for row in moved} >= {1, 2, 3}


def test_the_training_set_of_an_arrival_holds_the_shield_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainer = begun("transe-divided", news_only=True, arrive_epochs=1, later_epochs=0, shield="7")
    shielded = watch_shield(monkeypatch)
    training_sets = watch_fit(trainer, monkeypatch)
    strategy_of(trainer.settings).learn(trainer)
    (training_set,) = training_sets
    assert isinstance(training_set, MixedSet)
    history = {tuple(row) for row in trainer.examples("train", 0, 1).tolist()}
    new, guarding = training_set.groups
    (triples,) = shielded
    shield = [tuple(row) for row in triples.tolist()]
    assert len(set(shield)) == len(guarding.examples) == 7 and set(shield) <= history
    assert torch.equal(new.examples, trainer.examples("train", 1))
    assert torch.equal(training_set.examples, new.examples)
    assert guarding.weight.tolist() == [1.0] * 7

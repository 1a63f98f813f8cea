"""What every strategy owes its user, for every model and both tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from torch import Tensor

from dicgrl import UserError
from dicgrl.graph import KnowledgePart
from dicgrl.store.checkpoint import load_model, save_model
from dicgrl.strategies import Learned, Strategy, strategy_named
from dicgrl.strategies.budget import examples_within
from dicgrl.trainers import LinkTrainer, NodeTrainer
from tests.growing import (
    FORMS,
    LINK_FORMS,
    PLAIN_FORMS,
    RIVALS,
    STRATEGIES,
    same,
    settings_of,
    strategy_of,
    stream_of,
    trainer_of,
    weights,
)

PAIRS = [
    (form, name)
    for form in FORMS
    for name in STRATEGIES
    if name != "dicgrl" or "components" in FORMS[form]
] + [(form, name) for form in PLAIN_FORMS for name in RIVALS]
every_pair = pytest.mark.parametrize(("form", "name"), PAIRS, ids=lambda text: text)
every_form = pytest.mark.parametrize("form", FORMS)


@dataclass
class Learning:
    """A stream that was learned: what was reported, and the weights around every part."""

    trainer: LinkTrainer | NodeTrainer
    learned: list[Learned]
    before: list[dict[str, Tensor]]  # new rows have started, nothing is learned yet
    after: list[dict[str, Tensor]]
    states: list[dict[str, Tensor]]  # of the strategy, after every part
    saved: TemporaryDirectory[str]  # the model after two parts


def learn_all(form: str, name: str, seed: int = 0, parts: int = 3, **changes: object) -> Learning:
    settings = settings_of(form, name, **changes)
    trainer, learner = trainer_of(settings, seed), strategy_of(settings)
    found = Learning(trainer, [], [], [], [], TemporaryDirectory())
    for part in stream_of(form)[:parts]:
        trainer.take(part)
        learner.prepare(trainer)
        found.before.append(weights(trainer))
        found.learned.append(learner.learn(trainer))
        found.after.append(weights(trainer))
        found.states.append({key: values.clone() for key, values in learner.state().items()})
        if trainer.num_parts == 2:
            save_model(trainer.model, Path(found.saved.name), {})
        for table in trainer.model.tables().values():
            assert table.movable is None and table.pace() is None  # everything is open again
            assert table.touched() is None and not table.gradient.any()
        assert all(p.requires_grad for p in trainer.model.parameters())
    return found


learned_once = cache(learn_all)


def test_all_strategies_are_here() -> None:
    assert set(Strategy.registry) >= {*STRATEGIES, *RIVALS}


@every_pair
def test_a_stream_is_learned_to_its_end(form: str, name: str) -> None:
    found = learned_once(form, name)
    for number, (learned, now) in enumerate(zip(found.learned, found.after, strict=True)):
        assert all(values.isfinite().all() for values in now.values())
        if name == "frozen" and number:
            assert learned.fits == []
        else:
            epochs = 3
            if number and form in LINK_FORMS:  # 48 positives, of 12 new of 42 or 10 of 52
                epochs = {"warm": 1, "fresh": 2}.get(name, 3)
            assert [len(fit.history) for fit in learned.fits] == [epochs]
            assert all(fit.best_epoch >= 1 for fit in learned.fits)


@every_pair
def test_what_is_new_has_its_rows(form: str, name: str) -> None:
    trainer = learned_once(form, name).trainer
    part = stream_of(form)[-1]
    if isinstance(trainer, LinkTrainer):
        assert isinstance(part, KnowledgePart)
        assert trainer.model.num_entities == part.num_entities == 16
        assert trainer.model.num_relations == part.num_relations == 4
        ids = torch.arange(16)
        assert trainer.model.score(ids, ids % 4, ids.flip(0)).isfinite().all()
    else:
        assert trainer.model.num_classes == 4
        assert trainer.scores(torch.arange(30)).shape == (30, 4)


@every_pair
def test_something_is_learned_of_every_part_unless_frozen(form: str, name: str) -> None:
    found = learned_once(form, name)
    for number in range(3):
        still = same(found.before[number], found.after[number])
        assert still == (name == "frozen" and number > 0)


@every_pair
def test_old_examples_are_counted_and_within_the_budget(form: str, name: str) -> None:
    found = learned_once(form, name)
    assert found.learned[0].replayed == 0
    trainer = found.trainer
    for number in (1, 2):
        old = trainer.count("train", 0, number)
        replayed = found.learned[number].replayed
        if name in ("frozen", "lower", "ewc", *RIVALS):
            assert replayed == 0
        elif name in ("upper", "warm") or (name == "fresh" and form not in LINK_FORMS):
            assert replayed == old
        elif name == "fresh":
            assert replayed == 48 - 2 * trainer.count("train", number, number + 1) < old
        elif name == "dicgrl":
            assert 0 < replayed <= 6
        else:
            assert replayed == 6


@pytest.mark.parametrize("budget", ["0", "1", "30%", "0.5x", "all"])
@pytest.mark.parametrize("name", ["emr", "gem", "dicgrl"])
@pytest.mark.parametrize("form", ["transe-divided", "gat-divided"])
def test_every_kind_of_budget_is_kept(form: str, name: str, budget: str) -> None:
    found = learn_all(form, name, budget=budget, epochs=1)
    trainer = found.trainer
    for number in (1, 2):
        old, new = trainer.count("train", 0, number), trainer.count("train", number, number + 1)
        allowed = examples_within(budget, old, new)
        replayed = found.learned[number].replayed
        assert replayed <= allowed if name == "dicgrl" else replayed == allowed


@every_form
def test_frozen_changes_nothing_old_and_starts_what_is_new(form: str) -> None:
    found = learned_once(form, "frozen")
    for earlier, later in zip(found.after, found.after[1:], strict=False):
        for key, values in earlier.items():
            assert torch.equal(later[key][: len(values)], values)
    growing = "entities/rows" if form in LINK_FORMS else "class_weight"
    assert len(found.after[2][growing]) > len(found.after[0][growing])


@every_form
def test_the_same_seed_gives_the_same_weights_and_another_others(form: str) -> None:
    """That every strategy repeats itself is part of the next test."""
    first = learned_once(form, "gem")  # it draws a memory too
    torch.manual_seed(99)  # the global generator has no say
    assert same(learn_all(form, "gem").after[-1], first.after[-1])
    assert not same(learn_all(form, "gem", seed=1, parts=1).after[0], first.after[0])


@every_pair
def test_a_run_that_is_taken_up_again_goes_on_as_if_it_had_never_stopped(
    form: str, name: str
) -> None:
    expected = learned_once(form, name)
    torch.manual_seed(99)  # the global generator has no say
    settings = settings_of(form, name)
    stream = stream_of(form)
    again, other = trainer_of(settings), strategy_of(settings)
    before = trainer_of(settings)
    for part in stream[:2]:
        before.take(part)
    again.recall(before.history, load_model(Path(expected.saved.name))[0])
    other.restore(expected.states[1])
    again.take(stream[2])
    learned = other.learn(again)
    assert same(weights(again), expected.after[2])
    assert learned.replayed == expected.learned[2].replayed


@pytest.mark.parametrize("form", [form for form in FORMS if "components" not in FORMS[form]])
def test_a_plain_model_has_no_components_to_update(form: str) -> None:
    with pytest.raises(UserError, match="needs a disentangled model"):
        strategy_named("dicgrl").check_model(divided=settings_of(form, "dicgrl").components > 0)


@pytest.mark.parametrize("empty", ["train", "valid"])
@pytest.mark.parametrize(
    ("form", "name"),
    [(f, n) for f in ("transe-divided", "convkb-triple", "gat-divided") for n in STRATEGIES]
    + [("transe-unit", name) for name in RIVALS],
)
def test_a_later_part_may_bring_nothing(form: str, name: str, empty: str) -> None:
    """No training examples (or none to validate with) are no reason to fail."""
    settings = settings_of(form, name, validate_on="part", arrive_epochs=1, later_epochs=2)
    trainer, learner = trainer_of(settings), strategy_of(settings)
    for number, part in enumerate(stream_of(form)[:2]):
        rows = getattr(part, empty)
        trainer.take(replace(part, **{empty: rows[:0]}) if number else part)
        learner.learn(trainer)
    assert all(values.isfinite().all() for values in weights(trainer).values())


@pytest.mark.parametrize("validate_on", ["seen", "part"])
@pytest.mark.parametrize("form", ["transe-divided", "gat-divided"])
def test_a_later_part_is_judged_by_what_the_settings_say(
    form: str, validate_on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(form, "lower", validate_on=validate_on, later_epochs=2)
    trainer, learner = trainer_of(settings), strategy_of(settings)
    trainer.take(stream_of(form)[0])
    learner.learn(trainer)
    trainer.take(stream_of(form)[1])
    judged: list[list[Any]] = []
    judge = trainer.judge
    monkeypatch.setattr(
        trainer, "judge", lambda examples: (judged.append(examples.tolist()), judge(examples))[1]
    )
    learner.learn(trainer)
    watched = trainer.examples("valid", 1 if validate_on == "part" else 0).tolist()
    assert judged and all(examples == watched for examples in judged)
    assert len(trainer.examples("valid", 1)) < len(trainer.examples("valid"))


@pytest.mark.parametrize("name", [*STRATEGIES, *RIVALS])
def test_a_part_without_new_entities_is_learned(name: str) -> None:
    shield: dict[str, Any] = {"shield": "all", "shield_rank": 2, "guard": True}
    form = "transe" if name in RIVALS else "transe-divided"
    settings = settings_of(form, name, arrive_epochs=1, later_epochs=1, **shield)
    trainer, learner = trainer_of(settings), strategy_of(settings)
    stream = stream_of(form)
    trainer.take(stream[0])
    learner.learn(trainer)
    first = stream[0]
    nothing = range(first.num_entities, first.num_entities)
    relations = range(first.num_relations, first.num_relations)
    flipped = first.train[:, ::-1].copy()
    flipped[:, 1] = first.train[:, 1]
    trainer.take(
        replace(first, index=1, new_entities=nothing, new_relations=relations, train=flipped)
    )
    learner.learn(trainer)
    assert trainer.model.num_entities == first.num_entities
    assert all(values.isfinite().all() for values in weights(trainer).values())

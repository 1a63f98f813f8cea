"""EMR, EWC, and the two bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from dicgrl.models import KnowledgeModel
from dicgrl.models.division import VectorSettings
from dicgrl.strategies import ewc
from dicgrl.strategies.bounds import Lower
from dicgrl.strategies.budget import examples_within
from dicgrl.strategies.ewc import EWC
from dicgrl.trainers import LinkTrainer, NodeTrainer
from dicgrl.training import (
    LinkObjective,
    NegativeSampler,
    Schedule,
    TrainingSet,
    fit,
    make_loss,
)
from dicgrl.training.gradients import take_gradients
from dicgrl.training.losses import LossSettings
from tests.growing import same, settings_of, strategy_of, stream_of, trainer_of, weights


def training_set_of(
    trainer: LinkTrainer | NodeTrainer, learner: Any, monkeypatch: pytest.MonkeyPatch
) -> TrainingSet:
    """What a strategy gives to learn for the newest part, unlearned."""
    training_sets: list[TrainingSet] = []

    def catch(training_set: TrainingSet, *rest: Any, **named: Any) -> Any:
        training_sets.append(training_set)

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "fit", catch)
        learner.later(trainer, None)
    (training_set,) = training_sets
    return training_set


def begun(
    form: str, name: str, parts: int, **changes: Any
) -> tuple[LinkTrainer | NodeTrainer, Any]:
    """A trainer that has learned all parts but the last one, which it has taken in."""
    settings = settings_of(form, name, **changes)
    trainer, learner = trainer_of(settings), strategy_of(settings)
    for number, part in enumerate(stream_of(form)[:parts]):
        trainer.take(part)
        if number < parts - 1:
            learner.learn(trainer)
    return trainer, learner


def as_set(examples: Tensor) -> set[Any]:
    return {tuple(row) if isinstance(row, list) else row for row in examples.tolist()}


# Episodic memory.


@pytest.mark.parametrize("form", ["transe", "gat"])
@pytest.mark.parametrize("budget", ["0", "3", "50%", "0.4x", "all", "1000"])
def test_a_memory_is_a_part_of_the_history_without_repeats(
    form: str, budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, learner = begun(form, "emr", 3, budget=budget, epochs=1)
    history, new = trainer.examples("train", 0, 2), trainer.examples("train", 2)
    training_set = training_set_of(trainer, learner, monkeypatch)
    assert torch.equal(training_set.examples[: len(new)], new)
    memory = training_set.examples[len(new) :]
    assert len(memory) == len(as_set(memory)) == examples_within(budget, len(history), len(new))
    assert as_set(memory) <= as_set(history)
    assert (training_set.weight == 1).all()


def test_a_memory_is_drawn_from_all_of_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, learner = begun("transe", "emr", 3, budget="5", epochs=1)
    found: set[Any] = set()
    for _ in range(60):
        training_set = training_set_of(trainer, learner, monkeypatch)
        found |= as_set(training_set.examples[trainer.count("train", 2) :])
    assert found == as_set(trainer.examples("train", 0, 2))


# Bounds.


@pytest.mark.parametrize("form", ["transe", "sage"])
def test_the_lower_bound_learns_the_new_part_alone(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, learner = begun(form, "lower", 3)
    training_set = training_set_of(trainer, learner, monkeypatch)
    assert torch.equal(training_set.examples, trainer.examples("train", 2))


@pytest.mark.parametrize("form", ["transe-divided", "convkb", "gat", "sage-divided"])
def test_the_upper_bound_does_not_remember_how_it_got_there(form: str) -> None:
    """What was learned of earlier parts makes no difference; with the epochs of the first part."""
    learned, learner = begun(form, "upper", 3, later_epochs=1)
    report = learner.learn(learned)
    assert report.fits[0].epochs == 3
    fresh = trainer_of(learned.settings)
    for part in stream_of(form):
        fresh.take(part)
    strategy_of(fresh.settings).learn(fresh)
    assert same(weights(learned), weights(fresh))


@pytest.mark.parametrize("form", ["transe", "transe-divided"])
def test_the_upper_bound_is_training_from_scratch_on_all_triples(form: str) -> None:
    trainer, learner = begun(form, "upper", 3, validate_every=100)
    assert isinstance(trainer, LinkTrainer)
    settings = trainer.settings
    learner.learn(trainer)
    train = torch.from_numpy(trainer.graph.train.astype(np.int64))
    assert as_set(train) == {tuple(r) for part in stream_of(form) for r in part.train.tolist()}
    vectors = settings.of(VectorSettings)
    model = KnowledgeModel(
        settings.model, vectors.length, vectors.division(), seed=trainer.seed + 3
    )
    model.grow(16, 4)
    generator = torch.Generator().manual_seed(trainer.seed + 2 * 1_000_003)
    sampler = NegativeSampler(train, 16, 4, generator)
    loss = make_loss(settings.loss, **settings.of(LossSettings).as_dict())
    objective = LinkObjective(sampler, loss, settings.negatives, settings.beta)
    training_set = TrainingSet(lambda rows, weight: objective(model, rows, weight), train)
    fit(model, training_set, settings.of(Schedule), generator)
    for name, table in model.tables().items():
        assert torch.equal(table.rows, trainer.model.tables()[name].rows)


# Elastic weight consolidation.


@pytest.mark.parametrize("form", ["transe", "convkb-divided", "gat"])
def test_what_is_added_to_a_step_is_the_gradient_of_the_penalty(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, learner = (
        begun(form, "ewc", 2, strength=3.5, dropout=0.0)
        if form == "gat"
        else begun(form, "ewc", 2, strength=3.5)
    )
    model = trainer.model
    anchor = {n: t.state("anchor").clone() for n, t in model.tables().items()}
    fisher = {n: t.state("fisher").clone() for n, t in model.tables().items()}
    state = learner.state()
    with torch.no_grad():  # somewhere else
        for number, table in enumerate(model.tables().values()):
            table.rows.add_(torch.sin(torch.arange(table.rows.numel()).view(table.rows.shape)))
            assert number < 3
        for parameter in model.parameters():
            parameter += 0.1
    training_set = training_set_of(trainer, learner, monkeypatch)
    chosen = training_set.examples[:3]

    def backward() -> None:
        trainer.generator.manual_seed(1)  # the same negatives
        training_set.objective(chosen, torch.ones(3)).backward()

    backward()
    touched = {n: t.touched() for n, t in model.tables().items()}
    plain = take_gradients(model)
    backward()
    training_set.adjust()
    held = take_gradients(model)
    for name, table in model.tables().items():
        ids = touched[name]
        assert ids is not None
        rows = table.rows.clone().requires_grad_()
        old = len(anchor[name])
        penalty = 3.5 / 2 * (fisher[name] * (rows[:old] - anchor[name]) ** 2)
        penalty.sum().backward()
        assert rows.grad is not None
        mask = torch.zeros(len(rows), 1)
        mask[ids] = 1
        mask[len(anchor[name]) :] = 0
        expected = plain[f"table/{name}"] + mask * rows.grad
        assert torch.allclose(held[f"table/{name}"], expected, rtol=1e-4, atol=1e-5)
    for name, parameter in model.named_parameters():
        values = parameter.detach().clone().requires_grad_()
        before, important = state[f"anchor/{name}"], state[f"fisher/{name}"]
        (3.5 / 2 * (important * (values[: len(before)] - before) ** 2)).sum().backward()
        assert values.grad is not None
        assert torch.allclose(held[name], plain[name] + values.grad, rtol=1e-4, atol=1e-5)
    assert any(not torch.equal(held[name], plain[name]) for name in plain)


def test_importance_is_the_mean_squared_gradient_and_adds_up_over_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ewc, "_BATCH", 1)
    settings = settings_of("sage", "ewc", dropout=0.0)
    trainer, learner = trainer_of(settings), strategy_of(settings)
    assert isinstance(trainer, NodeTrainer)
    total: dict[str, Tensor] = {}
    for number, part in enumerate(stream_of("sage")):
        trainer.take(part)
        learner.learn(trainer)
        trainer.model.eval()
        nodes = trainer.examples("train", number, number + 1)
        own: dict[str, Tensor] = {
            n: torch.zeros_like(p) for n, p in trainer.model.named_parameters()
        }
        for node in nodes:
            trainer.model.zero_grad()
            scores = trainer.model(trainer.x, trainer.edges)[node]
            F.cross_entropy(scores[None], trainer.labels[node][None]).backward()
            for name, parameter in trainer.model.named_parameters():
                if parameter.grad is not None:
                    own[name] += parameter.grad**2 / len(nodes)
        trainer.model.zero_grad(set_to_none=True)
        for name, values in own.items():
            if name in total:
                values[: len(total[name])] += total[name]
            total[name] = values
        state = learner.state()
        for name, parameter in trainer.model.named_parameters():
            assert torch.allclose(state[f"fisher/{name}"], total[name], rtol=1e-3, atol=1e-8)
            assert torch.equal(state[f"anchor/{name}"], parameter)


@pytest.mark.parametrize("form", ["transe-divided", "convkb"])
def test_importance_of_rows_never_falls_and_new_rows_start_without(form: str) -> None:
    trainer, learner = begun(form, "ewc", 2)
    tables = trainer.model.tables()
    before = {name: table.state("fisher").clone() for name, table in tables.items()}
    for name, first in trainer.old_rows().items():
        assert not before[name][first:].any()
        assert before[name][:first].any()
    learner.learn(trainer)
    for name, table in tables.items():
        after = table.state("fisher")
        assert (after >= before[name]).all() and (after > before[name]).any()
        assert torch.equal(table.state("anchor"), table.rows)


@pytest.mark.parametrize("form", ["transe", "gat"])
def test_a_strong_penalty_holds_what_is_important(form: str) -> None:
    moved = {}
    for strength in (0.0, 1e8):
        settings = settings_of(
            form, "ewc", strength=strength, epochs=20, lr=0.02, validate_every=100, patience=0
        )
        trainer, learner = trainer_of(settings), strategy_of(settings)
        stream = stream_of(form)
        trainer.take(stream[0])
        learner.learn(trainer)
        if isinstance(trainer, LinkTrainer):
            fisher = trainer.model.entities.state("fisher").clone()
            before = trainer.model.entities.rows.clone()
        else:
            fisher = learner.state()["fisher/class_weight"].clone()
            before = trainer.model.class_weight.detach().clone()
        trainer.take(stream[1])
        learner.learn(trainer)
        now = (
            trainer.model.entities.rows
            if isinstance(trainer, LinkTrainer)
            else trainer.model.class_weight
        )
        important = fisher > fisher.median()
        change = (now.detach()[: len(before)] - before).abs()[important]
        moved[strength] = change.mean().item()
    assert moved[1e8] < 0.3 * moved[0.0]


def test_without_strength_it_is_fine_tuning() -> None:
    found = []
    for learner in (EWC(EWC.Settings(strength=0.0)), Lower(Lower.Settings())):
        trainer, _ = begun("transe", "lower", 2)
        assert isinstance(trainer, LinkTrainer)
        for table in trainer.model.tables().values():
            table.state("fisher").fill_(7.0)
        learner.later(trainer, None)
        found.append(trainer.model.entities.rows.clone())
    assert torch.equal(found[0], found[1])

"""EMR, EWC, and the two bounds."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from dicgrl.models import KnowledgeModel
from dicgrl.settings import LinkSettings, examples_within
from dicgrl.strategies import ewc, strategy
from dicgrl.strategies.bounds import Lower, Upper
from dicgrl.strategies.emr import EMR
from dicgrl.strategies.ewc import EWC
from dicgrl.trainers import LinkTrainer, NodeTrainer
from dicgrl.training import LinkObjective, NegativeSampler, TrainingSet, fit, make_loss
from dicgrl.training.gradients import take_gradients
from tests.growing import run_of, same, settings_of, stream_of, weights


def lesson_of(
    run: LinkTrainer | NodeTrainer, learner: Any, monkeypatch: pytest.MonkeyPatch
) -> TrainingSet:
    """What a strategy gives to learn for the newest part, unlearned."""
    lessons: list[TrainingSet] = []

    def catch(lesson: TrainingSet, *rest: Any) -> Any:
        lessons.append(lesson)

    with monkeypatch.context() as patch:
        patch.setattr(run, "fit", catch)
        learner.later(run, None)
    (lesson,) = lessons
    return lesson


def begun(
    form: str, name: str, parts: int, **changes: Any
) -> tuple[LinkTrainer | NodeTrainer, Any]:
    """A run that has learned all parts but the last one, which it has taken in."""
    settings = settings_of(form, name, **changes)
    run, learner = run_of(settings), strategy(settings)
    for number, part in enumerate(stream_of(form)[:parts]):
        run.take(part)
        if number < parts - 1:
            learner.learn(run)
    return run, learner


def as_set(examples: Tensor) -> set[Any]:
    return {tuple(row) if isinstance(row, list) else row for row in examples.tolist()}


# Episodic memory.


@pytest.mark.parametrize("form", ["transe", "gat"])
@pytest.mark.parametrize("budget", ["0", "3", "50%", "0.4x", "all", "1000"])
def test_a_memory_is_a_part_of_the_history_without_repeats(
    form: str, budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = begun(form, "lower", 3, budget=budget, epochs=1)
    history, new = run.examples("train", 0, 2), run.examples("train", 2)
    lesson = lesson_of(run, EMR(run.settings), monkeypatch)
    assert torch.equal(lesson.examples[: len(new)], new)
    memory = lesson.examples[len(new) :]
    assert len(memory) == len(as_set(memory)) == examples_within(budget, len(history), len(new))
    assert as_set(memory) <= as_set(history)
    assert (lesson.weight == 1).all()


def test_a_memory_is_drawn_from_all_of_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = begun("transe", "lower", 3, budget="5", epochs=1)
    found: set[Any] = set()
    for _ in range(60):
        lesson = lesson_of(run, EMR(run.settings), monkeypatch)
        found |= as_set(lesson.examples[run.count("train", 2) :])
    assert found == as_set(run.examples("train", 0, 2))


# Bounds.


@pytest.mark.parametrize("form", ["transe", "sage"])
def test_the_lower_bound_learns_the_new_part_alone(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, learner = begun(form, "lower", 3)
    lesson = lesson_of(run, learner, monkeypatch)
    assert torch.equal(lesson.examples, run.examples("train", 2))


@pytest.mark.parametrize("form", ["transe-divided", "convkb", "gat", "sage-divided"])
def test_the_upper_bound_does_not_remember_how_it_got_there(form: str) -> None:
    """What was learned of earlier parts makes no difference; with the epochs of the first part."""
    learned, learner = begun(form, "upper", 3, later_epochs=1)
    report = learner.learn(learned)
    assert report.fits[0].epochs == 3
    fresh = run_of(learned.settings)
    for part in stream_of(form):
        fresh.take(part)
    Upper(fresh.settings).learn(fresh)
    assert same(weights(learned), weights(fresh))


@pytest.mark.parametrize("form", ["transe", "transe-divided"])
def test_the_upper_bound_is_training_from_scratch_on_all_triples(form: str) -> None:
    run, learner = begun(form, "upper", 3, validate_every=100)
    assert isinstance(run, LinkTrainer) and isinstance(run.settings, LinkSettings)
    settings = run.settings
    learner.learn(run)
    train = torch.from_numpy(run.graph.train.copy())
    assert as_set(train) == {tuple(r) for part in stream_of(form) for r in part.train.tolist()}
    model = KnowledgeModel(settings.model, settings.dim, settings.division(), seed=run.seed + 3)
    model.grow(16, 4)
    generator = torch.Generator().manual_seed(run.seed + 2 * 1_000_003)
    sampler = NegativeSampler(train, 16, 4, generator)
    loss = make_loss(settings.loss, settings.margin, settings.temperature)
    objective = LinkObjective(sampler, loss, settings.negatives, settings.beta)
    lesson = TrainingSet(lambda rows, weight: objective(model, rows, weight), train)
    fit(model, lesson, settings.schedule(), generator)
    for name, table in model.tables().items():
        assert torch.equal(table.rows, run.model.tables()[name].rows)


# Elastic weight consolidation.


@pytest.mark.parametrize("form", ["transe", "convkb-divided", "gat"])
def test_what_is_added_to_a_step_is_the_gradient_of_the_penalty(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, learner = (
        begun(form, "ewc", 2, strength=3.5, dropout=0.0)
        if form == "gat"
        else begun(form, "ewc", 2, strength=3.5)
    )
    model = run.model
    anchor = {n: t.state("anchor").clone() for n, t in model.tables().items()}
    fisher = {n: t.state("fisher").clone() for n, t in model.tables().items()}
    state = learner.state()
    with torch.no_grad():  # somewhere else
        for number, table in enumerate(model.tables().values()):
            table.rows.add_(torch.sin(torch.arange(table.rows.numel()).view(table.rows.shape)))
            assert number < 3
        for parameter in model.parameters():
            parameter += 0.1
    lesson = lesson_of(run, learner, monkeypatch)
    chosen = lesson.examples[:3]

    def backward() -> None:
        run.generator.manual_seed(1)  # the same negatives
        lesson.objective(chosen, torch.ones(3)).backward()

    backward()
    touched = {n: t.touched() for n, t in model.tables().items()}
    plain = take_gradients(model)
    backward()
    lesson.adjust()
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
    run, learner = run_of(settings), EWC(settings)
    assert isinstance(run, NodeTrainer)
    total: dict[str, Tensor] = {}
    for number, part in enumerate(stream_of("sage")):
        run.take(part)
        learner.learn(run)
        run.model.eval()
        nodes = run.examples("train", number, number + 1)
        own: dict[str, Tensor] = {n: torch.zeros_like(p) for n, p in run.model.named_parameters()}
        for node in nodes:
            run.model.zero_grad()
            scores = run.model(run.x, run.edges)[node]
            F.cross_entropy(scores[None], run.labels[node][None]).backward()
            for name, parameter in run.model.named_parameters():
                if parameter.grad is not None:
                    own[name] += parameter.grad**2 / len(nodes)
        run.model.zero_grad(set_to_none=True)
        for name, values in own.items():
            if name in total:
                values[: len(total[name])] += total[name]
            total[name] = values
        state = learner.state()
        for name, parameter in run.model.named_parameters():
            assert torch.allclose(state[f"fisher/{name}"], total[name], rtol=1e-3, atol=1e-8)
            assert torch.equal(state[f"anchor/{name}"], parameter)


@pytest.mark.parametrize("form", ["transe-divided", "convkb"])
def test_importance_of_rows_never_falls_and_new_rows_start_without(form: str) -> None:
    run, learner = begun(form, "ewc", 2)
    tables = run.model.tables()
    before = {name: table.state("fisher").clone() for name, table in tables.items()}
    for name, first in run.old_rows().items():
        assert not before[name][first:].any()
        assert before[name][:first].any()
    learner.learn(run)
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
        run, learner = run_of(settings), EWC(settings)
        stream = stream_of(form)
        run.take(stream[0])
        learner.learn(run)
        if isinstance(run, LinkTrainer):
            fisher = run.model.entities.state("fisher").clone()
            before = run.model.entities.rows.clone()
        else:
            fisher = learner.state()["fisher/class_weight"].clone()
            before = run.model.class_weight.detach().clone()
        run.take(stream[1])
        learner.learn(run)
        now = run.model.entities.rows if isinstance(run, LinkTrainer) else run.model.class_weight
        important = fisher > fisher.median()
        change = (now.detach()[: len(before)] - before).abs()[important]
        moved[strength] = change.mean().item()
    assert moved[1e8] < 0.3 * moved[0.0]


def test_without_strength_it_is_fine_tuning() -> None:
    found = []
    for name in ("ewc", "lower"):
        run, _ = begun("transe", "lower", 2)
        learner = EWC(run.settings.changed({"strength": 0.0})) if name == "ewc" else None
        if learner is not None:
            for table in run.model.tables().values():
                table.state("fisher").fill_(7.0)
        (learner or Lower(run.settings)).later(run, None)
        found.append(run.model.entities.rows.clone() if isinstance(run, LinkTrainer) else None)
    assert found[0] is not None and found[1] is not None
    assert torch.equal(found[0], found[1])

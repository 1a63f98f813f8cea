from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from torch import Tensor

from dicgrl import Learner, UserError
from dicgrl.graph import KnowledgeStream
from dicgrl.strategies.gem import GEM, Projection, project
from dicgrl.trainers import LinkTrainer
from dicgrl.training.gradients import inner, put_gradients, take_gradients
from dicgrl.training.stepper import Objective
from tests.growing import knowledge_stream, settings_of, strategy_of, trainer_of


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 6))
def test_the_projection_is_the_nearest_vector_that_agrees(seed: int, parts: int, size: int) -> None:
    """Against a general solver, on the primal problem."""
    random = np.random.default_rng(seed)
    gradient, memory = random.normal(size=size), random.normal(size=(parts, size))
    dual = project(memory @ memory.T, memory @ gradient)
    assert (dual >= 0).all()
    found = gradient + memory.T @ dual
    assert (memory @ found >= -1e-6).all()
    slow = minimize(
        lambda z: 0.5 * ((z - gradient) ** 2).sum(),
        found + 0.1,
        jac=lambda z: z - gradient,
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda z: memory @ z, "jac": lambda _: memory}],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    distance = ((found - gradient) ** 2).sum()
    assert distance <= ((slow.x - gradient) ** 2).sum() + 1e-4
    if slow.success:
        assert np.allclose(found, slow.x, atol=1e-3)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.floats(0.0, 2.0))
def test_with_a_margin_no_memory_weighs_less(seed: int, parts: int, margin: float) -> None:
    """Against a bounded solver, on the dual problem; where all agree nothing is projected."""
    random = np.random.default_rng(seed)
    gradient, memory = random.normal(size=5), random.normal(size=(parts, 5))
    dual = project(memory @ memory.T, memory @ gradient, margin)
    if (memory @ gradient >= 0).all():
        assert not dual.any()
        return
    assert (dual >= margin - 1e-9).all()

    def length(v: Any) -> float:
        return float(((gradient + memory.T @ v) ** 2).sum())

    slow = minimize(length, dual, method="L-BFGS-B", bounds=[(margin, None)] * parts)
    assert length(dual) <= slow.fun + 1e-4


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e6])
@pytest.mark.parametrize(
    "memory",
    [
        [[1.0, 0.0], [1.0, 0.0]],  # two parts say the same
        [[1.0, 0.0], [0.0, 0.0]],  # one says nothing
        [[1.0, 0.0], [-1.0, 0.0]],  # they contradict each other: only 0 agrees in that direction
        [[1.0, 0.0], [-0.5, 0.8], [-0.5, -0.8]],  # nothing agrees but 0
    ],
)
def test_memories_that_repeat_or_contradict_one_another(
    memory: list[list[float]], scale: float
) -> None:
    rows = np.array(memory) * scale
    gradient = np.array([-2.0, -1.0])
    found = gradient + rows.T @ project(rows @ rows.T, rows @ gradient)
    assert (rows @ found >= -1e-5 * scale).all()
    expected = {0: [0, -1], 1: [0, -1], 2: [0, -1], 3: [0, 0]}
    which = [len(memory) == 3, memory[1][0] == -1, not any(memory[1]), True].index(True)
    assert found == pytest.approx(expected[3 - which], abs=1e-4)


def test_a_gradient_that_is_not_finite_is_left_to_the_loop() -> None:
    assert project(np.array([[np.nan]]), np.array([1.0])).tolist() == [0.0]
    assert project(np.array([[1.0]]), np.array([np.inf])).tolist() == [0.0]


def started(form: str) -> LinkTrainer:
    trainer = trainer_of(settings_of(form, "gem"))
    assert isinstance(trainer, LinkTrainer)
    for part in knowledge_stream():
        trainer.take(part)
    return trainer


def shares(trainer: LinkTrainer, signs: tuple[float, ...]) -> Any:
    """A loss without randomness; the sign of a part's scores says what it wants."""
    starts = [trainer.count("train", 0, number) for number in range(4)]
    part_of = {
        tuple(row): number
        for number in range(3)
        for row in trainer.examples("train", number, number + 1).tolist()
    }
    assert starts[-1] == len(part_of)

    def loss(triples: Tensor, weight: Tensor) -> Tensor:
        sign = torch.tensor([signs[part_of[tuple(row)]] for row in triples.tolist()])
        return (sign * weight * trainer.model.score(*triples.unbind(1))).sum()

    return loss


def adjust(trainer: LinkTrainer, objective: Objective, memories: list[Tensor]) -> None:
    """Project a step on what these memories agree with."""
    projection = Projection(Projection.Settings())
    projection._memories = memories
    projection.adjust(trainer, objective)


@pytest.mark.parametrize("form", ["transe", "transe-divided", "convkb-divided"])
@pytest.mark.parametrize("signs", [(1, 1, -1), (1, -1, -1), (-1, 1, 0.1)])
def test_a_step_agrees_with_every_memory(form: str, signs: tuple[float, ...]) -> None:
    trainer = started(form)
    objective = shares(trainer, signs)
    memories = [trainer.sample(5, part, part + 1) for part in (0, 1)]
    old = []
    for memory in memories:
        objective(memory, torch.ones(len(memory))).backward()
        old.append(take_gradients(trainer.model))
    new = trainer.examples("train", 2)
    objective(new, torch.ones(len(new))).backward()
    given_gradient = take_gradients(trainer.model)
    put_gradients(trainer.model, {name: values.clone() for name, values in given_gradient.items()})
    assert min(inner(gradient, given_gradient) for gradient in old) < 0  # something to correct
    adjust(trainer, objective, memories)
    found = take_gradients(trainer.model)
    length = inner(found, found).sqrt()
    for gradient in old:
        assert inner(gradient, found) >= -1e-5 * length * inner(gradient, gradient).sqrt()
    # The nearest one: what was added has no part along what remains (complementary slackness).
    change = {name: found[name] - values for name, values in given_gradient.items()}
    assert abs(inner(change, found)) <= 1e-4 * inner(given_gradient, given_gradient)
    assert inner(change, change) > 0


@pytest.mark.parametrize("form", ["transe", "convkb-divided"])
def test_a_step_that_nobody_minds_is_left_as_it_is(form: str) -> None:
    trainer = started(form)
    objective = shares(trainer, (1.0, 1.0, 1.0))
    new = trainer.examples("train", 2)
    objective(new, torch.ones(len(new))).backward()
    before = take_gradients(trainer.model)
    put_gradients(trainer.model, {name: values.clone() for name, values in before.items()})
    # The new examples stand in for the memory: their gradient agrees with itself.
    adjust(trainer, objective, [new, new])
    after = take_gradients(trainer.model)
    assert all(torch.equal(after[name], values) for name, values in before.items())


def test_gradients_are_taken_away_put_back_and_compared() -> None:
    trainer = started("convkb-divided")
    objective = shares(trainer, (1.0, 1.0, 1.0))
    rows = trainer.examples("train", 2)
    objective(rows, torch.ones(len(rows))).backward()
    expected = {f"table/{n}": t.gradient.clone() for n, t in trainer.model.tables().items()}
    expected |= {
        n: p.grad.clone() for n, p in trainer.model.named_parameters() if p.grad is not None
    }
    taken = take_gradients(trainer.model)
    assert taken.keys() == expected.keys() | dict(trainer.model.named_parameters()).keys()
    assert all(torch.equal(taken[name], values) for name, values in expected.items())
    for table in trainer.model.tables().values():
        assert not table.gradient.any() and table.touched() is None
    assert all(p.grad is None for p in trainer.model.parameters())
    flat = torch.cat([values.flatten() for values in taken.values()])
    assert inner(taken, taken).item() == pytest.approx((flat @ flat).item(), rel=1e-5)
    put_gradients(trainer.model, taken)
    for name, table in trainer.model.tables().items():
        assert torch.equal(table.gradient, taken[f"table/{name}"])
        ids = table.touched()
        assert ids is not None
        assert set(ids.tolist()) == set(table.gradient.any(1).nonzero()[:, 0].tolist())


@pytest.mark.parametrize("budget", range(16))
def test_memories_of_all_parts_share_the_budget_by_size(
    budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three old parts of one size: what is rounded up in one is rounded down in another."""
    settings = settings_of("transe", "gem", budget=str(budget), epochs=1)
    trainer = trainer_of(settings)
    assert isinstance(trainer, LinkTrainer)
    lists = [[(f"{part} {i}", "r", f"{i}") for i in range(5)] for part in range(4)]
    for part in KnowledgeStream.from_labels("even", lists):
        trainer.take(part)
    learner = strategy_of(settings)
    assert isinstance(learner, GEM)
    monkeypatch.setattr(trainer, "fit", lambda *_, **__: None)
    learned = learner.learn(trainer)
    (projection,) = learner.parts
    assert isinstance(projection, Projection)
    assert learned.replayed == sum(map(len, projection._memories)) == budget
    parts = [{tuple(r) for r in trainer.examples("train", i, i + 1).tolist()} for i in range(3)]
    for memory in projection._memories:
        rows = {tuple(row) for row in memory.tolist()}
        assert len(rows) == len(memory)
        (home,) = [part for part in parts if rows <= part]
        fair = budget * len(home) / sum(map(len, parts))
        assert abs(len(rows) - fair) <= 1


def test_rows_without_whole_gradients_are_refused_before_anything_is_learned() -> None:
    with pytest.raises(UserError, match="strategy gem needs precision=float32"):
        Learner("transe", "gem", precision="bfloat16", device="cpu")

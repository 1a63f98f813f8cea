"""DiCGRL on networks: a shield of old nodes, and how far they move."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from dicgrl.strategies.budget import BudgetSettings
from dicgrl.trainers import NodeTrainer
from tests.growing import (
    activator,
    strategy_of,
)
from tests.strategies.test_dicgrl_networks import begun, every_form


def probabilities(trainer: NodeTrainer, model: Any) -> list[list[float]]:
    """Class probabilities of all nodes; nothing dropped."""
    model.train(False)
    with torch.no_grad():
        found: list[list[float]] = model(trainer.inputs, trainer.edges).double().softmax(1).tolist()
    return found


def slow_divergence(before: list[float], now: list[float]) -> float:
    return sum(p * math.log(p / q) for p, q in zip(before, now, strict=False))  # new classes: p = 0


@every_form
@pytest.mark.parametrize("beta", [0.0, 0.7])
def test_a_shield_measures_how_far_old_nodes_are_from_what_they_were(
    form: str, beta: float
) -> None:
    trainer = begun(form, dropout=0.5, beta=beta)
    before = probabilities(trainer, copy.deepcopy(trainer.model_before))
    nodes = torch.tensor([0, 3, 9, 11])
    group = activator(trainer).shield(nodes)
    assert group is not None and group.examples is nodes
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=torch.manual_seed(1)))
    now = probabilities(trainer, trainer.model)
    assert len(now[0]) == len(before[0]) + 1  # a class came with the part
    each = [slow_divergence(before[node], now[node]) for node in nodes.tolist()]
    assert min(each) > 0
    weight = torch.tensor([1.0, 2.0, 0.0, 1.0])
    expected = sum(e * w for e, w in zip(each, weight.tolist(), strict=True)) / 4
    expected += beta * trainer.model.take_concentration().item()  # of the pass of `now`
    trainer.model.train()  # nothing is dropped in training, either
    assert group.objective(nodes, weight).item() == pytest.approx(expected, rel=1e-4)
    # Together they count no more than the eight nodes that were learned from before.
    for count, each in ((4, 1.0), (14, 8 / 14)):
        group = activator(trainer).shield(torch.arange(count))
        assert group is not None and group.weight.tolist() == pytest.approx([each] * count)


@every_form
@pytest.mark.parametrize("batch", [0, 4])
def test_a_shield_pulls_nowhere_as_long_as_nothing_has_changed(form: str, batch: int) -> None:
    """In batches both models see the same few neighbours."""
    trainer = begun(form, dropout=0.5, beta=0.0, batch=batch, neighbours=1)
    assert trainer.model_before is not None
    with torch.no_grad():  # a new class that nobody is near
        trainer.model.class_bias[2] = -50.0
    nodes = torch.arange(14)
    group = activator(trainer).shield(nodes)
    assert group is not None
    loss = group.objective(nodes, group.weight)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-6)
    assert all(p.grad is None or p.grad.abs().max() < 1e-6 for p in trainer.model.parameters())
    assert all(p.grad is None for p in trainer.model_before.parameters())


def without_new_classes(trainer: NodeTrainer) -> NodeTrainer:
    """The same trainer, as if its newest part had brought none."""
    assert trainer.part is not None
    end = trainer.part.new_classes.stop
    trainer.part = replace(trainer.part, new_classes=range(end, end))
    return trainer


@pytest.mark.parametrize(
    ("shield", "count"), [("0", 0), ("50%", 7), ("0.5x", 4), ("3", 3), ("all", 14)]
)
def test_a_shield_is_drawn_from_all_old_nodes(shield: str, count: int) -> None:
    trainer = without_new_classes(begun("gat-divided", shield=shield))
    drawn: set[int] = set()
    for _ in range(30):
        nodes, learned_from = activator(trainer).draw_shield()
        assert len(set(nodes.tolist())) == len(nodes) == count
        assert len(learned_from) == 0
        drawn |= set(nodes.tolist())
    assert drawn == (set(range(14)) if count else set())  # the second part begins there
    assert (activator(trainer).shield(nodes) is None) == (count == 0)


def test_where_classes_arrive_nodes_of_unknown_class_are_free_to_be_of_one() -> None:
    trainer = begun("gat-divided", shield="all")
    assert trainer.part is not None and len(trainer.part.new_classes) == 1
    assert activator(trainer).draw_shield()[0].tolist() == trainer.examples("train", 0, 1).tolist()


def test_in_batches_an_epoch_takes_some_old_nodes_for_each_new_one_that_is_learned_from() -> None:
    trainer = begun("gat-divided", batch=4)
    group = activator(trainer).shield(torch.arange(14))
    assert group is not None and trainer.part is not None
    assert group.most == 10 * len(trainer.part.train) == 40


def test_in_batches_drift_is_not_known() -> None:
    trainer = begun("gat-divided", batch=4, later_epochs=1)
    assert "drift" not in strategy_of(trainer.settings).learn(trainer).details


@every_form
def test_drift_is_how_far_old_nodes_moved_and_how_many_changed_class(form: str) -> None:
    trainer = begun(form, later_epochs=20, later_rate=5.0, validate_on="none")
    drift = strategy_of(trainer.settings).learn(trainer).details["drift"]
    before, now = (
        probabilities(trainer, trainer.model_before),
        probabilities(trainer, trainer.model),
    )
    far = [
        sum(abs(p - q) for p, q in zip([*old, 0.0], new, strict=True)) / 2
        for old, new in zip(before[:14], now[:14], strict=True)
    ]
    changed = [
        old.index(max(old)) != new.index(max(new))
        for old, new in zip(before[:14], now[:14], strict=True)
    ]
    assert drift["mean"] == pytest.approx(sum(far) / 14, rel=1e-4)
    assert drift["largest"] == pytest.approx(max(far), rel=1e-4)
    assert drift["nodes"] == sum(changed) > 0


def divergence(trainer: NodeTrainer) -> float:
    """How far old nodes are on average from what the previous model says."""
    before, now = (
        probabilities(trainer, trainer.model_before),
        probabilities(trainer, trainer.model),
    )
    return sum(map(slow_divergence, before[:14], now[:14])) / 14


@pytest.mark.parametrize("batch", [0, 4])
def test_old_nodes_stay_nearer_to_what_they_were_behind_a_shield(batch: int) -> None:
    far = []
    for shield in ("0", "all"):
        trainer = begun(
            "gat-divided", shield=shield, later_epochs=20, batch=batch, validate_on="none"
        )
        learned = strategy_of(trainer.settings).learn(trainer)
        assert learned.replayed == len(
            activator(trainer)
            .activate(trainer.settings.of(BudgetSettings).allowed(trainer))
            .positions
        )
        far.append(divergence(trainer))
    assert far[1] < 0.5 * far[0]

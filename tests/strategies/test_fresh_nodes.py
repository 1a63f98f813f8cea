"""Redrawn replay in a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from dicgrl import Learner
from dicgrl.datasets.synthetic_network import class_network
from dicgrl.graph import NetworkPart, NetworkStream
from dicgrl.settings import Settings
from dicgrl.strategies.fresh import Fresh, FreshSettings, Plan, Redrawn, plan_of
from dicgrl.trainers import NodeTrainer
from tests.growing import same, weights

CPU = torch.device("cpu")


def begun(stream: Sequence[NetworkPart], **changes: Any) -> tuple[NodeTrainer, Fresh]:
    """A first part that was learned, and a second that was taken in."""
    small = {"hidden": 4, "heads": 2, "epochs": 2} | changes
    settings = Settings("gat", "fresh", **small)
    trainer, strategy = NodeTrainer(settings, 0, CPU), settings.make_strategy()
    assert isinstance(strategy, Fresh)
    trainer.take(stream[0])
    strategy.learn(trainer)
    trainer.take(stream[1])
    return trainer, strategy


def epochs_of(training_set: Redrawn, size: int, count: int) -> list[list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [
        [nodes for _, nodes, _ in training_set.batches(epoch, size, generator)]
        for epoch in range(1, count + 1)
    ]


def test_every_epoch_has_all_new_nodes_and_others_of_the_old_ones() -> None:
    trainer, _ = begun(class_network(300, 3, shares=(0.8, 0.2)))
    new, old = trainer.examples("train", 1), trainer.examples("train", 0, 1)
    training_set = Redrawn(trainer, Plan(30, 10, 8))
    drawn = []
    for steps in epochs_of(training_set, 8, 30):
        nodes = torch.cat(steps).tolist()
        assert len(set(nodes)) == len(nodes) == len(new) + 10
        assert set(new.tolist()) <= set(nodes)
        drawn.append(frozenset(nodes) - set(new.tolist()))
        assert drawn[-1] <= set(old.tolist())
        assert max(map(len, steps)) <= 2 * min(map(len, steps))  # no step of a few nodes
    assert len(set(drawn)) == 30
    met = frozenset().union(*drawn)
    assert training_set.replayed == len(met) > 0.9 * len(old)


@pytest.mark.parametrize(
    ("effort", "passes", "draws"), [("auto", 20, 100), ("400", 20, 16), ("12x", 6, 4), ("1", 1, 0)]
)
def test_a_plan_keeps_to_its_effort(effort: str, passes: int, draws: int) -> None:
    trainer, _ = begun(class_network(50, 2, shares=(0.8, 0.2)), epochs=30)
    assert trainer.count("train", 1) == 4
    plan = plan_of(trainer, FreshSettings(effort=effort))
    assert (plan.passes, plan.draws) == (passes, draws)


def test_an_update_does_not_touch_what_lies_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = class_network(3000, 3, 3, shares=(0.95, 0.05), train=0.02)
    trainer, strategy = begun(stream)

    def whole(_: NodeTrainer) -> None:
        raise AssertionError("the whole network was prepared")

    monkeypatch.setattr(NodeTrainer, "edges", property(whole))
    monkeypatch.setattr(NodeTrainer, "inputs", property(whole))
    before = weights(trainer)
    learned = strategy.learn(trainer)
    assert learned.fits[0].epochs == 20 and not same(before, weights(trainer))
    assert learned.replayed == trainer.count("train", 0, 1)  # fewer than the least of an epoch


def test_more_is_learned_where_classes_arrive() -> None:
    stream = class_network(200, 3, shares=(0.8, 0.2), arrival=(0, 0, 1))
    trainer, strategy = begun(stream)
    assert strategy.learn(trainer).fits[0].epochs == 60


def test_a_part_without_training_nodes_changes_nothing() -> None:
    first, second = class_network(100, 2, shares=(0.8, 0.2))
    trainer, strategy = begun([first, replace(second, train=second.train[:0])])
    before = weights(trainer)
    assert strategy.learn(trainer).fits == []
    assert same(before, weights(trainer))


def test_the_same_seed_repeats_itself() -> None:
    stream = class_network(200, 3, shares=(0.8, 0.2))
    found = []
    for _ in range(2):
        trainer, strategy = begun(stream)
        strategy.learn(trainer)
        found.append(weights(trainer))
    assert same(*found)


def with_few_of_a_new_class(labelled: int) -> NetworkStream:
    """A network of five classes; then a sixth arrives, of which so many nodes are labelled."""
    shares, arrival = (0.9, 0.1), (0, 0, 0, 0, 0, 1)
    stream = class_network(1200, 6, 6, 0.8, 32, 2.0, shares, arrival)
    part = stream[1]
    own = part.labels[part.train - part.new_nodes.start] == 5
    train, rest = part.train[own][:labelled], part.train[~own][:0]
    return NetworkStream("few", (stream[0], replace(part, train=np.concatenate([train, rest]))), {})


@pytest.mark.parametrize("model", ["gat", "sage"])
def test_a_new_class_of_twenty_labelled_nodes_is_learned_by_default(model: str) -> None:
    stream = with_few_of_a_new_class(20)
    learner = Learner(model, "fresh", device="cpu", epochs=60)  # of the first part
    learner.learn(stream[0])
    before = learner.evaluate().whole["accuracy"]
    report = learner.learn(stream[1])
    assert report.new_examples == 20
    assert report.details["new_classes"]["class 5"]["right"] >= 18
    test = torch.from_numpy(stream[1].test)
    of_class = test[learner.trainer.labels[test] == 5]
    right = (learner.trainer.scores(of_class).argmax(1) == 5).float().mean()
    assert len(of_class) > 50 and right > 0.8
    learner.evaluate()
    assert learner.tests[-1][0]["accuracy"] > 0.95 * before  # what was known stays


def test_classes_are_learned_one_after_the_other() -> None:
    shares, arrival = (0.4, 0.3, 0.3), (0, 0, 1, 2)
    stream = class_network(900, 4, 6, 0.8, 16, 2.0, shares, arrival)
    learner = Learner("gat", "fresh", device="cpu", epochs=60)
    for part in stream:
        learner.learn(part)
    evaluated = learner.evaluate()
    assert evaluated.whole["accuracy"] > 0.85 and evaluated.average["accuracy"] > 0.85

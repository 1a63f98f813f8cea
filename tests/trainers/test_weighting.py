"""What triples count where a model learns them from the start."""

from __future__ import annotations

import math

import pytest
import torch

from dicgrl import UserError
from dicgrl.trainers import LinkTrainer
from tests.growing import (
    knowledge_stream,
    network_stream,
    settings_of,
    strategy_of,
    trainer_of,
    watch_fit,
)
from tests.tiny import learner_of


def slow_weights(triples: list[list[int]]) -> list[float]:
    weights = []
    for head, relation, tail in triples:
        asked = sum(h == head and r == relation for h, r, _ in triples)
        asked += sum(t == tail and r == relation for _, r, t in triples)
        weights.append(1 / math.sqrt(4 + asked))
    mean = sum(weights) / len(weights)
    return [weight / mean for weight in weights]


def test_frequent_questions_count_less() -> None:
    trainer = trainer_of(settings_of("transe", "upper", weighting="frequency"))
    trainer.take(knowledge_stream()[0])
    examples = trainer.examples("train")
    found = trainer.weights(examples)
    assert found is not None
    assert found.tolist() == pytest.approx(slow_weights(examples.tolist()), rel=1e-5)
    assert found.max() > found.min()


def test_all_count_alike_unless_asked_otherwise() -> None:
    trainer = trainer_of(settings_of("transe", "upper"))
    trainer.take(knowledge_stream()[0])
    assert trainer.weights(trainer.examples("train")) is None
    nodes = trainer_of(settings_of("gat", "upper"))
    nodes.take(network_stream()[0])
    assert nodes.weights(nodes.examples("train")) is None


@pytest.mark.parametrize("name", ["lower", "upper", "emr", "dicgrl"])
def test_what_is_learned_is_weighted_but_what_dicgrl_activates(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = "transe-divided" if name == "dicgrl" else "transe"
    trainer = trainer_of(settings_of(form, name, weighting="frequency"))
    assert isinstance(trainer, LinkTrainer)
    learner = strategy_of(trainer.settings)
    training_sets = watch_fit(trainer, monkeypatch)
    for part in knowledge_stream().parts[:2]:
        trainer.take(part)
        learner.learn(trainer)
    first, second = training_sets[0], training_sets[-1]
    assert first.weight.unique().numel() > 1
    assert (second.weight.unique().numel() > 1) == (name != "dicgrl")
    if name == "upper":
        expected = trainer.weights(trainer.examples("train"))
        assert expected is not None and torch.equal(second.weight, expected)


def test_another_name_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'frequency'"):
        settings_of("transe", "upper", weighting="frequent")


def test_what_arrives_again_counts_for_more() -> None:
    learner = learner_of("links", "upper", weighting="count")
    often, seldom = ("a", "r", "b"), ("a", "r", "c")
    learner.learn([often, seldom, often])
    learner.learn([often, ("d", "r", "b")])
    assert learner.learn([often, often]).new_examples == 0  # nothing is new, but it counts
    trainer = learner.trainer
    examples = trainer.examples("train")
    assert trainer.graph.arrivals(examples.numpy())[0].tolist() == [5, 1, 1]
    expected = torch.tensor([1 + math.log(5), 1, 1])
    assert torch.allclose(trainer.weights(examples), expected / expected.mean())
    again = LinkTrainer(learner.settings, 0, torch.device("cpu"))
    again.recall(trainer.history, trainer.model)
    assert again.graph.arrivals(examples.numpy())[0].tolist() == [5, 1, 1]
    learner.forget([often])
    learner.learn([often])
    assert trainer.graph.arrivals(trainer.examples("train").numpy())[0].tolist() == [1, 1, 1]


def test_what_arrived_long_ago_counts_for_less() -> None:
    learner = learner_of("links", "upper", weighting="recency")
    learner.learn([("a", "r", "b"), ("a", "r", "c")])
    learner.learn([("d", "r", "b")])
    learner.learn([("d", "r", "c"), ("a", "r", "c")])
    trainer = learner.trainer
    assert trainer.graph.arrivals(trainer.graph.train)[1].tolist() == [0, 2, 1, 2]
    expected = torch.tensor([3.0, 1.0, 2.0, 1.0]).rsqrt()
    found = trainer.weights(trainer.examples("train"))
    assert torch.allclose(found, expected / expected.mean())


def test_facts_that_are_one_after_a_merge_arrived_twice() -> None:
    learner = learner_of("links", "upper", weighting="count")
    learner.learn([("a", "r", "b"), ("c", "r", "b"), ("c", "r", "b")])
    learner.merge("a", "c")
    graph = learner.trainer.graph
    assert graph.train.tolist() == [[0, 0, 1]]
    assert graph.arrivals(graph.train)[0].tolist() == [3]


@pytest.mark.parametrize("weighting", ["even", "frequency"])
def test_where_repeats_do_not_weigh_they_are_left_out(weighting: str) -> None:
    learner = learner_of("links", "upper", weighting=weighting)
    learner.learn([("a", "r", "b"), ("a", "r", "b")])
    learner.learn([("a", "r", "b"), ("a", "r", "c")])
    assert all("again" not in change.arrays for change in learner.trainer.history)

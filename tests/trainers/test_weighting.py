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
def test_only_what_is_learned_from_the_start_is_weighted(
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
    assert (second.weight.unique().numel() > 1) == (name == "upper")
    if name == "upper":
        expected = trainer.weights(trainer.examples("train"))
        assert expected is not None and torch.equal(second.weight, expected)


def test_another_name_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'frequency'"):
        settings_of("transe", "upper", weighting="frequent")

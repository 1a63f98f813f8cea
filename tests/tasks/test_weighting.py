"""What triples count where a model learns them from the start."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from dicgrl import UserError
from dicgrl.strategies import strategy
from dicgrl.trainers import LinkTrainer
from dicgrl.training import TrainingSet
from tests.growing import knowledge_stream, network_stream, run_of, settings_of


def slow_weights(triples: list[list[int]]) -> list[float]:
    weights = []
    for head, relation, tail in triples:
        asked = sum(h == head and r == relation for h, r, _ in triples)
        asked += sum(t == tail and r == relation for _, r, t in triples)
        weights.append(1 / math.sqrt(4 + asked))
    mean = sum(weights) / len(weights)
    return [weight / mean for weight in weights]


def test_frequent_questions_count_less() -> None:
    run = run_of(settings_of("transe", "upper", weighting="frequency"))
    run.take(knowledge_stream()[0])
    examples = run.examples("train")
    found = run.weights(examples)
    assert found is not None
    assert found.tolist() == pytest.approx(slow_weights(examples.tolist()), rel=1e-5)
    assert found.max() > found.min()


def test_all_count_alike_unless_asked_otherwise() -> None:
    run = run_of(settings_of("transe", "upper"))
    run.take(knowledge_stream()[0])
    assert run.weights(run.examples("train")) is None
    nodes = run_of(settings_of("gat", "upper"))
    nodes.take(network_stream()[0])
    assert nodes.weights(nodes.examples("train")) is None


@pytest.mark.parametrize("name", ["lower", "upper", "emr", "dicgrl"])
def test_only_what_is_learned_from_the_start_is_weighted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = "transe-divided" if name == "dicgrl" else "transe"
    run = run_of(settings_of(form, name, weighting="frequency"))
    assert isinstance(run, LinkTrainer)
    learner = strategy(run.settings)
    lessons: list[TrainingSet] = []
    fit = run.fit

    def watched(lesson: TrainingSet, *rest: Any, **named: Any) -> Any:
        lessons.append(lesson)
        return fit(lesson, *rest, **named)

    monkeypatch.setattr(run, "fit", watched)
    for part in knowledge_stream().parts[:2]:
        run.take(part)
        learner.learn(run)
    first, second = lessons[0], lessons[-1]
    assert first.weight.unique().numel() > 1
    assert (second.weight.unique().numel() > 1) == (name == "upper")
    if name == "upper":
        expected = run.weights(run.examples("train"))
        assert expected is not None and torch.equal(second.weight, expected)


def test_another_name_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'frequency'"):
        settings_of("transe", "upper", weighting="frequent")

"""What is said of a model that knows nothing or lost much; nothing is said of a good one."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dicgrl import Learner, load_stream
from dicgrl.ask.doubts import doubts, found_of
from dicgrl.errors import ModelWarning
from dicgrl.graph import Part
from tests.tiny import learner_of, stream_of


def look(
    answered: np.ndarray, gain: float = 2.0, basis: str = "validation", parts: int = 2
) -> dict[str, Any]:
    count = len(answered)
    draw = np.random.default_rng(0)
    found = found_of(
        log_share=-np.log(100) + gain + 0.1 * draw.normal(size=count),
        frequency=np.full(count, 0.01),
        candidates=np.full(count, 100.0),
        answered=answered,
        chance=0.1,
        parts=np.arange(count) % parts,
    )
    return {"basis": basis, "found": found}


def kind(found: list[str]) -> list[str]:
    return [text.partition(":")[0] for text in found]


def some(share: float, count: int = 1000) -> np.ndarray:
    return np.arange(count) < share * count


def test_chance_is_told_from_knowledge_by_the_error_of_the_sample() -> None:
    assert kind(doubts(look(some(0.11), gain=0.0))) == ["the model knows nothing"]
    assert kind(doubts(look(some(0.4), gain=0.0))) == ["scores hardly tell right from wrong"]
    assert kind(doubts(look(some(0.4), gain=-0.5))) == ["scores hardly tell right from wrong"]
    assert doubts(look(some(0.4))) == []
    assert doubts(look(some(0.1, 40), gain=0.0)) == []  # too few to say


def test_counting_answers_is_the_least_that_a_model_should_know() -> None:
    now = look(some(0.4), gain=1.0)
    assert doubts(now) == [] and now["found"]["ahead"] > 3
    common = found_of(
        np.full(500, -3.0) + np.linspace(-0.1, 0.1, 500), np.full(500, 0.5),
        np.full(500, 100.0), some(0.4, 500), 0.1, np.zeros(500, np.int64),
    )  # fmt: skip
    assert kind(doubts({"basis": "validation", "found": common})) == ["the model knows little"]


def test_a_strong_loss_is_said_and_a_small_one_is_not() -> None:
    before = some(0.5)
    for kept, said in ((0.35, ["much was lost"]), (0.45, []), (0.6, [])):
        assert kind(doubts(look(some(kept)), look(before))) == said
    (told,) = doubts(look(some(0.35)), look(before), retrained=True)
    assert told.startswith("much was lost") and "dicgrl restore" in told
    # As many others won: that is noise, or something new.
    moved = np.roll(before, 300)
    assert doubts(look(moved), look(before)) == []
    assert doubts(look(some(0.2)), look(before, basis="training")) == []
    assert doubts(look(some(0.2, 500)), look(before)) == []  # other questions


@pytest.fixture(scope="module")
def films() -> list[Part]:
    return list(load_stream("films"))[:2]


@pytest.mark.parametrize(
    "changes",
    [{"lr": 1e-9, "epochs": 2}, {"epochs": 1}, {"margin": 1e6, "epochs": 3}],
    ids=["rate", "epochs", "margin"],
)
def test_settings_that_learn_nothing_are_said(films: list[Part], changes: dict[str, Any]) -> None:
    learner = Learner("transe", dataset="films", device="cpu", **changes)
    with pytest.warns(ModelWarning, match="part 0: the model knows") as caught:
        report = learner.learn(films[0])
    assert [str(each.message) for each in caught] == [f"part 0: {report.warnings[0]}"]
    assert caught[0].filename == __file__


def test_defaults_raise_no_alarm(films: list[Part]) -> None:
    learner = Learner("transe", dataset="films", device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        for part in films:
            assert learner.learn(part).warnings == []


def test_forgetting_is_said(films: list[Part]) -> None:
    learner = Learner("transe", "lower", dataset="films", device="cpu", epochs=10, later_epochs=10)
    learner.learn(films[0])
    with pytest.warns(ModelWarning, match="part 1: much was lost: of"):
        learner.learn(films[1])


@pytest.mark.parametrize(("rate", "said"), [(1e-9, True), (0.01, False)])
def test_networks_are_looked_at_alike(rate: float, said: bool) -> None:
    part = load_stream("film-genres")[0]
    learner = Learner("gat", dataset="film-genres", device="cpu", lr=rate, epochs=12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        assert bool(learner.learn(part).warnings) == said


def test_without_held_out_facts_what_was_learned_is_asked() -> None:
    facts = [(f"p{i}", "knows", f"p{(i + 1) % 60}") for i in range(60)]
    learner = Learner("transe", "lower", dim=8, epochs=1, lr=1e-9, device="cpu")
    with pytest.warns(ModelWarning, match="120 answers to learned examples"):
        learner.learn(facts)


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_only_held_out_answers_are_noted_one_by_one(kind: str) -> None:
    """They are compared after the next part; those of training would grow with the parts."""
    part = stream_of(kind)[0]
    for held_out in (True, False):
        learner = learner_of(kind)
        learner.learn(part if held_out else replace(part, valid=part.valid[:0]))
        look = learner.reports[-1].calibration
        assert look["basis"] == ("validation" if held_out else "training")
        assert ("answered" in look["found"]) == held_out

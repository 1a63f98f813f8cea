"""Strategies put together from ingredients: what each hook adds to learning a part."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from dicgrl import Learner
from dicgrl.strategies import Composed, Ingredient, Strategy
from dicgrl.strategies.ewc import Penalty
from dicgrl.strategies.incde import Ordering
from dicgrl.strategies.ingredients import Replay
from dicgrl.trainers import ExampleGroup, Trainer

FIRST = [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d")]
SECOND = [("a", "r", "d"), ("e", "r", "a")]


class Turns(Ingredient):
    """All old examples, in batches of their own."""

    learned: list[Tensor]

    def taking_turns(self, trainer: Trainer) -> list[ExampleGroup]:
        old = trainer.examples("train", 0, trainer.newest)
        objective, self.learned = trainer.objective(old), []

        def watched(examples: Tensor, weight: Tensor) -> Tensor:
            self.learned.append(examples)
            return objective(examples, weight)

        return [ExampleGroup(watched, old, torch.ones(len(old)))]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    before = dict(Strategy.registry)
    yield
    Strategy.registry.clear()
    Strategy.registry.update(before)


def test_examples_that_take_turns_are_learned_and_steps_are_adjusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Both(Composed, name="both of the tests"):
        ingredients = (Turns, Penalty)

    adjusted = []
    adjust = Penalty.adjust
    monkeypatch.setattr(
        Penalty,
        "adjust",
        lambda *given: adjusted.append(1) or adjust(*given),  # type: ignore[func-returns-value]
    )
    learner = Learner("transe", Both.name, dim=8, epochs=3, batch=2, device="cpu")
    learner.learn(FIRST)
    learner.learn(SECOND)
    assert isinstance(learner.strategy, Both)
    turns = learner.strategy.parts[0]
    assert isinstance(turns, Turns)
    each_epoch = [torch.cat(turns.learned[i : i + 2]) for i in (0, 2, 4)]  # two batches of three
    old = learner.trainer.examples("train", 0, 1)
    assert all(sorted(rows.tolist()) == sorted(old.tolist()) for rows in each_epoch)
    assert len(adjusted) == 3 * (2 + 1)  # every batch, old and new


def test_an_order_of_new_examples_leaves_no_place_for_old_ones() -> None:
    with pytest.raises(TypeError, match="OrderedReplay: with an order there is no place"):

        class OrderedReplay(Composed):
            ingredients = (Ordering, Replay)

"""What a repair learns again: facts around a change, and most of all those that stand badly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from dicgrl.strategies.repair import Gone, Repaired
from dicgrl.trainers import LinkTrainer
from tests.tiny import learner_of, taught

DRAWS = 40


def repaired(
    monkeypatch: pytest.MonkeyPatch, standing: Callable[[Tensor], Tensor | None]
) -> Repaired:
    trainer = taught(learner_of("links", "lower"), 3, evaluate=False).trainer
    monkeypatch.setattr(LinkTrainer, "standing", lambda _, examples: standing(examples))
    near = np.arange(trainer.count("train"))
    gone = Gone(trainer.examples("train")[:2], pushes=1)
    return Repaired(trainer, near, gone, DRAWS, batch=16)


def drawn(training_set: Repaired, epoch: int) -> Tensor:
    generator = torch.Generator().manual_seed(epoch)
    return torch.cat([examples for _, examples, _ in training_set.batches(epoch, 16, generator)])


@pytest.mark.parametrize("since", ["always", "the repair began"])
def test_most_of_what_is_drawn_near_stands_badly(
    since: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    low: list[Tensor] = []

    def standing(examples: Tensor) -> Tensor:
        """Every third fact stands low."""
        now = torch.zeros(len(examples))
        if low or since == "always":
            now[::3] = -1.0
        low.append(examples[::3])
        return now

    training_set = repaired(monkeypatch, standing)
    badly = {tuple(row) for row in low[0].tolist()}
    for epoch in (1, 2, 3):
        rows = [tuple(row) for row in drawn(training_set, epoch).tolist()]
        assert len(rows) == DRAWS
        assert len(badly & set(rows)) >= 0.85 * len(badly)
        assert len(set(rows) - badly) >= 0.25 * DRAWS
    assert 0 < training_set.replayed <= 3 * DRAWS


@pytest.mark.parametrize("dear", [True, False])
def test_where_nothing_is_told_or_nothing_fell_all_are_drawn(
    dear: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    training_set = repaired(monkeypatch, lambda e: None if dear else torch.zeros(len(e)))
    seen = {tuple(row) for epoch in range(40) for row in drawn(training_set, epoch).tolist()}
    assert len(seen) > 0.8 * len(training_set.examples.unique(dim=0))

"""Facts to learn, and whether two learners are the same."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from dicgrl import Learner

FILMS = [
    ("Alien", "genre", "horror"),
    ("Alien", "director", "Scott"),
    ("Blade Runner", "director", "Scott"),
    ("Brazil", "genre", "satire"),
]
MORE = [("Brazil", "director", "Gilliam"), ("Gilliam", "born in", "Minneapolis")]


def reported(learner: Learner) -> list[dict[str, Any]]:
    """What the reports say, times left out."""
    return [
        {k: v for k, v in asdict(report).items() if not k.endswith("seconds")}
        for report in learner.reports
    ]


def assert_same(one: Learner, other: Learner) -> None:
    """Bit for bit: weights, optimiser, strategy, history."""
    mine, theirs = one.trainer.model, other.trainer.model
    assert mine.configuration() == theirs.configuration()
    assert mine.tables().keys() == theirs.tables().keys()
    for name, table in mine.tables().items():
        left, right = table.snapshot(), theirs.tables()[name].snapshot()
        for key in left.keys() | right.keys():  # what is not there yet counts as zero
            mine_, theirs_ = (side.get(key, torch.zeros(1, 1)) for side in (left, right))
            assert (mine_ == theirs_).all(), (name, key)
    for (name, a), (_, b) in zip(mine.named_parameters(), theirs.named_parameters(), strict=True):
        assert torch.equal(a, b), name
    state, again = one.strategy.state(), other.strategy.state()
    assert state.keys() == again.keys()
    assert all(torch.equal(state[name], again[name]) for name in state)
    assert reported(one) == reported(other)
    assert (one.tests, one.before, one.retention) == (other.tests, other.before, other.retention)

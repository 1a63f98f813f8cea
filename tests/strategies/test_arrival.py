"""Arrival: what is new learns alone, and nothing old moves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from dicgrl import UserError
from dicgrl.settings import Settings
from tests.growing import knowledge_stream, settings_of, strategy_of, trainer_of, weights
from tests.strategies.test_dicgrl import begun, every_form

SHIELDED: dict[str, Any] = {"arrive_epochs": 3, "shield_rank": 2, "weight_decay": 0.1}


def arrival_of(form: str, **changes: Any) -> Settings:
    return settings_of(form, "arrival", **(SHIELDED | changes))


@every_form
def test_it_is_dicgrl_without_an_update(form: str) -> None:
    """The rows of tables that were measured as dicgrl with later_epochs=0 are rows of arrival."""
    for shield in ("0", "5", "activated"):
        both = []
        for name, changes in (("dicgrl", {"later_epochs": 0}), ("arrival", {})):
            shared = SHIELDED | {"shield": shield, "selection": "sample"}
            trainer = begun(form, news_only=True, **shared, **changes)
            settings = settings_of(form, name, **shared, **changes)
            learned = strategy_of(settings).learn(trainer)
            both.append((weights(trainer), learned.replayed, learned.activated))
        (old, *counted), (new, *same_counted) = both
        assert counted == same_counted
        assert all(torch.equal(old[key], new[key]) for key in old)
        assert bool(counted[1]) == (shield == "activated")


@every_form
def test_no_old_row_moves_whatever_the_part_says_of_it(form: str) -> None:
    """The parts have facts among old entities, too."""
    settings = arrival_of(form, shield="5")
    trainer, learner = trainer_of(settings), strategy_of(settings)
    for number, part in enumerate(knowledge_stream()):
        trainer.take(part)
        learner.prepare(trainer)
        before, first_new = weights(trainer), trainer.old_rows()
        learner.learn(trainer)
        after = weights(trainer)
        if not number:
            continue
        for key, values in before.items():
            name = key.split("/")[0]
            old = len(values) if name not in first_new else first_new[name]
            assert torch.equal(after[key][:old], values[:old]), key
        assert not torch.equal(after["entities/rows"], before["entities/rows"])


def test_a_part_without_news_is_passed_by() -> None:
    settings = arrival_of("transe-divided", shield="5")
    trainer, learner = trainer_of(settings), strategy_of(settings)
    stream = knowledge_stream(triples=(30, 12, 10))
    trainer.take(stream[0])
    learner.learn(trainer)
    part = replace(  # other facts of those who are known
        stream[1],
        new_entities=range(9, 9),
        new_relations=range(2, 2),
        train=np.roll(stream[0].train, 1, axis=0) @ np.diag([1, 0, 0])
        + stream[0].train @ np.diag([0, 1, 1]),
        valid=stream[0].valid,
        test=stream[0].test,
    )
    trainer.take(part)
    before = weights(trainer)
    learned = learner.learn(trainer)
    assert (learned.fits, learned.replayed) == ([], 0)
    assert all(torch.equal(before[key], now) for key, now in weights(trainer).items())


def test_a_network_is_refused() -> None:
    with pytest.raises(UserError, match="only learns the rows of new entities; gat has no rows"):
        Settings("gat", "arrival").changed({"components": 4, "top": 2}).make_strategy()


def test_a_plain_model_is_refused() -> None:
    with pytest.raises(UserError, match="arrival works on components: it needs a disentangled"):
        Settings("transe", "arrival").make_strategy()

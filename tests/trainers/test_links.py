"""Test sets of several parts are ranked together, each with the ranks of its own."""

from __future__ import annotations

import pytest
import torch

from dicgrl.trainers import LinkTrainer
from tests.growing import LINK_FORMS, settings_of, stream_of, trainer_of
from tests.watching import scored_blocks


def grown(form: str) -> LinkTrainer:
    trainer = trainer_of(settings_of(form, "lower"))
    assert isinstance(trainer, LinkTrainer)
    for part in stream_of(form):
        trainer.take(part)
    return trainer


@pytest.mark.parametrize("form", LINK_FORMS)
def test_sets_that_are_ranked_together_have_the_outcomes_of_each(form: str) -> None:
    trainer = grown(form)
    sets = [trainer.examples("test", part, part + 1) for part in range(3)]
    sets.insert(1, sets[0][:0])  # one without triples among them
    sets.append(sets[0][:1])
    for examples, (metrics, answered) in zip(sets, trainer.outcomes(sets), strict=True):
        alone, found = trainer.outcome(examples)
        assert metrics == alone
        assert torch.equal(answered, found) and len(found) == 2 * len(examples)


def test_entities_are_gathered_once_for_all_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = grown("transe-divided")
    sets = [trainer.examples("test", part, part + 1) for part in range(3)]
    calls = scored_blocks(monkeypatch)
    trainer.outcomes(sets)
    asked = torch.cat(sets)[:, 1].unique()
    assert len(calls) == 2 * len(asked)  # sides
    assert sum(len(triples[:, 1].unique()) for triples in sets) > len(asked)

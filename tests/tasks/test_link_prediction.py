"""Test sets of several parts are ranked together, each with the ranks of its own."""

from __future__ import annotations

import pytest
import torch

from dicgrl.trainers import LinkTrainer
from tests.growing import LINK_FORMS, run_of, settings_of, stream_of
from tests.watching import scored_blocks


def grown(form: str) -> LinkTrainer:
    run = run_of(settings_of(form, "lower"))
    assert isinstance(run, LinkTrainer)
    for part in stream_of(form):
        run.take(part)
    return run


@pytest.mark.parametrize("form", LINK_FORMS)
def test_sets_that_are_ranked_together_have_the_outcomes_of_each(form: str) -> None:
    run = grown(form)
    sets = [run.examples("test", part, part + 1) for part in range(3)]
    sets.insert(1, sets[0][:0])  # one without triples among them
    sets.append(sets[0][:1])
    for examples, (metrics, answered) in zip(sets, run.outcomes(sets), strict=True):
        alone, found = run.outcome(examples)
        assert metrics == alone
        assert torch.equal(answered, found) and len(found) == 2 * len(examples)


def test_entities_are_gathered_once_for_all_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    run = grown("transe-divided")
    sets = [run.examples("test", part, part + 1) for part in range(3)]
    calls = scored_blocks(monkeypatch)
    run.outcomes(sets)
    asked = torch.cat(sets)[:, 1].unique()
    assert len(calls) == 2 * len(asked)  # sides
    assert sum(len(triples[:, 1].unique()) for triples in sets) > len(asked)

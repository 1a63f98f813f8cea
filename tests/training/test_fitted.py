"""Schedules that follow the number of triples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.settings import Settings
from dicgrl.training import Schedule
from dicgrl.training.settings import LinkSchedule, NodeSchedule
from tests.growing import knowledge_stream, settings_of, trainer_of

OPEN = LinkSchedule(epochs=0, batch=0, lr=0.0)
counts = st.integers(0, 10**9)


@given(counts, counts)
def test_more_triples_have_fewer_epochs_larger_batches_and_lower_rates(one: int, two: int) -> None:
    few, many = (OPEN.fitted(count) for count in sorted((one, two)))
    assert 300 >= few.epochs >= many.epochs >= 5
    assert 1024 <= few.batch <= many.batch <= 16_384
    assert 0.01 >= few.lr >= many.lr >= 0.003


@pytest.mark.parametrize(
    ("triples", "expected"),
    [
        (0, (300, 1024, 0.01)),
        (270_000, (100, 1024, 0.003)),
        (270_000 // 16, (200, 1024, 0.01)),
        (4 * 270_000, (50, 2048, 0.003)),
        (10**9, (5, 16_384, 0.003)),
    ],
)
def test_they_were_found_for_a_usual_graph(triples: int, expected: tuple[int, int, float]) -> None:
    found = OPEN.fitted(triples)
    assert (found.epochs, found.batch, found.lr) == (*expected[:2], pytest.approx(expected[2]))


@given(counts, st.integers(1, 999), st.integers(1, 999), st.floats(1e-6, 1))
def test_what_is_asked_for_stays(count: int, epochs: int, batch: int, lr: float) -> None:
    asked = LinkSchedule(epochs=epochs, batch=batch, lr=lr, decay=0.5, patience=7)
    assert asked.fitted(count) == asked
    half = LinkSchedule(epochs=epochs, batch=0, lr=lr).fitted(count)
    assert (half.epochs, half.batch, half.lr) == (epochs, OPEN.fitted(count).batch, lr)


def test_nodes_have_theirs_whatever_their_number() -> None:
    for schedule in (Schedule(), NodeSchedule(batch=0)):
        assert schedule.fitted(10**6) == schedule


def test_a_trainer_counts_all_that_it_knows() -> None:
    trainer = trainer_of(settings_of("transe", "upper", epochs=0, batch=0, lr=0.0))
    for part in knowledge_stream():
        trainer.take(part)
        fitted = trainer.settings.of(LinkSchedule).fitted(trainer.count("train"))
        assert trainer.schedule == fitted and fitted.epochs == 300
        assert not trainer.at_once
    assert Settings("transe", "upper", epochs=0).epochs == 0  # as it is stored

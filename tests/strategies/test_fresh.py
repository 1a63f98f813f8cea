"""Redrawn replay and its effort: what is drawn, how often, how much, and at what pace."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dicgrl import Learner
from dicgrl.graph import KnowledgeGraph, KnowledgeStream, KnowledgeStreamBuilder
from dicgrl.settings import Settings
from dicgrl.strategies.effort import usual_of
from dicgrl.strategies.fresh import FreshSettings, Plan, Redrawn, plan_of
from dicgrl.trainers import LinkTrainer
from dicgrl.training import DivergedError, FitReport, Schedule, TrainingSet
from tests.growing import (
    CPU,
    LINK_FORMS,
    knowledge_stream,
    settings_of,
    strategy_of,
    stream_of,
    trainer_of,
)

Triple = tuple[int, int, int]
ENTITIES = 120


def stream_of_sizes(*sizes: int) -> KnowledgeStream:
    """Parts of so many different triples among the same entities and two relations."""
    builder = KnowledgeStreamBuilder("sized")
    builder.entities.add([f"e{i}" for i in range(ENTITIES)])
    builder.relations.add(["r0", "r1"])
    order = np.random.default_rng(0).permutation(ENTITIES * ENTITIES)[: sum(sizes)]
    rows = np.stack([order // ENTITIES, order % 2, order % ENTITIES], axis=1)
    for some in np.split(rows, np.cumsum(sizes)[:-1]):
        builder.add(some, rows[:0], rows[:0])
    return builder.build()


def sized(strategy: str, *sizes: int, seed: int = 0, **changes: Any) -> LinkTrainer:
    """A trainer that has taken in all parts and learned none."""
    small = {"dim": 4, "negatives": 1, "batch": 64}
    trainer = LinkTrainer(Settings("transe", strategy, **(small | changes)), seed, CPU)
    for part in stream_of_sizes(*sizes):
        trainer.take(part)
    return trainer


@dataclass
class Told:
    """What a strategy would have a trainer learn, without a step."""

    training_set: TrainingSet
    schedule: Schedule
    passes: list[list[Triple]]
    replayed: int
    paces: dict[str, torch.Tensor | None]

    def old(self, history: set[Triple]) -> list[list[Triple]]:
        return [[each for each in taken if each in history] for taken in self.passes]


def told(trainer: Any) -> Told:
    found: list[Told] = []

    def fit(training_set: TrainingSet, _: object, schedule: Schedule, **__: Any) -> FitReport:
        epochs = [
            list(training_set.batches(epoch, schedule.batch, trainer.generator))
            for epoch in range(1, schedule.epochs + 1)
        ]
        passes = [[tuple(row) for _, some, _ in steps for row in some.tolist()] for steps in epochs]
        objective, examples, weight = epochs[-1][-1]
        with torch.no_grad():  # it decides who may move in this step
            objective(examples, weight)
        paces = {
            name: None if table.pace() is None else table.pace().clone()
            for name, table in trainer.model.tables().items()
        }
        found.append(Told(training_set, schedule, passes, 0, paces))
        return FitReport()

    with patch.object(trainer, "fit", fit):
        learned = strategy_of(trainer.settings).learn(trainer)
    (only,) = found
    return replace(only, replayed=learned.replayed)


def triples(trainer: LinkTrainer, first: int = 0, last: int | None = None) -> set[Triple]:
    return {(h, r, t) for h, r, t in trainer.examples("train", first, last).tolist()}


# What is drawn.


@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 400), st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_no_old_example_is_drawn_twice_before_all_were(
    old: int, new: int, effort: int, passes: int
) -> None:
    trainer = sized("fresh", old, new, epochs=50, effort=f"{effort}", passes=passes)
    history, news = triples(trainer, 0, 1), triples(trainer, 1)
    found = told(trainer)
    drawn = found.old(history)
    draws = len(drawn[0])
    assert len(drawn) <= max(passes, -(-effort // (old + new)))
    assert draws <= old and all(len(each) == draws for each in drawn)
    assert found.training_set.old_in_epoch() == draws
    times = Counter(dict.fromkeys(history, 0))
    for taken, each in zip(found.passes, drawn, strict=True):
        assert sorted(set(taken) - set(each)) == sorted(news)  # every pass has all that is new
        assert len(taken) == draws + new
        times.update(each)
        seen = {example: times[example] for example in history if times[example]}
        most = max(seen.values(), default=0)
        assert most == 0 or len(seen) == min(sum(times.values()), old)
        assert most - min(times.values()) <= 1
    distinct = sum(count > 0 for count in times.values())
    assert distinct == found.replayed == min(old, draws * len(drawn))


def test_passes_draw_other_examples_each_time() -> None:
    trainer = sized("fresh", 40, 5, epochs=50, effort="150", passes=5)
    taken = told(trainer).old(triples(trainer, 0, 1))
    assert [len(each) for each in taken] == [25] * 5
    drawn = [frozenset(each) for each in taken]
    assert len(set(drawn)) == 5
    other = sized("fresh", 40, 5, epochs=50, effort="150", passes=5, seed=1)
    again = sized("fresh", 40, 5, epochs=50, effort="150", passes=5)
    assert [frozenset(e) for e in told(again).old(triples(again, 0, 1))] == drawn
    assert [frozenset(e) for e in told(other).old(triples(other, 0, 1))] != drawn


def test_all_old_examples_have_the_same_chance() -> None:
    trainer = sized("fresh", 12, 8, 5, epochs=50)
    times = torch.zeros(ENTITIES, ENTITIES)
    for seed in range(400):
        trainer.choices = np.random.default_rng(seed)
        examples = Redrawn(trainer, Plan(2, 4, 64)).examples
        assert len(examples) == 8 + 5
        times[examples[:8, 0], examples[:8, 2]] += 1
    for head, _, tail in triples(trainer, 0, 2):  # 8 of 20, so 160 times with a deviation of 10
        assert abs(times[head, tail] - 160) < 50
    assert times.sum() == 400 * 8


def test_memory_follows_the_draws_and_not_the_history() -> None:
    trainer = sized("fresh", 10_000, 10, epochs=100, effort="20x")
    found = told(trainer)
    draws = 20 * 10 - 10 * 10  # in ten passes
    assert found.schedule.epochs == 10
    assert found.training_set.examples.shape == (draws + 10, 3)
    assert found.training_set.weight.shape == (draws + 10,)
    assert found.replayed == draws


# How much.

# Each is the least of some: shares of what retraining takes, multiples of the part, numbers.
AMOUNTS: dict[str, list[tuple[float, float, float]]] = {
    "10%": [(0.1, 0, 0)],
    "50x": [(0, 50, 0)],
    "1.5x": [(0, 1.5, 0)],
    "500": [(0, 0, 500)],
    "0": [(0, 0, 0)],
    "all": [(1, 0, 0)],
    "10%, 3x ,40": [(0.1, 0, 0), (0, 3, 0), (0, 0, 40)],
    "auto": [(0.1, 0, 0)],
}


@given(
    st.integers(1, 300),
    st.integers(1, 60),
    st.integers(1, 40),
    st.integers(1, 12),
    st.sampled_from(sorted(AMOUNTS)),
)
@settings(max_examples=60, deadline=None)
def test_what_is_processed_is_within_the_effort(
    old: int, new: int, epochs: int, passes: int, effort: str
) -> None:
    trainer = sized("fresh", old, new, epochs=epochs, effort=effort, passes=passes)
    retraining = epochs * (old + new)
    allowed = [share * retraining + times * new + count for share, times, count in AMOUNTS[effort]]
    most = min(*allowed, retraining)
    found = told(trainer)
    taken = sum(map(len, found.passes))
    assert 1 <= len(found.passes) <= max(passes, math.ceil(most / (old + new)))
    assert taken <= max(most + 0.5, new)  # one pass over what is new in any case
    if effort != "auto":  # which is less where the part is small
        assert taken > most - 1 - len(found.passes) or taken + new > most  # one more is too much
    if len(found.passes) > max(math.ceil(most / (old + new)), 1):  # none takes everything
        assert taken >= 2 * new * len(found.passes)


@pytest.mark.parametrize(("sizes", "expected"), [((990, 10), 4995), ((90, 10), 495)])
def test_never_more_than_a_tenth_of_retraining(sizes: tuple[int, int], expected: int) -> None:
    """In 15 passes of one size."""
    trainer = sized("fresh", *sizes, epochs=50)
    assert sum(map(len, told(trainer).passes)) == expected


@pytest.mark.parametrize(
    ("device", "new", "expected"),
    [
        ("cpu", 10, 500 * 10),
        ("cpu", 100, 25_000),
        ("cpu", 2500, 12 * 2500 + 250),  # 320,000 / 400^2.5 is 0.1
        ("cuda", 2500, 500 * 2500 + 250),
        ("cpu", 40_000, 12 * 40_000 + 4_096_000),  # 320,000 / 25^2.5 is 102.4
    ],
)
def test_a_small_part_is_processed_a_few_times(device: str, new: int, expected: int) -> None:
    """500 times on a GPU, on a CPU as well up to 25,000, else 12 times; and the larger, the more.

    That is next to nothing of 10 and 100 facts, less than they may have anyway.
    """
    assert usual_of(device, new, known=1_000_000, epochs=100) == expected


def test_nobody_is_processed_less_for_being_more() -> None:
    for device in ("cpu", "cuda"):
        found = [usual_of(device, new, 100_000, 100) for new in range(1, 100_000, 7)]
        assert found == sorted(found)


def test_a_part_of_a_few_facts_is_learned_in_many_steps() -> None:
    trainer = sized("fresh", 3000, 400, epochs=20, batch=1024, effort="6400")
    assert told(trainer).schedule.batch == 100  # 64 steps
    trainer = sized("fresh", 3000, 4, epochs=20, batch=1024, effort="640")
    assert told(trainer).schedule.batch == 32
    trainer = sized("fresh", 3000, 4, epochs=20, batch=8, effort="640")
    assert told(trainer).schedule.batch == 8  # never more than one asks for


def test_the_rate_falls_to_nothing_and_the_last_weights_are_kept() -> None:
    changes = {"lr": 0.5, "later_rate": 0.5, "halve_every": 3, "decay": 0.2, "patience": 1}
    found = told(sized("fresh", 100, 10, epochs=50, effort="200", **changes))
    rates = [found.schedule.rate(epoch) for epoch in range(1, 11)]
    assert rates == pytest.approx([0.25 * (1 - k / 10) for k in range(10)])
    assert found.schedule.patience == 0


# What examples count.


def slow_weights(asked: list[list[int]], known: list[list[int]]) -> list[float]:
    weights = []
    for head, relation, tail in asked:
        times = sum(h == head and r == relation for h, r, _ in known)
        times += sum(t == tail and r == relation for _, r, t in known)
        weights.append(1 / math.sqrt(4 + times))
    mean = sum(weights) / len(weights)
    return [weight / mean for weight in weights]


@pytest.mark.parametrize("effort", ["60", "all"])
def test_examples_count_as_they_would_in_retraining(effort: str) -> None:
    trainer = sized("fresh", 300, 50, 9, epochs=20, effort=effort, weighting="frequency")
    training_set = told(trainer).training_set
    assert (len(training_set.examples) == 359) == (effort == "all")
    expected = slow_weights(training_set.examples.tolist(), trainer.examples("train").tolist())
    assert training_set.weight.tolist() == pytest.approx(expected, rel=1e-5)
    assert training_set.weight.mean().item() == pytest.approx(1)
    assert training_set.weight.unique().numel() > 1


rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=25)


@given(st.lists(rows, min_size=1, max_size=4), rows)
@settings(max_examples=50, deadline=None)
def test_questions_are_counted_in_all_parts(parts: list[list[Triple]], asked: list[Triple]) -> None:
    builder, graph = KnowledgeStreamBuilder("counted"), KnowledgeGraph()
    builder.entities.add([f"e{i}" for i in range(6)])
    builder.relations.add([f"r{i}" for i in range(3)])
    none = np.empty((0, 3), np.int64)
    for part in parts:
        builder.add(np.array(part, np.int64).reshape(-1, 3), none, none)
    for each in builder.build():
        graph.add(each)
    known = {triple for part in parts for triple in part}  # each counts once
    expected = [
        sum((h, r) == (head, relation) for h, r, _ in known)
        + sum((r, t) == (relation, tail) for _, r, t in known)
        for head, relation, tail in asked
    ]
    assert graph.times_asked(np.array(asked, np.int64).reshape(-1, 3)).tolist() == expected


# At what pace.


@pytest.mark.parametrize("form", ["transe", "transe-divided", "convkb-triple"])
def test_old_rows_learn_at_their_pace(form: str) -> None:
    for pace in (0.25, 0.5):
        trainer = trainer_of(settings_of(form, "fresh", old_pace=pace))
        for part in stream_of(form)[:2]:
            trainer.take(part)
        paces = told(trainer).paces
        assert paces.keys() == trainer.old_rows().keys()
        for name, first in trainer.old_rows().items():
            found = paces[name]
            assert found is not None and 0 < first < len(found)
            moving = found[:first][found[:first] > 0]
            awake = moving > 0.5 * pace  # what the last step learned; the others rest
            assert awake.any() and moving[awake].tolist() == pytest.approx([pace] * awake.sum())
            rest = moving[~awake]
            assert rest.tolist() == pytest.approx([0.1 * pace] * len(rest))
            assert found[first:].eq(1).all()
        assert all(table.pace() is None for table in trainer.model.tables().values())


@pytest.mark.parametrize(
    ("sizes", "epochs", "pace"),
    [
        ((380, 20), 100, 0.5**0.7),  # half of a tenth
        ((380, 20), 500, 0.5**0.7),
        ((380, 20), 64, 1.25 * 0.5**0.7),
        ((80, 20), 100, 1.0),
    ],
)
def test_old_rows_learn_the_more_slowly_the_smaller_the_part_is(
    sizes: tuple[int, int], epochs: int, pace: float
) -> None:
    trainer = sized("fresh", *sizes, epochs=epochs)
    assert plan_of(trainer, FreshSettings()).old_pace == pytest.approx(pace)


@pytest.mark.parametrize("form", LINK_FORMS)
def test_an_idle_old_row_moves_only_in_steps_that_learn_of_it(form: str) -> None:
    trainer = trainer_of(settings_of(form, "fresh", batch=4, epochs=20, effort="40", idle_pace=0.0))
    assert isinstance(trainer, LinkTrainer)
    for part in stream_of(form)[:2]:
        trainer.take(part)
    entities, first = trainer.model.entities, trainer.old_rows()["entities"]
    steps = 0
    plain = Redrawn.batches

    def watched(self: Redrawn, *given: Any) -> Iterator[tuple[Any, torch.Tensor, torch.Tensor]]:
        nonlocal steps
        for objective, examples, weight in plain(self, *given):
            before = entities.rows.clone()
            yield objective, examples, weight
            moved = (entities.rows != before).any(1).nonzero()[:, 0]
            spoken = {*examples[:, 0].tolist(), *examples[:, 2].tolist()}
            old = moved[moved < first]
            assert {row // trainer.model.count for row in old.tolist()} <= spoken
            assert len(old)
            steps += 1

    with patch.object(Redrawn, "batches", watched):
        strategy_of(trainer.settings).learn(trainer)
    assert steps > 5


def test_what_may_change_follows_the_draws_and_not_the_history() -> None:
    trainer = sized("fresh", 3000, 2, epochs=20, effort="40")
    table, found = trainer.model.entities, []

    def fit(training_set: TrainingSet, *_: Any, **__: Any) -> FitReport:
        found.append((training_set.examples, table.movable))
        return FitReport()

    with patch.object(trainer, "fit", fit):
        strategy_of(trainer.settings).learn(trainer)
    ((examples, movable),) = found
    assert movable is not None and len(movable) < ENTITIES
    assert set(movable.tolist()) == {*examples[:, 0].tolist(), *examples[:, 2].tolist()}


def test_rows_are_open_again_whatever_happens() -> None:
    trainer = trainer_of(settings_of("transe", "fresh"))
    for part in knowledge_stream()[:2]:
        trainer.take(part)
    with (
        patch.object(trainer, "fit", side_effect=DivergedError(1, 1, "the loss")),
        pytest.raises(DivergedError),
    ):
        strategy_of(trainer.settings).learn(trainer)
    assert all(table.pace() is None for table in trainer.model.tables().values())


# Parts that bring nothing, and going on over everything.


@pytest.mark.parametrize("form", ["transe", "gat"])
def test_a_part_without_training_examples_learns_nothing_and_says_so(form: str) -> None:
    learner = Learner(settings=settings_of(form, "fresh"), device="cpu")
    stream = stream_of(form)
    learner.learn(stream[0])
    before = {name: t.rows.clone() for name, t in learner.trainer.model.tables().items()}
    dense = [p.detach().clone() for p in learner.trainer.model.parameters()]
    report = learner.learn(replace(stream[1], train=stream[1].train[:0]))
    assert (report.new_examples, report.replayed_examples, report.epochs) == (0, 0, 0)
    assert report.positives == {"new": 0, "old": 0}
    for name, rows_before in before.items():
        now = learner.trainer.model.tables()[name].rows
        assert torch.equal(now[: len(rows_before)], rows_before)
    for old, parameter in zip(dense, learner.trainer.model.parameters(), strict=True):
        assert torch.equal(parameter[: len(old)], old)
    report = learner.learn(stream[2])  # and the next one is learned as ever
    assert report.epochs > 0 and report.replayed_examples > 0


@pytest.mark.parametrize(
    ("effort", "expected"),
    [("all", 20), ("30%", 6), ("12%", 2), ("1%", 1), ("0", 1), ("2x", 1), ("900", 8)],
)
def test_warm_goes_on_over_everything_for_some_epochs(effort: str, expected: int) -> None:
    trainer = sized("warm", 80, 30, epochs=20, lr=0.5, effort=effort)  # 900 / 110 is 8.2
    found = told(trainer)
    assert found.schedule.epochs == len(found.passes) == expected
    assert all(sorted(taken) == sorted(triples(trainer)) for taken in found.passes)
    assert found.training_set.old_in_epoch() == found.replayed == 80
    assert found.schedule.rate(1) == pytest.approx(0.7 * 0.5)
    assert all(pace is None for pace in found.paces.values())

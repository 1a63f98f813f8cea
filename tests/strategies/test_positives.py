"""What learning a part costs, counted by hand: examples x epochs, new and old apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dicgrl import Learner
from dicgrl.graph import KnowledgeStream, KnowledgeStreamBuilder
from dicgrl.learner import PartReport
from dicgrl.settings import Settings
from dicgrl.strategies import Composed, Ingredient, Strategy
from dicgrl.strategies.ingredients import Replay
from dicgrl.strategies.mixed import MixedSet
from dicgrl.trainers import ExampleGroup, Trainer
from dicgrl.training import Positives
from tests.growing import network_stream, settings_of

PARTS = (30, 12, 10)  # training triples of the stream
EPOCHS, BUDGET, BATCH = 3, 6, 8


def knowledge_stream() -> KnowledgeStream:
    """Three parts of different triples; each brings three entities and is validated."""
    builder = KnowledgeStreamBuilder("counted")
    random = np.random.default_rng(0)
    old = np.empty((0, 3), np.int64)
    builder.relations.add(["r0", "r1"])
    for number, count in enumerate(PARTS):
        builder.entities.add([f"e{i}" for i in range(6 + 3 * number)])
        entities = 6 + 3 * number
        every = np.stack(np.meshgrid(*map(np.arange, (entities, 2, entities))), -1).reshape(-1, 3)
        unseen = every[~(every[:, None] == old).all(2).any(1)]
        new = (unseen >= entities - 3)[:, [0, 2]].any(1)
        unseen = random.permutation(unseen[new] if number else unseen)
        builder.add(unseen[:count], unseen[count : count + 4], unseen[count + 4 : count + 6])
        old = np.concatenate([old, unseen[: count + 6]])
    return builder.build()


def positives(settings: Settings) -> list[dict[str, int]]:
    learner = Learner(settings=settings, device="cpu")
    return [learner.learn(part).positives for part in knowledge_stream()]


def of_links(strategy: str, form: str = "transe", **changes: Any) -> list[dict[str, int]]:
    return positives(settings_of(form, strategy, patience=0, **changes))


def expected(*counts: tuple[int, int]) -> list[dict[str, int]]:
    return [{"new": new, "old": old} for new, old in counts]


def test_new_examples_alone() -> None:
    assert of_links("lower") == expected((90, 0), (36, 0), (30, 0))
    assert of_links("frozen") == expected((90, 0), (0, 0), (0, 0))
    assert of_links("lower", later_epochs=5) == expected((90, 0), (60, 0), (50, 0))


def test_retraining_passes_everything_old_and_new_apart() -> None:
    assert of_links("upper") == expected((90, 0), (36, 90), (30, 126))


def test_fresh_passes_what_is_new_and_as_much_of_what_is_old_as_its_effort_allows() -> None:
    # 4 passes of 24: 12 new and 12 old, then 10 new and 14 old.
    found = of_links("fresh", effort="96", passes=4)
    assert found == expected((90, 0), (48, 48), (40, 56))
    found = of_links("fresh", effort="96", passes=2)
    assert found == expected((90, 0), (36, 60), (20, 76))  # two would draw some of 30 twice
    assert of_links("fresh", effort="1x") == expected((90, 0), (12, 0), (10, 0))


def test_warm_passes_everything_in_whole_epochs() -> None:
    # Of 42 and 52 triples.
    assert of_links("warm", effort="84") == expected((90, 0), (24, 60), (20, 84))
    assert of_links("warm", effort="1x") == expected((90, 0), (12, 30), (10, 42))


def test_replay_passes_its_memory_in_every_epoch() -> None:
    assert of_links("emr") == expected((90, 0), (36, 18), (30, 18))
    assert of_links("emr", budget="all") == expected((90, 0), (36, 90), (30, 126))


def test_gem_asks_its_memories_in_every_step() -> None:
    # Two steps of at most 8 in an epoch, each with the 6 examples of all memories.
    assert of_links("gem") == expected((90, 0), (36, 36), (30, 36))
    # A step takes no more of one memory than a batch: 8 of 30, then 8 of 30 and 8 of 12.
    assert of_links("gem", budget="all") == expected((90, 0), (36, 48), (30, 96))


def test_the_fisher_information_of_ewc_passes_each_part_once_more() -> None:
    assert of_links("ewc") == expected((120, 0), (48, 0), (40, 0))


def test_dicgrl_counts_what_it_activates() -> None:
    found = of_links("dicgrl", "transe-divided", refresh=0, validate_on="none")
    assert found == expected((90, 0), (36, 18), (30, 18))  # more than 6 are activated


def test_what_is_chosen_anew_counts_as_often_as_it_is_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed = {"new": 0, "old": 0}
    batches = MixedSet.batches

    def watched(self: MixedSet, *given: Any) -> Iterator[Any]:
        for objective, examples, weight in batches(self, *given):
            kind = "new" if objective is self.objective else "old"
            passed[kind] += len(examples)
            yield objective, examples, weight

    monkeypatch.setattr(MixedSet, "batches", watched)
    changes = {"refresh": 1, "budget": "4,1x", "validate_on": "none", "arrive_epochs": 0}
    found = of_links("dicgrl", "transe-divided", **changes)
    assert {kind: sum(part[kind] for part in found[1:]) for kind in passed} == passed
    assert passed["old"] > 0


def test_all_stages_of_dicgrl_count_with_their_shield() -> None:
    found = of_links(
        "dicgrl",
        "transe-divided",
        refresh=0,
        validate_on="none",
        arrive_epochs=2,
        shield="5",
        later_epochs=4,
    )
    # Arrival: 2 epochs with a shield of 5; update: 4 epochs with a replay of 6.
    assert found == expected((90, 0), (72, 34), (60, 34))
    found = of_links(
        "dicgrl",
        "transe-divided",
        refresh=0,
        validate_on="none",
        arrive_epochs=2,
        shield="5",
        later_epochs=4,
        guard=True,
    )
    assert found == expected((90, 0), (72, 54), (60, 54))  # the shield stays: 4 x 5 more


@pytest.mark.parametrize("form", ["gat", "sage-mini"])
def test_nodes_count_alike_at_once_and_in_batches(form: str) -> None:
    def of_nodes(strategy: str) -> list[dict[str, int]]:
        learner = Learner(settings=settings_of(form, strategy, patience=0), device="cpu")
        stream = network_stream()
        return [learner.learn(stream[number]).positives for number in range(3)]

    sizes = [len(part.train) for part in network_stream()]
    first = (3 * sizes[0], 0)
    assert of_nodes("lower") == expected(first, (3 * sizes[1], 0), (3 * sizes[2], 0))
    old = 3 * (sizes[0] + sizes[1])
    assert of_nodes("upper") == expected(first, (3 * sizes[1], 3 * sizes[0]), (3 * sizes[2], old))
    assert of_nodes("emr") == expected(first, (3 * sizes[1], 18), (3 * sizes[2], 18))


def test_epochs_that_were_not_trained_do_not_count() -> None:
    learner = Learner(settings=settings_of("transe", "upper", patience=1, lr=1e-9), device="cpu")
    stream = knowledge_stream()
    for number in range(3):
        report = learner.learn(stream[number])
        new, old = PARTS[number], sum(PARTS[:number])
        assert report.positives == {"new": report.epochs * new, "old": report.epochs * old}


def group(size: int, most: int = 0) -> ExampleGroup:
    def loss(examples: Tensor, weight: Tensor) -> Tensor:
        raise AssertionError

    return ExampleGroup(loss, torch.arange(size), torch.ones(size), most)


def test_groups_count_what_an_epoch_takes_of_them() -> None:
    groups = group(10), group(30, most=6), group(4, most=6), group(0)
    for at_once, taken in ((False, 6 + 4), (True, 30 + 4)):
        training_set = MixedSet(*groups, at_once=at_once)
        sizes = [len(e) for _, e, _ in training_set.batches(1, 5, torch.Generator())]
        assert (training_set.old_in_epoch(), sum(sizes)) == (taken, taken + 10)
        training_set.teach(group(0), group(7))  # no new ones: others are old all the same
        assert training_set.old_in_epoch() == 7
    assert MixedSet(*groups, at_once=False, old=3).old_in_epoch() == 13


@pytest.fixture
def _forgotten() -> Iterator[None]:
    before = dict(Strategy.registry)
    yield
    Strategy.registry.clear()
    Strategy.registry.update(before)


@pytest.mark.usefixtures("_forgotten")
def test_ingredients_add_up() -> None:
    class Turns(Ingredient):
        def taking_turns(self, trainer: Trainer) -> list[ExampleGroup]:
            old = trainer.examples("train", 0, trainer.newest)
            return [ExampleGroup(trainer.objective(old), old, torch.ones(len(old)), most=4)]

    class Asking(Ingredient):
        @property
        def besides(self) -> Positives:
            return Positives(new=1, old=2)

    class All(Composed, name="all of the tests"):
        ingredients = (Turns, Replay, Asking)

    found = of_links(All.name)
    # An epoch passes 6 replayed ones and 4 that take turns.
    assert found == expected((91, 2), (37, 32), (31, 32))


def test_a_first_part_that_is_shared_costs_what_it_would_have_cost(tmp_path: Path) -> None:
    stream = knowledge_stream()
    shared = Learner(settings=settings_of("transe", "lower", patience=0), device="cpu")
    shared.learn(stream[0])
    shared.save(tmp_path)
    for strategy in ("ewc", "emr"):
        learner = Learner.load(tmp_path, device="cpu")
        learner = learner.fork(settings_of("transe", strategy, patience=0))
        learner.learn(stream[1])
        assert [report.positives for report in learner.reports] == of_links(strategy)[:2]


def test_nothing_new_costs_nothing_and_older_reports_are_read(tmp_path: Path) -> None:
    stream = knowledge_stream()
    learner = Learner(settings=settings_of("transe", "lower"), device="cpu")
    learner.learn(stream[0])
    triple = stream[0].train[0]
    labels = [stream.entities, stream.relations, stream.entities]
    known = tuple(kind.labels([i])[0] for kind, i in zip(labels, triple, strict=True))
    assert learner.learn([known]).positives == {"new": 0, "old": 0}
    learner.save(tmp_path)
    again = Learner.load(tmp_path, device="cpu")
    assert again.reports[0].positives == learner.reports[0].positives
    older = asdict(again.reports[0])
    del older["positives"]
    assert PartReport(**older).positives == {}
    again.reports[0] = PartReport(**older)
    forked = again.fork(settings_of("transe", "ewc"))
    assert forked.reports[0].positives == {}  # a part of it would be misleading

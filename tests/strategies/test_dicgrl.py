"""DiCGRL on knowledge graphs: which rows of which old components may change, and by how much."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dicgrl.graph import KnowledgePart
from dicgrl.graph.arrays import IntArray
from dicgrl.strategies.activator import ActivatedExamples
from dicgrl.strategies.activator_links import LinkActivator
from dicgrl.trainers import LinkTrainer
from dicgrl.training.gradients import take_gradients
from tests.growing import (
    LINK_FORMS,
    activator,
    knowledge_stream,
    same,
    settings_of,
    strategy_of,
    trainer_of,
    weights,
)
from tests.slow_activation import Active, Link, slow_activation, triple_link

DIVIDED = [form for form in LINK_FORMS if "components" in LINK_FORMS[form]]
every_form = pytest.mark.parametrize("form", DIVIDED)


def begun(form: str, seed: int = 0, news_only: bool = False, **changes: Any) -> LinkTrainer:
    """A trainer of one part that has taken in the next, or what it says of new entities."""
    settings = settings_of(form, "dicgrl", **changes)
    trainer = trainer_of(settings, seed)
    assert isinstance(trainer, LinkTrainer)
    stream = knowledge_stream(seed)
    trainer.take(stream[0])
    learner = strategy_of(settings)
    learner.learn(trainer)
    part = stream[1]
    assert isinstance(part, KnowledgePart)
    if news_only:
        new = (part.train[:, [0, 2]] >= part.new_entities.start).any(1)
        part = replace(part, train=part.train[new])
    trainer.take(part)
    learner.prepare(trainer)
    return trainer


def links_of(trainer: LinkTrainer, attention: Tensor) -> tuple[list[Link], list[Link]]:
    """Old triples by the attention before the part, new ones by that of now."""
    before = copy.deepcopy(trainer.model)
    if before.attention is not None:
        before.attention.rows[: len(attention)] = attention
    else:
        assert before.attention_weight is not None
        before.attention_weight.data.copy_(attention)
    old = [triple_link(before, row) for row in trainer.examples("train", 0, 1).tolist()]
    new = [triple_link(trainer.model, row) for row in trainer.examples("train", 1).tolist()]
    return old, new


def slow_open(trainer: LinkTrainer, new: list[Link], chosen: dict[int, Active]) -> Any:
    """Old rows that may change, by table: what new triples use, what chosen ones have in common."""
    model, found = trainer.model, {"entities": set(), "relations": set(), "attention": set()}
    history = trainer.examples("train", 0, 1).tolist()
    speaking = [
        (row, link.components)
        for row, link in zip(trainer.examples("train", 1).tolist(), new, strict=True)
    ]
    found["attention"] |= {row[1] for row, _ in speaking}
    speaking += [(history[number], one.common) for number, one in chosen.items()]
    for (h, r, t), components in speaking:
        found["entities"] |= {e * model.count + k for e in (h, t) for k in components}
        if model.relation_count == 1:
            found["relations"].add(r)
        else:
            found["relations"] |= {r * model.count + k for k in components}
    return found


class Watch:
    """Computes before every activation, slowly, what it should find and open."""

    def __init__(self, trainer: LinkTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trainer = trainer
        self.may: dict[str, set[int]] = {name: set() for name in trainer.model.tables()}
        self.used: set[int] = set()
        self.calls = 0
        attention = trainer.model.attention_now()
        assert attention is not None
        original = LinkActivator.activate

        def watched(
            activating: LinkActivator, budget: int, used: IntArray | None = None
        ) -> ActivatedExamples:
            used = np.empty(0, np.int64) if used is None else used
            old, new = links_of(trainer, attention)
            expected, looked = slow_activation(old, new, trainer.settings.orders)
            replay = original(activating, budget, used)
            activating.unfreeze_concerned(replay)  # as the strategy does next
            numbers = replay.positions.tolist()
            assert set(numbers) <= expected.keys() and len(set(numbers)) == len(numbers)
            assert set(used.tolist()) == self.used
            free = self.used & expected.keys()  # what was paid for stays while it is activated
            assert free <= set(numbers)
            others = len(expected) - len(free)
            assert len(numbers) == len(free) + min(budget - len(self.used), others)
            self.used |= set(numbers)
            assert len(self.used) <= budget
            assert (replay.candidates, replay.activated) == (len(looked), len(expected))
            chosen = {number: expected[number] for number in numbers}
            if trainer.settings.selection == "top" and chosen:
                left = [one.merit for n, one in expected.items() if n not in chosen]
                bought = [one.merit for n, one in chosen.items() if n not in free]
                assert min(bought, default=math.inf) >= max(left, default=0) - 1e-9
            heavy = {1: trainer.settings.weight1, 2: trainer.settings.weight2}
            assert replay.weight.tolist() == [heavy[chosen[n].order] for n in numbers]
            history = trainer.examples("train", 0, 1)
            assert torch.equal(replay.examples, history[numbers])
            rows = slow_open(trainer, new, chosen)
            for name, table in trainer.model.tables().items():
                fresh = set(range(trainer.old_rows()[name], len(table)))
                assert table.movable is not None
                assert set(table.movable.tolist()) == rows[name] | fresh
                self.may[name] |= rows[name]
            self.calls += 1
            return replay

        monkeypatch.setattr(LinkActivator, "activate", watched)


def changed_rows(before: dict[str, Tensor], after: dict[str, Tensor], name: str) -> set[int]:
    """Rows of a table of which a number or the optimiser's state is another, bit by bit."""
    found: set[int] = set()
    for key, values in before.items():
        if key.startswith(f"{name}/"):
            found |= set((values != after[key]).any(1).nonzero()[:, 0].tolist())
    return found


@every_form
@pytest.mark.parametrize(
    "changes",
    [
        {"budget": "all"},
        {"budget": "4", "weight_decay": 0.1},
        {"budget": "3", "orders": 1, "refresh": 1, "selection": "sample"},
        {"budget": "5", "orders": 1, "refresh": 2, "batch": 1000, "negatives": 40},
    ],
    ids=["all", "top", "sample", "large-batch"],
)
def test_of_old_rows_only_the_common_components_change(
    form: str, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = begun(form, later_epochs=4, start="random", **changes)
    watch = Watch(trainer, monkeypatch)
    before = weights(trainer)
    old_rows = trainer.old_rows()
    learned = strategy_of(trainer.settings).learn(trainer)
    after = weights(trainer)
    assert watch.calls == {0: 1, 1: 4, 2: 2, 10: 1}[trainer.settings.refresh]
    moved = 0
    for name, first_new in old_rows.items():
        old = {row for row in changed_rows(before, after, name) if row < first_new}
        assert old <= watch.may[name]
        moved += len(old)
        assert trainer.model.tables()[name].movable is None
    assert moved > 0  # the method does update old components
    entities = set(range(old_rows["entities"]))
    assert entities - changed_rows(before, after, "entities")  # and leaves others alone
    assert learned.details["drift"]["rows"] <= moved  # rows whose state alone changed do not count
    assert learned.replayed == len(watch.used)  # within the budget, however often it is refreshed


@every_form
def test_old_batches_do_not_train_attention(form: str) -> None:
    trainer = begun(form, beta=0.5)
    old = trainer.examples("train", 0, 1)
    activator(trainer).objective(old)(old, torch.ones(len(old))).backward()
    found = take_gradients(trainer.model)
    assert found["table/entities"].any() and found["table/relations"].any()
    attention = found.get("table/attention", found.get("attention_weight"))
    assert attention is not None and not attention.any()
    # The same batch as new examples does, where attention learns at all.
    trainer.objective(old)(old, torch.ones(len(old))).backward()
    found = take_gradients(trainer.model)
    attention = found.get("table/attention", found.get("attention_weight"))
    assert attention is not None and attention.any()


@pytest.mark.parametrize("form", ["transe-divided", "transe-published", "convkb-divided"])
def test_attention_of_relations_in_old_triples_only_stays(form: str) -> None:
    settings = settings_of(form, "dicgrl", later_epochs=4, budget="all", beta=1.0)
    trainer = trainer_of(settings)
    assert isinstance(trainer, LinkTrainer)
    first, second, _ = knowledge_stream()
    trainer.take(first)
    strategy_of(settings).learn(trainer)
    trainer.take(replace(second, train=second.train[second.train[:, 1] != 0]))
    attention = trainer.model.attention
    assert attention is not None
    before = attention.snapshot()
    learned = strategy_of(settings).learn(trainer)
    assert (trainer.old_examples(np.arange(trainer.count("train", 0, 1)))[:, 1] == 0).any()
    assert learned.activated == trainer.count("train", 0, 1)  # triples of relation 0 among them
    after = attention.snapshot()
    assert all(torch.equal(after[key][0], values[0]) for key, values in before.items())
    assert not torch.equal(after["rows"][1:], before["rows"][1:])


@pytest.mark.parametrize("form", ["transe-divided", "convkb-divided"])
def test_old_components_move_no_farther_than_allowed(form: str) -> None:
    most, far = 0.05, []
    for bound in (0.0, most):
        trainer = begun(form, later_epochs=6, budget="all", lr=0.2, max_drift=bound, refresh=2)
        tables, first_new = trainer.model.tables(), trainer.old_rows()
        before = {name: table.rows.clone() for name, table in tables.items()}
        learned = strategy_of(trainer.settings).learn(trainer)
        shares = []
        for name, table in tables.items():
            old = before[name][: first_new[name]]
            shares.append((table.rows[: len(old)] - old).norm(dim=1) / old.norm(dim=1))
        share = torch.cat(shares)
        moved = share[share > 0]
        drift = learned.details["drift"]
        assert drift["largest"] == pytest.approx(share.max().item(), rel=1e-4)
        assert drift["mean"] == pytest.approx(moved.mean().item(), rel=1e-4)
        assert drift["rows"] == len(moved)
        far.append(share.max().item())
    assert far[1] <= most * 1.001 < far[0]
    assert far[1] > 0.9 * most  # the bound binds, it does not stop


@pytest.mark.parametrize("form", ["transe-divided", "transe-nodes"])
def test_a_fan_bounds_the_old_neighbours_that_are_looked_at(form: str) -> None:
    every = activator(begun(form, orders=1)).activate(10**6)
    wide = activator(begun(form, orders=1, fan=100)).activate(10**6)
    assert wide.positions.tolist() == every.positions.tolist()
    assert wide.candidates == every.candidates
    trainer = begun(form, orders=1, fan=1)
    narrow = activator(trainer).activate(10**6)
    assert set(narrow.positions.tolist()) <= set(every.positions.tolist())
    speaking = set(trainer.examples("train", 1)[:, [0, 2]].flatten().tolist())
    old_ends = set(trainer.examples("train", 0, 1)[:, [0, 2]].flatten().tolist())
    # Every node that a new triple mentions and that has an old triple shows one of them.
    assert len(speaking & old_ends) / 2 <= narrow.candidates <= len(speaking & old_ends)
    assert narrow.candidates < every.candidates


@pytest.mark.parametrize("form", ["transe-divided", "transe-published"])
def test_old_rows_learn_at_the_pace_of_what_is_new_about_them(form: str) -> None:
    trainer = begun(form, pace=0.5, budget="all")
    concerns = activator(trainer)
    concerns.unfreeze_concerned(concerns.activate(10**6))
    model, first_new = trainer.model, trainer.old_rows()
    old, new = (trainer.examples("train", *span).tolist() for span in ((0, 1), (1,)))
    seen = set()
    for name, table in model.tables().items():
        paces = table.pace()
        assert table.movable is not None and paces is not None
        for row in table.movable.tolist():
            if name == "entities":
                one = row // model.count
                before, now = (sum(one in (h, t) for h, _, t in rows) for rows in (old, new))
            else:
                one = row // (model.relation_count if name == "relations" else 1)
                before, now = (sum(one == r for _, r, _ in rows) for rows in (old, new))
            share = 0.5 * now / max(before + now, 1)
            expected = 1.0 if row >= first_new[name] else min(max(share, 0.02), 1.0)
            assert paces[row, 0].item() == pytest.approx(expected)
            seen.add(expected)
    assert {1.0, 0.02} < seen  # new ones, those without news, and some in between


def test_everything_is_open_again_when_learning_fails() -> None:
    trainer = begun("convkb-divided", arrive_epochs=2)

    def fail(report: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        strategy_of(trainer.settings).learn(trainer, fail)
    assert all(table.movable is None for table in trainer.model.tables().values())
    assert all(parameter.requires_grad for parameter in trainer.model.parameters())


def test_the_early_stop_gives_back_rows_that_were_opened_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Validation falls from the first epoch on, while every epoch activates other triples."""
    changes = {"budget": "all", "orders": 1, "fan": 1, "refresh": 1, "later_epochs": 6}
    trainer = begun("transe-divided", validate_every=1, patience=0, **changes)
    kept: list[dict[str, Tensor]] = []
    opened: list[set[int]] = []

    def judge(examples: Tensor) -> float:
        kept.append(weights(trainer))
        found = trainer.model.entities.movable
        assert found is not None
        opened.append(set(found.tolist()))
        return -float(len(kept))

    monkeypatch.setattr(trainer, "judge", judge)
    report = strategy_of(trainer.settings).learn(trainer).fits[0]
    assert report.best_epoch == 1 and report.epochs == 6
    assert set().union(*opened) > opened[0]  # rows that were closed in the best epoch
    assert not same(kept[0], kept[-1])
    assert same(weights(trainer), kept[0])


def test_dense_weights_can_be_averaged_by_the_examples_behind_them() -> None:
    plain, mean = (begun("convkb-divided", later_epochs=3, average=a) for a in (False, True))
    before = weights(mean)
    for trainer in (plain, mean):
        strategy_of(trainer.settings).learn(trainer)
    learned, averaged = weights(plain), weights(mean)
    old = mean.count("train", 0, 1) / mean.count("train")
    for name, _ in mean.model.named_parameters():
        expected = old * before[name] + (1 - old) * learned[name]
        assert torch.allclose(averaged[name], expected, atol=1e-6)
        assert not torch.equal(averaged[name], learned[name])
    assert torch.equal(averaged["entities/rows"], learned["entities/rows"])

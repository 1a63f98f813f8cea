"""LKGE, IncDE and FastKGE against slow forms of their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dicgrl import Learner, UserError
from dicgrl.settings import Settings
from dicgrl.strategies.distance import degrees, distances
from dicgrl.strategies.fastkge import Adapters
from dicgrl.strategies.incde import Distillation, IncDE, Ordering
from dicgrl.strategies.ingredients import Composed
from dicgrl.strategies.lkge import LKGE, Evidence, Reconstruction, evidence
from dicgrl.trainers import LinkTrainer
from tests.growing import (
    PLAIN_FORMS,
    knowledge_stream,
    settings_of,
    strategy_of,
    trainer_of,
    watch_fit,
    weights,
)


def learned(name: str, form: str = "transe", parts: int = 2, **changes: Any) -> tuple[
    LinkTrainer, Composed
]:  # fmt: skip
    """A trainer that has learned all parts but the last, which it has taken in."""
    settings = settings_of(form, name, **changes)
    trainer, strategy = trainer_of(settings), strategy_of(settings)
    assert isinstance(trainer, LinkTrainer) and isinstance(strategy, Composed)
    for number, part in enumerate(knowledge_stream()[:parts]):
        trainer.take(part)
        if number < parts - 1:
            strategy.learn(trainer)
    return trainer, strategy


def gradients(trainer: LinkTrainer) -> dict[str, Tensor]:
    """What ingredients have added so far; it is cleared."""
    found = {name: table.gradient.clone() for name, table in trainer.model.tables().items()}
    for table in trainer.model.tables().values():
        table.clear()
        assert not table.gradient.any()  # all that has a gradient was recorded
    return found


def nothing(examples: Tensor, weight: Tensor) -> Tensor:
    del weight
    return examples.sum() * 0.0


# LKGE


def slow_reconstruction(trainer: LinkTrainer, e: Tensor, r: Tensor, *, every: bool) -> Tensor:
    """L_mae, edge by edge, of TransE with inverse relations where it has them."""
    said: dict[int, list[Tensor]] = {i: [e[i]] for i in range(len(e))}
    fits: dict[int, list[Tensor]] = {i: [] for i in range(len(r))}
    half = r.shape[1] // 2
    for h, k, t in trainer.graph.rows("train", trainer.newest).tolist():
        inverses = trainer.model.inverses
        there = r[k, :half] if inverses else r[k]
        back = r[k, half:] if inverses else -r[k]
        said[t].append(e[h] + there)
        said[h].append(e[t] + back)
        fits[k].append(torch.cat([e[t] - e[h], e[h] - e[t]]) if inverses else e[t] - e[h])
    total = torch.zeros(())
    shown = [i for i, each in said.items() if every or len(each) > 1]
    for i in shown:
        total = total + (torch.stack(said[i]).mean(0).relu() - e[i]).square().sum() / len(shown)
    known = [k for k, each in fits.items() if every or each]
    for k in known:
        place = torch.stack(fits[k]).mean(0) if fits[k] else torch.zeros_like(r[k])
        relations = len(known) * (1 + trainer.model.inverses)
        total = total + (place - r[k]).square().sum() / relations
    return total


@pytest.mark.parametrize("form", ["transe", "transe-unit"])
@pytest.mark.parametrize("reconstruct", ["mentioned", "all"])
def test_reconstruction_is_that_of_the_formula(form: str, reconstruct: str) -> None:
    trainer, strategy = learned("lkge", form, reconstruct=reconstruct, reconstruction=0.3)
    (part,) = (each for each in strategy.parts if isinstance(each, Reconstruction))
    part.begin(trainer)
    part.adjust(trainer, nothing)
    found = gradients(trainer)
    rows = [
        trainer.model.tables()[name].rows.clone().requires_grad_()
        for name in ("entities", "relations")
    ]
    loss = 0.3 * slow_reconstruction(trainer, *rows, every=reconstruct == "all")
    expected = torch.autograd.grad(loss, rows)
    for name, gradient in zip(("entities", "relations"), expected, strict=True):
        assert torch.allclose(found[name], gradient, atol=1e-6)


@pytest.mark.parametrize("form", ["transe", "transe-unit", "distmult", "rotate", "convkb"])
@pytest.mark.parametrize("reconstruct", ["mentioned", "all"])
def test_every_decoder_can_be_reconstructed(form: str, reconstruct: str) -> None:
    trainer, strategy = learned("lkge", form, reconstruct=reconstruct)
    strategy.learn(trainer)
    assert all(values.isfinite().all() for values in weights(trainer).values())


def test_old_rows_are_anchored_by_their_evidence() -> None:
    trainer, strategy = learned("lkge", parts=3, evidence=0.2)
    stream = knowledge_stream()
    part = next(each for each in strategy.parts if isinstance(each, Evidence))
    part.begin(trainer)
    before = {name: table.rows.clone() for name, table in trainer.model.tables().items()}
    moved = {name: torch.randn_like(rows) for name, rows in before.items()}
    for name, table in trainer.model.tables().items():
        table.rows.add_(moved[name])
    part.adjust(trainer, nothing)
    found = gradients(trainer)
    for name, columns in (("entities", (0, 2)), ("relations", (1,))):
        old = trainer.old_rows()[name]
        for row in range(len(before[name])):
            counts = []
            for number in range(3):
                known = getattr(stream[number], f"new_{name}").stop > row
                facts = trainer.graph.rows("train", number, number + 1)  # without repeats
                met = sum(int((facts[:, c] == row).sum()) for c in columns)
                counts.append(met + known)
            share = sum(counts[:2]) / max(sum(counts), 1)
            assert evidence(trainer)[name][row].item() == pytest.approx(share)
            expected = 2 * 0.2 * share**2 * moved[name][row] if row < old else 0 * moved[name][row]
            assert torch.allclose(found[name][row], expected, atol=1e-6)


def test_the_first_part_is_reconstructed_as_well() -> None:
    first = [learned("lkge", parts=1, reconstruction=beta, evidence=0.0) for beta in (0.0, 5.0)]
    for trainer, strategy in first:
        strategy.learn(trainer)
    rows = [trainer.model.entities.rows for trainer, _ in first]
    assert not torch.equal(*rows)
    plain, strategy = learned("lower", parts=1)
    strategy.learn(plain)
    assert torch.equal(plain.model.entities.rows, rows[0])
    assert LKGE.first_alike is False and IncDE.first_alike is True


def test_a_retraining_is_reconstructed_as_well() -> None:
    rows = []
    for beta in (0.0, 5.0):
        trainer, strategy = learned("lkge", reconstruction=beta, evidence=0.0)
        strategy.learn(trainer)
        strategy.retrain(trainer)
        rows.append(trainer.model.entities.rows)
    assert not torch.equal(*rows)


# IncDE


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12), st.integers(0, 8))
def test_distances_are_those_of_a_search(ends: list[tuple[int, int]], known: int) -> None:
    triples = np.array([[h, 0, t] for h, t in ends], dtype=np.int64).reshape(-1, 3)
    expected = dict.fromkeys(range(known), 0)
    for level in range(9):
        for h, t in ends:
            for one, other in ((h, t), (t, h)):
                if expected.get(one) == level:
                    expected.setdefault(other, level + 1)
    assert distances(triples, known, 8).tolist() == [expected.get(i, 9) for i in range(8)]


def test_layers_come_one_after_the_other_and_busy_facts_first() -> None:
    trainer, strategy = learned("incde", parts=3)
    ordering = next(each for each in strategy.parts if isinstance(each, Ordering))
    order = ordering.order(trainer)
    assert order is not None
    rows = trainer.graph.rows("train", trainer.newest)
    assert sorted(order.tolist()) == list(range(len(rows)))
    first = knowledge_stream()[2].new_entities.start
    far = distances(rows, first, trainer.model.num_entities)
    met = degrees(rows, trainer.model.num_entities)
    keys = [(min(far[h], far[t]), -max(met[h], met[t])) for h, _, t in rows[order.numpy()].tolist()]
    assert keys == sorted(keys)


@pytest.mark.parametrize(
    ("facts", "repeats"), [("layers", True), ("file", True), ("shuffled", False)]
)
def test_an_order_is_the_same_in_every_epoch(
    facts: str, repeats: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, strategy = learned("incde", facts=facts)
    sets = watch_fit(trainer, monkeypatch)
    strategy.learn(trainer)
    seen = [
        torch.cat([examples for _, examples, _ in sets[0].batches(epoch, 5, trainer.generator)])
        for epoch in (1, 2)
    ]
    assert torch.equal(*seen) == repeats
    assert sorted(seen[0].tolist()) == sorted(trainer.examples("train", 1).tolist())
    if facts == "file":
        assert torch.equal(seen[0], trainer.examples("train", 1))


@pytest.mark.parametrize("form", PLAIN_FORMS)
@pytest.mark.parametrize(
    ("name", "epochs", "still"), [("incde", 2, True), ("incde", 3, False), ("fastkge", 2, True)]
)
def test_old_rows_wait_for_the_second_stage_if_there_is_one(
    name: str, epochs: int, still: bool, form: str
) -> None:
    changes = {"stage_epochs": 2} if name == "incde" else {}
    trainer, strategy = learned(name, form, epochs=epochs, validate_on="none", **changes)
    strategy.prepare(trainer)
    before, old = weights(trainer), trainer.old_rows()["entities"]
    strategy.learn(trainer)
    after = trainer.model.entities.rows
    assert torch.equal(after[:old], before["entities/rows"][:old]) == still
    assert not torch.equal(after[old:], before["entities/rows"][old:])


@pytest.mark.parametrize("parts", [2, 5])
def test_distillation_is_hubers_slope(parts: int) -> None:
    trainer, strategy = learned("incde")
    trainer.num_parts = parts  # as if so many had arrived
    part = next(each for each in strategy.parts if isinstance(each, Distillation))
    part.begin(trainer)
    old = trainer.old_rows()["entities"]
    before = trainer.model.entities.rows[:old].clone()
    trainer.model.entities.rows.add_(3 * torch.randn_like(trainer.model.entities.rows))
    part.adjust(trainer, nothing)
    now = trainer.model.entities.rows[:old].clone().requires_grad_()
    weight = 0.1 if parts == 5 else 0.01
    loss = weight * torch.nn.functional.huber_loss(now, before, reduction="sum")
    (expected,) = torch.autograd.grad(loss, now)
    found = gradients(trainer)
    assert torch.allclose(found["entities"][:old], expected, atol=1e-6)
    assert not found["entities"][old:].any() and not found["relations"].any()


# FastKGE


@pytest.mark.parametrize("adaptive", [False, True])
def test_new_rows_are_their_start_plus_products_of_low_rank(adaptive: bool) -> None:
    trainer, strategy = learned(
        "fastkge", rank=2, relation_rank=1, adapters=2, adaptive=adaptive, validate_on="none"
    )
    strategy.prepare(trainer)
    before = {name: table.rows.clone() for name, table in trainer.model.tables().items()}
    strategy.learn(trainer)
    for name, table in trainer.model.tables().items():
        old = trainer.old_rows()[name]
        assert torch.equal(table.rows[:old], before[name][:old])
        change = (table.rows - before[name])[old:]
        assert change.abs().sum(1).gt(0).any()
        # Two layers of two entities: rank 1 each where divided, so 2 together; a relation's is 1.
        assert torch.linalg.matrix_rank(change, atol=1e-5) <= (4 if name == "entities" else 1)


def test_a_step_is_that_of_the_factors() -> None:
    trainer, strategy = learned("fastkge", adapters=1, rank=3, adapter_rate=0.05)
    part = next(each for each in strategy.parts if isinstance(each, Adapters))
    part.begin(trainer)
    adapted = part._adapted[0]
    left, right = (each.detach().clone()[0].requires_grad_() for each in adapted.parameters)
    base, rows = adapted._base.clone(), adapted._rows
    adam = torch.optim.Adam([left, right], lr=0.05)
    for _ in range(3):
        towards = torch.randn_like(base)
        trainer.model.entities.accumulate(rows, towards)
        part.adjust(trainer, nothing)
        gradients(trainer)
        adam.zero_grad()
        ((base + left @ right / 3) * towards).sum().backward()
        adam.step()
        expected = (base + left @ right / 3).detach()
        assert torch.allclose(trainer.model.entities.rows[rows], expected, atol=1e-5)


def test_ranks_follow_the_facts_of_a_layer() -> None:
    strategy = strategy_of(Settings("transe", "fastkge", rank=10, adapters=2))
    assert isinstance(strategy, Composed)
    part = next(each for each in strategy.parts if isinstance(each, Adapters))
    assert part._ranks(np.array([1, 1, 3, 3]), 4, 2, 10) == [9, 15]
    assert part._ranks(np.array([1] * 800), 800, 2, 10) == [20, 20]  # a twentieth of its rows
    assert part._ranks(None, 3, 1, 20) == [20]


def test_a_rank_is_never_more_than_a_row_has_numbers() -> None:
    trainer, strategy = learned("fastkge", rank=1000, relation_rank=1000, adapters=1)
    part = next(each for each in strategy.parts if isinstance(each, Adapters))
    part.begin(trainer)
    widths = {table.width for table in trainer.model.tables().values()}
    assert {adapted.parameters[0].shape[-1] for adapted in part._adapted} <= widths


# All of them


@pytest.mark.parametrize("name", ["lkge", "incde", "fastkge"])
def test_what_they_cannot_learn_is_refused_with_one_message(name: str) -> None:
    with pytest.raises(UserError, match=f"strategy {name} needs a model of triples.*gat is not"):
        Settings("gat", name).make_strategy()
    with pytest.raises(UserError, match=f"strategy {name} works on whole vectors"):
        Settings("transe", name, components=4, top=2).make_strategy()


def test_a_first_part_with_a_reconstruction_is_not_shared_with_others() -> None:
    small: dict[str, Any] = {"dim": 8, "epochs": 2, "device": "cpu"}
    stream = knowledge_stream()
    for one, other in (("lower", "lkge"), ("lkge", "lower")):
        learner = Learner("transe", one, **small)
        learner.learn(stream[0])
        with pytest.raises(UserError, match=r"first part cannot be shared: .*strategy"):
            learner.fork(Learner("transe", other, **small).settings)
    learner = Learner("transe", "lower", **small)
    learner.learn(stream[0])
    assert learner.fork(Learner("transe", "incde", **small).settings).settings.strategy == "incde"


def test_negatives_may_be_known_only_where_that_is_asked_for() -> None:
    for known in (False, True):
        trainer, _ = learned("lower", known_negatives=known, parts=1)
        drawn = trainer.link_objective(range(9), trainer.examples("train")).sampler
        triples = trainer.examples("train")
        others = drawn.draw(triples, 2, 200)
        rows = torch.cat([triples[:, None, :2].expand(-1, 200, -1), others[..., None]], -1)
        assert trainer.graph.contains(rows.flatten(0, 1).numpy()).any() == known
        said = trainer.describe_protocol()["negatives"]
        assert ("known triples among them" in said) == known


def test_the_slow_forms_are_of_a_stream_with_something_old_and_new() -> None:
    trainer, _ = learned("lkge", parts=3)
    assert all(
        0 < first < len(trainer.model.tables()[n]) for n, first in trainer.old_rows().items()
    )

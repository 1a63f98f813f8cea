"""Tables too large for a gradient of every row, and rows of 16 bits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dicgrl import Learner
from dicgrl.errors import UserError
from dicgrl.evaluation import Ranker
from dicgrl.models import Components, KnowledgeModel, Table
from dicgrl.training import LinkObjective, NegativeSampler, RowAdam, make_loss

ROWS, WIDTH = 7, 3
Step = list[list[int]]  # ids that are touched, one call after the other


def made(shape: tuple[int, ...], seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def table_of(rows: Tensor, *, sparse: bool, dtype: torch.dtype = torch.float32) -> Table:
    with pytest.MonkeyPatch.context() as patch:
        if sparse:
            patch.setattr(Table, "dense_bytes", 0)
        table = Table(rows.shape[1], dtype=dtype)
        table.grow(rows)
    assert table.sparse == (sparse or dtype == torch.bfloat16)
    return table


id_lists = st.lists(
    st.lists(st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=9), min_size=1, max_size=3),
    min_size=1,
    max_size=4,
)


@given(id_lists, st.sampled_from(["adam", "rowwise"]), st.booleans(), st.integers(0, 99))
def test_a_large_table_learns_what_a_small_one_does(
    steps: list[Step], rule: str, closed: bool, seed: int
) -> None:
    tables = [table_of(made((ROWS, WIDTH), seed), sparse=sparse) for sparse in (False, True)]
    for table in tables:
        if closed:
            table.restrict(torch.arange(0, ROWS, 2))
        optimiser = RowAdam([table], lr=0.05, weight_decay=0.1, rule=rule)
        for number, calls in enumerate(steps):
            for at, ids in enumerate(calls):
                pull = made((len(ids), WIDTH), seed + 10 * number + at)
                table.accumulate(torch.tensor(ids), pull)
            mentioned = torch.tensor([i for ids in calls for i in ids])
            table.state("seen", WIDTH)[mentioned] = table.gradient_of(mentioned)
            optimiser.step()
        assert not table.claims().any() and not table.gradient.any()
    small, large = (table.snapshot() for table in tables)
    for name, values in large.items():
        torch.testing.assert_close(values, small[name], rtol=1e-6, atol=1e-7)


def reference(rows: Tensor, steps: list[tuple[list[int], Tensor]], lr: float) -> Tensor:
    """One row after the other, one number after the other."""
    rows = rows.double().clone()
    mean, count = [0.0] * len(rows), [0] * len(rows)
    for ids, gradients in steps:
        for row in set(ids):
            each = (g for i, g in zip(ids, gradients, strict=True) if i == row)
            gradient = sum(each, torch.zeros(rows.shape[1])).double()
            count[row] += 1
            mean[row] = 0.999 * mean[row] + 0.001 * float((gradient**2).mean())
            rows[row] -= lr * gradient / ((mean[row] / (1 - 0.999 ** count[row])) ** 0.5 + 1e-8)
    return rows


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=8), min_size=1, max_size=6))
def test_one_number_for_each_row_is_the_mean_of_its_squared_gradients(lists: Step) -> None:
    rows = made((6, WIDTH), 1)
    table = table_of(rows, sparse=True)
    optimiser = RowAdam([table], lr=0.05, rule="rowwise")
    steps = [(ids, made((len(ids), WIDTH), 5 + i)) for i, ids in enumerate(lists)]
    for ids, gradients in steps:
        table.accumulate(torch.tensor(ids), gradients)
        optimiser.step()
    expected = reference(rows, steps, 0.05).float()
    torch.testing.assert_close(table.rows, expected, rtol=1e-5, atol=1e-6)
    assert table.state("square", 1).shape == (6, 1) and not table.has("moment1")


def test_the_other_rule_begins_anew_and_its_state_takes_no_memory() -> None:
    table, fresh = (table_of(made((4, WIDTH), 0), sparse=False) for _ in range(2))
    for rule in ("adam", "rowwise"):
        table.accumulate(torch.tensor([1, 2]), made((2, WIDTH), 1))
        RowAdam([table], lr=0.1, rule=rule).step()
    assert not table.has("moment1") and table.state("steps", 1).sum() == 2
    before = table.rows.clone()
    for each in (table, fresh):
        each.accumulate(torch.tensor([1]), made((1, WIDTH), 2))
        RowAdam([each], lr=0.1, rule="adam").step()
    moved = before - table.rows, made((4, WIDTH), 0) - fresh.rows
    torch.testing.assert_close(moved[0], moved[1])


def test_small_steps_arrive_in_rows_of_16_bits() -> None:
    """A step is a hundredth of the distance to the next number; to the nearest, none would."""
    table = table_of(torch.ones(100, 50), sparse=True, dtype=torch.bfloat16)
    optimiser = RowAdam([table], lr=2.0**-8 / 100, rule="rowwise")
    for _ in range(200):
        table.accumulate(torch.arange(100), torch.ones(100, 50))
        optimiser.step()
    assert table.rows.float().mean() == pytest.approx(1 - 2 * 2.0**-8, abs=2e-4)


def test_rows_of_16_bits_that_rest_keep_their_bits() -> None:
    table = table_of(made((9, WIDTH), 3), sparse=True, dtype=torch.bfloat16)
    before = table.rows.clone()
    table.restrict(torch.tensor([2, 3]))
    table.accumulate(torch.arange(9), made((9, WIDTH), 4))
    RowAdam([table], lr=0.1).step()
    changed = (table.rows != before).any(1).nonzero()[:, 0]
    assert set(changed.tolist()) == {2, 3}


@pytest.mark.parametrize("divided", [False, True], ids=["plain", "divided"])
@pytest.mark.parametrize("name", ["transe", "distmult", "complex", "convkb"])
@pytest.mark.parametrize("opened", [None, 0, 4])
@pytest.mark.parametrize("twice", [False, True], ids=["one batch", "two batches"])
def test_a_model_with_large_tables_trains_as_with_small_ones(
    divided: bool, name: str, opened: int | None, twice: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = torch.randint(9, (20, 3), generator=torch.Generator().manual_seed(0)) % torch.tensor(
        [9, 2, 9]
    )
    found = []
    for dense in (1 << 30, 0):
        monkeypatch.setattr(Table, "dense_bytes", dense)
        own = {"filters": 3} if name == "convkb" else {}
        components = Components(4, 2) if divided else None
        model = KnowledgeModel(name, 8, components, own, seed=1)
        model.grow(9, 2)
        assert name == "convkb" or model.fast_batch() is not None
        if opened is not None:
            model.entities.restrict(torch.arange(opened * model.count))
        sampler = NegativeSampler(known, 9, 2, torch.Generator().manual_seed(3))
        objective = LinkObjective(sampler, make_loss("selfadversarial", 4.0, 1.0), 4)
        optimiser = RowAdam(model.tables().values(), list(model.parameters()), lr=0.02)
        for _ in range(3):
            loss = objective(model, known, torch.ones(20))
            if twice:
                loss = loss + objective(model, known[:5], torch.ones(5))
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        found.append({n: table.rows.clone() for n, table in model.tables().items()})
    for table, values in found[0].items():
        torch.testing.assert_close(found[1][table], values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["transe", "distmult", "convkb"])
def test_short_rows_are_ranked_as_the_numbers_that_they_are(name: str) -> None:
    own = {"filters": 3} if name == "convkb" else {}
    short = KnowledgeModel(name, 8, options=own, seed=1, precision="bfloat16")
    long = KnowledgeModel(name, 8, options=own, seed=1)
    for model in (short, long):
        model.grow(50, 2)
    long.entities.rows.copy_(short.entities.rows)
    asked = torch.tensor([[0, 1, 7], [3, 0, 9], [49, 1, 0]])
    for bound in (1 << 30, 100):
        ranked = [Ranker(asked, 2, bound).rank(model, asked, range(50)) for model in (short, long)]
        assert torch.equal(ranked[0].realistic, ranked[1].realistic)


PART = [(f"e{i}", f"r{i % 2}", f"e{(3 * i + 1) % 20}") for i in range(20)]


def test_short_rows_are_saved_and_loaded_bit_for_bit(tmp_path: Path) -> None:
    own = {"dim": 8, "precision": "bfloat16", "optimizer": "rowwise", "epochs": 3}
    learner = Learner("transe", "fresh", device="cpu", **own)
    learner.learn(PART[:15])
    learner.save(tmp_path / "run")
    reader = Learner.load(tmp_path / "run", device="cpu")
    learner.learn(PART[15:])
    learner.save(tmp_path / "run")
    reader.refresh()
    for each in (reader, Learner.load(tmp_path / "run", device="cpu")):
        mine, theirs = (x.trainer.model.entities.snapshot() for x in (learner, each))
        assert mine["rows"].dtype == torch.bfloat16 and mine.keys() == theirs.keys()
        assert all(torch.equal(values, theirs[name]) for name, values in mine.items())
        asked = [x.predict(head="e1", relation="r1", k=3) for x in (learner, each)]
        assert asked[0] == asked[1]


def test_gem_says_that_it_needs_gradients_of_whole_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "dense_bytes", 64)
    learner = Learner("transe", "gem", device="cpu", dim=8, epochs=2)
    learner.learn(PART[:15])
    with pytest.raises(UserError, match="gem compares the gradients of whole tables"):
        learner.learn(PART[15:])


def test_what_does_not_fit_is_refused_with_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = Learner("transe", "fresh", device="cpu", dim=1000)
    monkeypatch.setattr("dicgrl.common.devices.free_memory", lambda _: 100_000)
    with pytest.raises(UserError, match="GB are free; with optimizer=rowwise and precision"):
        learner.learn(PART)

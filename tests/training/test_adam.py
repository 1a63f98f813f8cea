from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from dicgrl.models import Table
from dicgrl.training import RowAdam

WIDTH = 3
Step = tuple[list[int], Tensor]  # ids, with repeats, and a gradient for each


def made(shape: tuple[int, ...], seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def table_of(rows: Tensor) -> Table:
    table = Table(WIDTH, dtype=rows.dtype)
    table.grow(rows)
    return table


def run(optimiser: RowAdam, step: Step) -> None:
    ids, gradients = step
    optimiser.tables[0].accumulate(torch.tensor(ids), gradients)
    optimiser.step()


def reference(rows: Tensor, steps: list[Step], lr: float, decay: float) -> Tensor:
    """Torch's Adam with each row a parameter of its own, stepped only when it is touched."""
    results = []
    for number, start in enumerate(rows):
        parameter = nn.Parameter(start.clone())
        adam = torch.optim.Adam([parameter], lr=lr, weight_decay=decay)
        for ids, gradients in steps:
            if number in ids:
                parameter.grad = sum(  # type: ignore[assignment]
                    (g for i, g in zip(ids, gradients, strict=True) if i == number),
                    torch.zeros(WIDTH, dtype=rows.dtype),
                )
                adam.step()
        results.append(parameter.detach())
    return torch.stack(results)


def steps_of(lists: list[list[int]], seed: int, dtype: torch.dtype = torch.float64) -> list[Step]:
    return [(ids, made((len(ids), WIDTH), seed + i, dtype)) for i, ids in enumerate(lists)]


@pytest.mark.parametrize("untouched", [0, 20], ids=["dense branch", "sparse branch"])
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("repeats", [1, 2])
def test_rows_touched_in_every_step_move_as_under_dense_adam(
    untouched: int, decay: float, repeats: int
) -> None:
    rows = made((4 + untouched, WIDTH), 1)
    table = table_of(rows)
    optimiser = RowAdam([table], lr=0.05, weight_decay=decay)
    dense = nn.Parameter(rows[:4].clone())
    adam = torch.optim.Adam([dense], lr=0.05, weight_decay=decay)
    for ids, gradients in steps_of([[0, 1, 2, 3] * repeats] * 12, 5):
        run(optimiser, (ids, gradients))
        dense.grad = gradients.view(repeats, 4, WIDTH).sum(0)
        adam.step()
        torch.testing.assert_close(table.rows[:4], dense.detach(), rtol=1e-12, atol=1e-13)
    assert torch.equal(table.rows[4:], rows[4:])


@pytest.mark.parametrize("untouched", [0, 9])
def test_single_precision_keeps_its_digits_from_the_first_step(untouched: int) -> None:
    rows = torch.zeros(4 + untouched, WIDTH)
    table = table_of(rows)
    optimiser = RowAdam([table], lr=1.0)
    gradients = made((4, WIDTH), 3, torch.float32)
    for count in range(1, 4):
        run(optimiser, ([0, 1, 2, 3], gradients))
        # A gradient that stays the same moves a weight by the learning rate.
        expected = -count * gradients.sign()
        torch.testing.assert_close(table.rows[:4], expected, rtol=2e-6, atol=0)


id_lists = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9), min_size=1, max_size=8)


@given(id_lists, st.sampled_from([0.0, 0.1]), st.integers(0, 99))
def test_a_row_moves_as_if_only_its_own_steps_existed(
    lists: list[list[int]], decay: float, seed: int
) -> None:
    rows = made((6, WIDTH), seed)
    table = table_of(rows)
    optimiser = RowAdam([table], lr=0.05, weight_decay=decay)
    steps = steps_of(lists, seed + 1)
    for ids, gradients in steps:
        before = table.snapshot()
        run(optimiser, (ids, gradients))
        rest = [i for i in range(6) if i not in ids]
        after = table.snapshot()
        for name in before:
            assert torch.equal(after[name][rest], before[name][rest])
        assert not table.gradient.any() and table.touched() is None
    expected = reference(rows, steps, 0.05, decay)
    torch.testing.assert_close(table.rows, expected, rtol=1e-11, atol=1e-12)


@given(id_lists, id_lists, st.integers(0, 99))
def test_old_rows_go_on_after_growth_as_if_nothing_had_happened(
    first: list[list[int]], second: list[list[int]], seed: int
) -> None:
    rows = made((6, WIDTH), seed)
    grown, plain = table_of(rows), table_of(rows)
    steps = steps_of(first + second, seed + 1)
    for table in (grown, plain):
        optimiser = RowAdam([table], lr=0.05)
        for number, step in enumerate(steps):
            if table is grown and number == len(first):
                table.grow(made((7, WIDTH), 77))
            run(optimiser, step)
    torch.testing.assert_close(grown.rows[:6], plain.rows, rtol=1e-12, atol=1e-13)
    assert torch.equal(grown.rows[6:], made((7, WIDTH), 77))


def test_a_new_row_starts_like_one_of_a_new_model() -> None:
    table = table_of(made((2, WIDTH), 0))
    optimiser = RowAdam([table], lr=0.05)
    for step in steps_of([[0, 1]] * 5, 1):
        run(optimiser, step)
    table.grow(made((1, WIDTH), 9))
    late = steps_of([[2], [2, 0], [2]], 20)
    for step in late:
        run(optimiser, step)
    mine = [([0], g[:1]) for _, g in late]  # the new row alone, from its first step
    expected = reference(made((1, WIDTH), 9), mine, 0.05, 0.0)
    torch.testing.assert_close(table.rows[2:], expected, rtol=1e-12, atol=1e-13)


def test_the_learning_rate_may_change_between_steps() -> None:
    rows = made((3, WIDTH), 0)
    table, dense = table_of(rows), nn.Parameter(rows.clone())
    optimiser, adam = RowAdam([table], lr=0.1), torch.optim.Adam([dense], lr=0.1)
    for number, (ids, gradients) in enumerate(steps_of([[0, 1, 2]] * 6, 1)):
        optimiser.lr = adam.param_groups[0]["lr"] = 0.1 / (1 + number)
        run(optimiser, (ids, gradients))
        dense.grad = gradients
        adam.step()
    torch.testing.assert_close(table.rows, dense.detach(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("clip", [0.0, 0.5])
@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_dense_parameters_move_as_under_torch_adam(clip: float, rate: float) -> None:
    mine, theirs = nn.Parameter(made((4,), 0)), nn.Parameter(made((4,), 0))
    optimiser = RowAdam([], [mine], lr=0.1, weight_decay=0.2, clip=clip, dense_rate=rate)
    adam = torch.optim.Adam([theirs], lr=0.1, weight_decay=0.2)
    for seed in range(5):
        optimiser.lr = 0.1 * 0.5**seed
        adam.param_groups[0]["lr"] = rate * optimiser.lr
        gradient = made((4,), seed) * 3
        mine.grad = gradient.clone()
        norm = float(gradient.norm())
        theirs.grad = gradient * min(1.0, clip / norm) if clip else gradient
        optimiser.step()
        adam.step()
        assert mine.grad is None or not mine.grad.any()
    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_a_table_without_a_gradient_stays() -> None:
    first, second = table_of(made((3, WIDTH), 0)), table_of(made((3, WIDTH), 1))
    optimiser = RowAdam([first, second], lr=0.1, weight_decay=0.5)
    run(optimiser, ([0], made((1, WIDTH), 2)))
    assert torch.equal(second.rows, made((3, WIDTH), 1))


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_with_every_row_it_is_adam_over_the_whole_matrix(decay: float) -> None:
    rows = made((6, WIDTH), 0)
    table, dense = table_of(rows), nn.Parameter(rows.clone())
    optimiser = RowAdam([table], lr=0.1, weight_decay=decay, every_row=True)
    adam = torch.optim.Adam([dense], lr=0.1, weight_decay=decay)
    for ids, gradients in steps_of([[0, 1, 1], [2], [0], [4, 4, 4]], 1):
        run(optimiser, (ids, gradients))
        dense.grad = torch.zeros_like(rows).index_add(0, torch.tensor(ids), gradients)
        adam.step()
        assert not table.gradient.any() and table.touched() is None
    torch.testing.assert_close(table.rows, dense.detach(), rtol=1e-12, atol=1e-13)


def test_with_every_row_those_that_may_not_change_rest() -> None:
    rows = made((4, WIDTH), 0)
    table = table_of(rows)
    table.restrict(torch.tensor([0, 2]))
    optimiser = RowAdam([table], lr=0.1, weight_decay=0.5, every_row=True)
    run(optimiser, ([0, 1], made((2, WIDTH), 1)))
    changed = (table.rows != rows).any(1)
    assert changed.tolist() == [True, False, True, False]


def test_an_optimiser_that_begins_anew_moves_rows_as_new_ones() -> None:
    step = ([0, 1], made((2, WIDTH), 1))
    used, fresh = table_of(made((2, WIDTH), 0)), table_of(made((2, WIDTH), 0))
    run(RowAdam([used], lr=0.1), step)
    start = used.rows.clone()
    run(RowAdam([used], lr=0.1, anew=True), step)
    run(RowAdam([fresh], lr=0.1), step)
    torch.testing.assert_close(used.rows - start, fresh.rows - made((2, WIDTH), 0))


@pytest.mark.parametrize("clip", [0.5, 1e3])
@pytest.mark.parametrize("dense_bytes", [1 << 30, 0], ids=["small", "large"])
def test_the_norm_that_is_clipped_is_that_of_tables_and_dense_parameters(
    clip: float, dense_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Table, "dense_bytes", dense_bytes)
    rows, weights = made((4, WIDTH), 0, torch.float32), made((5,), 1, torch.float32)
    table, mine = table_of(rows), nn.Parameter(weights.clone())
    table.restrict(torch.tensor([0, 1, 2]))  # what may not change has no say
    idle = table_of(rows)
    idle.restrict(torch.tensor([1]))
    theirs = [nn.Parameter(rows[:3].clone()), nn.Parameter(weights.clone())]
    optimiser = RowAdam([table, idle], [mine], lr=0.1, clip=clip)
    adam = torch.optim.Adam(theirs, lr=0.1)
    for seed in range(4):  # Adam does not see one scale, but its changes
        gradients = made((4, WIDTH), 2 + seed, torch.float32) * 10.0**seed
        mine.grad = made((5,), 9 + seed, torch.float32)
        theirs[0].grad, theirs[1].grad = gradients[:3].clone(), mine.grad.clone()
        nn.utils.clip_grad_norm_(theirs, clip)
        adam.step()
        run(optimiser, ([3, 0, 1, 2], gradients[[3, 0, 1, 2]]))
    torch.testing.assert_close(table.rows[:3], theirs[0].detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(mine.detach(), theirs[1].detach(), rtol=1e-5, atol=1e-6)
    assert torch.equal(table.rows[3], rows[3])


@given(id_lists, st.sampled_from([0.0, 0.1]), st.integers(0, 99))
def test_adagrad_moves_rows_as_torch_does(lists: list[list[int]], decay: float, seed: int) -> None:
    """What is not touched in a step has no gradient, and torch would not move it either."""
    rows = made((6, WIDTH), seed)
    table = table_of(rows)
    optimiser = RowAdam([table], lr=0.1, weight_decay=decay, rule="adagrad")
    dense = [nn.Parameter(row.clone()) for row in rows]
    adagrad = torch.optim.Adagrad(dense, lr=0.1, weight_decay=decay, eps=1e-8)
    for ids, gradients in steps_of(lists, seed + 1):
        run(optimiser, (ids, gradients))
        total = torch.zeros_like(rows).index_add(0, torch.tensor(ids), gradients)
        for number, parameter in enumerate(dense):
            parameter.grad = total[number] if number in ids else None
        adagrad.step()
    expected = torch.stack([parameter.detach() for parameter in dense])
    torch.testing.assert_close(table.rows, expected, rtol=1e-11, atol=1e-12)


def test_another_rule_begins_with_a_state_of_its_own() -> None:
    step = ([0, 1], made((2, WIDTH), 1))
    used, new = table_of(made((2, WIDTH), 0)), table_of(made((2, WIDTH), 0))
    run(RowAdam([used], lr=0.0), step)
    for table in (used, new):
        run(RowAdam([table], lr=0.1, rule="adagrad"), step)
    assert torch.equal(used.rows, new.rows)
    assert set(used.snapshot()) == {"rows", "total", "steps"}

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from dicgrl.models import Table
from dicgrl.models.copies import RowCopies
from dicgrl.training import RowAdam

WIDTH = 3


def made(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed))


def integers(shape: tuple[int, ...], seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-4, 5, shape, generator=generator).float()


def table_of(rows: Tensor) -> Table:
    table = Table(WIDTH)
    table.grow(rows)
    return table


@given(st.lists(st.integers(0, 9), min_size=2, max_size=7), st.integers(0, 99))
def test_growth_leaves_old_rows_and_their_state_bit_for_bit(sizes: list[int], seed: int) -> None:
    table = Table(WIDTH)
    optimiser = RowAdam([table], lr=0.1)
    generator = torch.Generator().manual_seed(seed)
    for size in sizes:
        before = table.snapshot()
        old = len(table)
        rows = torch.randn(size, WIDTH, generator=generator)
        table.grow(rows)
        assert len(table) == old + size
        assert torch.equal(table.rows[old:], rows)
        for name, values in before.items():
            buffer = table.rows if name == "rows" else table.state(name, values.shape[1])
            assert torch.equal(buffer[:old], values)
            assert name == "rows" or not buffer[old:].any()
        assert not table.gradient.any()
        if len(table):
            ids = torch.randint(len(table), (4,), generator=generator)
            table.accumulate(ids, torch.randn(4, WIDTH, generator=generator))
            optimiser.step()


def test_growth_in_the_middle_of_a_step_keeps_the_gradient() -> None:
    table = table_of(made(2))
    table.gather(torch.tensor([1, 1])).sum().backward()
    table.grow(made(5, seed=1))
    assert table.gradient.tolist() == [[0.0] * 3, [2.0] * 3] + [[0.0] * 3] * 5


def test_growing_does_not_share_memory_with_what_was_given() -> None:
    rows = made(3)
    table = table_of(rows)
    rows.zero_()
    assert torch.equal(table.rows, made(3))


id_lists = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=9), min_size=1, max_size=4)


@given(id_lists, st.integers(0, 99))
def test_gradients_are_those_of_a_dense_embedding(lists: list[list[int]], seed: int) -> None:
    start = integers((7, WIDTH), seed)
    table = table_of(start)
    dense = nn.Embedding.from_pretrained(start.clone(), freeze=False)

    def loss(read: object) -> Tensor:
        total = torch.zeros(())
        for i, ids in enumerate(lists):
            assert callable(read)
            rows = read(torch.tensor(ids))
            total = total + (integers(tuple(rows.shape), seed + i) * rows * rows).sum()
        return total

    loss(table.gather).backward()
    loss(dense).backward()
    assert dense.weight.grad is not None
    assert torch.equal(table.gradient, dense.weight.grad)  # whole numbers: no rounding
    touched = table.touched()
    assert touched is not None
    assert sorted(touched.tolist()) == sorted(i for ids in lists for i in ids)


def test_ids_may_have_any_shape() -> None:
    table = table_of(made(4))
    ids = torch.tensor([[[0, 3]], [[3, 2]]])
    gathered = table.gather(ids)
    assert gathered.shape == (2, 1, 2, WIDTH)
    assert torch.equal(gathered, table.rows[ids])
    gathered[..., 0].sum().backward()
    assert table.gradient[:, 0].tolist() == [1, 0, 1, 2]
    assert not table.gradient[:, 1:].any()


def test_reading_without_gradients_records_nothing() -> None:
    table = table_of(made(4))
    with torch.no_grad():
        assert torch.equal(table.gather(torch.tensor([1])), table.rows[1:2])
    assert table.touched() is None


def test_two_backward_passes_add_up() -> None:
    table = table_of(made(4))
    for _ in range(2):
        table.gather(torch.tensor([1])).sum().backward()
    assert table.gradient[1].tolist() == [2.0] * WIDTH


@pytest.mark.parametrize("ids", [[2], [2, 2, 0], [0, 1, 2, 3, 3], [3] * 9])
def test_clear_leaves_zeros_however_many_rows_were_touched(ids: list[int]) -> None:
    table = table_of(made(4))
    table.gather(torch.tensor(ids)).sum().backward()
    assert table.gradient[ids].all()
    table.clear()
    assert not table.gradient.any()
    assert table.touched() is None
    table.clear()  # nothing to do


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_clear_removes_even_what_is_not_a_number(ids: list[int]) -> None:
    table = table_of(made(5))
    table.accumulate(torch.tensor(ids), torch.full((len(ids), WIDTH), float("nan")))
    table.clear()
    assert torch.equal(table.gradient, torch.zeros(5, WIDTH))


def test_a_snapshot_is_a_copy_and_restore_puts_it_back() -> None:
    table = table_of(made(5))
    optimiser = RowAdam([table], lr=0.1)
    table.accumulate(torch.tensor([0, 2]), made(2, 1))
    optimiser.step()
    kept = table.snapshot()
    copies = {name: values.clone() for name, values in kept.items()}
    assert set(kept) == {"rows", "moment1", "moment2", "steps"}
    for seed in range(3):
        table.accumulate(torch.tensor([0, 1, 4]), made(3, seed))
        optimiser.step()
    table.accumulate(torch.tensor([3]), made(1))
    assert all(torch.equal(kept[name], copies[name]) for name in kept)
    table.restore(kept)
    assert not table.gradient.any() and table.touched() is None
    now = table.snapshot()
    assert all(torch.equal(now[name], copies[name]) for name in kept)


def test_restoring_a_state_from_before_training_forgets_the_moments() -> None:
    table = table_of(made(3))
    kept = table.snapshot()
    table.accumulate(torch.tensor([0, 1, 2]), torch.full((3, WIDTH), float("nan")))
    RowAdam([table], lr=0.1).step()
    table.restore(kept)
    for values in table.snapshot().values():
        assert values.isfinite().all()
    # What follows is as if nothing had happened.
    fresh = table_of(made(3))
    for each in (table, fresh):
        each.accumulate(torch.tensor([1]), made(1, 7))
        RowAdam([each], lr=0.1).step()
    assert torch.equal(table.rows, fresh.rows)


def test_restore_makes_state_that_is_not_there_yet() -> None:
    table = table_of(made(3))
    table.accumulate(torch.tensor([0]), made(1))
    RowAdam([table], lr=0.1).step()
    other = table_of(torch.zeros(3, WIDTH))
    other.restore(table.snapshot())
    mine, theirs = table.snapshot(), other.snapshot()
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_a_state_has_its_own_width_and_is_zero_at_first() -> None:
    table = table_of(made(3))
    assert torch.equal(table.state("count", width=1), torch.zeros(3, 1))
    assert torch.equal(table.state("like"), torch.zeros(3, WIDTH))
    table.state("count")[1] = 5
    table.grow(made(9))
    assert table.state("count").flatten().tolist() == [0, 5] + [0] * 10


# Rows that may not change.

some_ids = st.lists(st.integers(0, 7), unique=True, max_size=8)


@given(some_ids, some_ids, st.lists(st.integers(0, 7), min_size=1, max_size=20))
def test_closed_rows_keep_their_bits_and_open_ones_move_as_ever(
    warm: list[int], open_ids: list[int], touched: list[int]
) -> None:
    """`touched` may be longer than the table: the optimiser then works on whole tables."""
    free, bound = table_of(made(8)), table_of(made(8))
    optimisers = [RowAdam([table], lr=0.1, weight_decay=0.1) for table in (free, bound)]
    for table, optimiser in zip((free, bound), optimisers, strict=True):
        table.gather(torch.tensor(warm, dtype=torch.long)).pow(2).sum().backward()
        optimiser.step()
    before = bound.snapshot()
    bound.restrict(torch.tensor(open_ids, dtype=torch.long))
    mask = bound.pace()
    assert mask is not None and mask.shape == (8, 1)
    assert set(mask[:, 0].nonzero()[:, 0].tolist()) == set(open_ids)
    for table, optimiser in zip((free, bound), optimisers, strict=True):
        table.gather(torch.tensor(touched)).pow(2).sum().backward()
        optimiser.step()
        assert table.touched() is None and not table.gradient.any()
    moved = free.snapshot()
    for name, values in bound.snapshot().items():
        for row in range(8):
            start = before[name][row] if name in before else torch.zeros_like(values[row])
            expected = moved[name][row] if row in open_ids else start
            assert torch.equal(values[row], expected)


def test_opening_again_forgets_what_was_open() -> None:
    table = table_of(made(4))
    assert table.movable is None and table.pace() is None
    for ids in ([0, 2], [1], []):
        table.restrict(torch.tensor(ids, dtype=torch.long))
        mask = table.pace(torch.tensor([0, 1, 2, 2]))
        assert mask is not None
        assert mask[:, 0].tolist() == [i in ids for i in (0, 1, 2, 2)]
    table.restrict(None)
    assert table.movable is None and table.pace() is None


def test_rows_that_grow_while_others_are_closed_wait_to_be_opened() -> None:
    table = table_of(made(3))
    table.restrict(torch.tensor([1]))
    table.grow(made(20, seed=1))
    mask = table.pace()
    assert mask is not None and mask[:, 0].nonzero()[:, 0].tolist() == [1]
    table.restrict(None)
    assert table.pace() is None


def test_what_is_open_is_no_part_of_a_snapshot() -> None:
    table = table_of(made(3))
    table.restrict(torch.tensor([1]))
    assert set(table.snapshot()) == {"rows"}


row_sets = st.lists(some_ids, min_size=1, max_size=5)


@given(row_sets, st.booleans())
def test_copies_put_back_every_row_that_was_ever_open(sets: list[list[int]], at_end: bool) -> None:
    table = table_of(made(8))
    optimiser = RowAdam([table], lr=0.1)
    start = table.snapshot()
    copies = RowCopies(table)
    for ids in sets:
        table.restrict(torch.tensor(ids, dtype=torch.long))
        copies.cover()
        table.gather(torch.arange(8)).pow(2).sum().backward()
        optimiser.step()
    if at_end:
        table.restrict(None)  # the rest was never open and is not copied; nothing happened to it
        copies.cover()
    ids = torch.cat([ids for ids, _ in copies.copies])
    assert len(ids) == len(torch.unique(ids))  # each row once, as it was at first
    copies.restore()
    assert torch.equal(table.rows, start["rows"])
    for name, values in table.snapshot().items():
        assert name in start or not values.any()  # moments are gone as well


def test_copies_taken_anew_put_back_the_state_of_that_time() -> None:
    table = table_of(made(4))
    optimiser = RowAdam([table], lr=0.1)
    copies = RowCopies(table)

    def step(ids: list[int]) -> None:
        table.restrict(torch.tensor(ids))
        copies.cover()
        table.gather(torch.arange(4)).pow(2).sum().backward()
        optimiser.step()

    step([0])
    step([1])
    copies.retake()  # row 0 is closed now and safe as it is
    good = table.snapshot()
    step([1, 2])
    step([0])
    copies.restore()
    assert all(torch.equal(table.snapshot()[name], values) for name, values in good.items())


def test_copies_of_a_table_that_is_all_open_are_no_views_of_it() -> None:
    table = table_of(made(4))
    optimiser = RowAdam([table], lr=0.1)

    def step() -> None:
        table.gather(torch.arange(4)).pow(2).sum().backward()
        optimiser.step()

    step()
    copies, good = RowCopies(table), table.snapshot()
    copies.cover()
    step()
    table.restrict(torch.tensor([2]))
    copies.cover()  # it was open before
    step()
    assert [ids.tolist() for ids, _ in copies.copies if len(ids)] == [[0, 1, 2, 3]]
    copies.restore()
    assert all(torch.equal(table.snapshot()[name], values) for name, values in good.items())


def test_a_row_moves_at_its_pace() -> None:
    """Adam's steps, each scaled: the moments are those of a row that may move freely."""
    free, paced = table_of(made(3)), table_of(made(3))
    start = free.rows.clone()
    paced.restrict(torch.tensor([0, 2]), torch.tensor([1.0, 0.25]))
    for table in (free, paced):
        optimiser = RowAdam([table], lr=0.1)
        table.gather(torch.tensor([0, 1, 2])).pow(2).sum().backward()
        optimiser.step()
    moved = free.rows - start
    torch.testing.assert_close(paced.rows - start, moved * torch.tensor([[1.0], [0.0], [0.25]]))
    assert torch.equal(paced.state("moment1")[2], free.state("moment1")[2])


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_what_a_table_says_it_will_gain_it_gains(sizes: list[int]) -> None:
    table = Table(3)
    room = 0
    for seed, size in enumerate(sizes):
        said = table.gains(size)
        table.grow(made(size, seed=seed))
        assert len(table._buffers["rows"]) == room + said
        room += said
        assert table.gains(0) == 0


@given(st.lists(st.sampled_from([1.0, 0.5, 0.25, 0.125]), min_size=1, max_size=8), st.booleans())
def test_a_slowed_row_moves_its_share_of_the_way(paces: list[float], some: bool) -> None:
    count = len(paces)

    def moved(slow: bool, steps: int = 1) -> Tensor:
        table = table_of(torch.zeros(count, WIDTH))
        optimiser = RowAdam([table], lr=0.1)
        if slow:
            table.slow(torch.tensor(paces))
            assert table.movable is None and not table.frozen
        for seed in range(steps):
            touched = torch.arange(0, count, 2 if some else 1)
            table.accumulate(touched, made(len(touched), seed))
            optimiser.step()
        return table.rows

    share = torch.tensor(paces)[:, None]
    assert torch.equal(moved(slow=True), share * moved(slow=False))  # powers of 2: no rounding
    torch.testing.assert_close(moved(slow=True, steps=5), share * moved(slow=False, steps=5))


@pytest.mark.parametrize("then", [None, [1, 2]])
def test_restricting_forgets_what_was_slowed(then: list[int] | None) -> None:
    def step(table: Table) -> Tensor:
        before = table.rows.clone()
        table.accumulate(torch.arange(4), torch.ones(4, WIDTH))
        RowAdam([table], lr=0.1).step()
        return table.rows - before

    table, plain = table_of(made(4)), table_of(made(4))
    table.slow(torch.tensor([0.5, 0.5, 1.0, 1.0]))
    assert table.pace() is not None and "pace" not in table.snapshot()
    table.restrict(None if then is None else torch.tensor(then))
    assert (table.pace() is None) == (then is None)
    moved, expected = step(table), step(plain)
    for row in range(4):
        closed = then is not None and row not in then
        assert torch.equal(moved[row], torch.zeros(WIDTH) if closed else expected[row])
    table.restrict(None)
    assert table.pace() is None


def test_slowing_opens_what_was_closed() -> None:
    table = table_of(torch.zeros(3, WIDTH))
    table.restrict(torch.tensor([2]))
    table.slow(torch.tensor([0.5, 1.0, 1.0]))
    table.accumulate(torch.arange(3), torch.ones(3, WIDTH))
    RowAdam([table], lr=0.1).step()
    assert torch.equal(2 * table.rows[0], table.rows[1]) and torch.equal(*table.rows[1:])
    assert table.rows[1].abs().min() > 0.09


@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=8, unique=True),
    st.integers(0, 8),
    st.lists(st.lists(st.integers(0, 7), max_size=5), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.5]),
)
def test_rows_that_rest_move_less_or_not_at_all_unless_a_step_wakes_them(
    open_ids: list[int], resting: int, steps: list[list[int]], share: float
) -> None:
    """The reference opens rows anew before each step, each at the pace that it has in it."""
    table, expected = table_of(made(8)), table_of(made(8))
    first, second = (RowAdam([each], lr=0.1) for each in (table, expected))
    paces = {row: 0.1 * (number + 1) for number, row in enumerate(open_ids)}
    table.restrict(torch.tensor(open_ids), torch.tensor(list(paces.values())))
    rest = open_ids[:resting]
    table.rest(torch.tensor(rest, dtype=torch.long), share)
    for woken in steps:
        chosen = [row for row in woken if row in paces]
        table.wake(torch.tensor(chosen, dtype=torch.long))
        now = {
            row: paces[row] if row in chosen or row not in rest else share * paces[row]
            for row in open_ids
        }
        moving = {row: pace for row, pace in now.items() if pace}
        expected.restrict(
            torch.tensor(list(moving), dtype=torch.long), torch.tensor(list(moving.values()))
        )
        for each, optimiser in ((table, first), (expected, second)):
            each.gather(torch.arange(8)).pow(2).sum().backward()
            optimiser.step()
        assert torch.equal(table.rows, expected.rows)
        assert torch.equal(table.state("steps", 1), expected.state("steps", 1))
    table.restrict(None)
    table.wake(torch.tensor([0]))  # nothing rests any more
    assert table.pace() is None

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.common.growing import GrowingTensor


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 3))
def test_it_holds_what_was_appended_in_order(sizes: list[int], width: int) -> None:
    pieces = [torch.rand(size, width) for size in sizes]
    rows = GrowingTensor("cpu")
    for number, piece in enumerate(pieces, 1):
        rows.append(piece)
        assert torch.equal(rows.view(), torch.cat(pieces[:number]))
        assert len(rows) == sum(sizes[:number])


def test_small_parts_do_not_copy_what_is_there() -> None:
    rows = GrowingTensor("cpu")
    rows.append(torch.zeros(1000))
    moved = set()
    for _ in range(900):
        rows.append(torch.zeros(1))
        moved.add(rows.view().data_ptr())
    assert len(moved) == 1  # its room was doubled once, with the first of them

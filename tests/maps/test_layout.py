"""A map keeps neighbourhoods, and old points stay where they are while vectors grow."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from dicgrl.errors import UserError
from dicgrl.maps import layout, movement, spread
from dicgrl.maps.movement import aligned, kept


def groups(count: int, each: int, seed: int = 0, dim: int = 12) -> tuple[Tensor, Tensor]:
    """Vectors around `count` centres, and which centre each has."""
    random = torch.Generator().manual_seed(seed)
    centres = torch.randn(count, dim, generator=random)
    group = torch.arange(count * each) % count
    return centres[group] + 0.2 * torch.randn(count * each, dim, generator=random), group


def test_a_first_map_keeps_groups_together() -> None:
    vectors, group = groups(8, 40)
    points = layout(vectors)
    found = kept(vectors, points, k=10)
    assert found.trust > 0.95
    assert found.recall > 0.3
    centres = np.stack([np.median(points[group.numpy() == i], axis=0) for i in range(8)])
    own = np.linalg.norm(points[:, None] - centres[None], axis=2).argmin(1)
    assert (own == group.numpy()).mean() > 0.95


def test_the_same_seed_gives_the_same_map() -> None:
    vectors, _ = groups(4, 30)
    assert np.array_equal(layout(vectors, seed=3), layout(vectors, seed=3))
    assert not np.array_equal(layout(vectors, seed=3), layout(vectors, seed=4))


def test_old_points_stay_and_newcomers_join_their_group() -> None:
    vectors, group = groups(6, 50)
    before = layout(vectors[:240])
    after = layout(vectors, before, vectors[:240])
    moved = movement(before, after)
    assert moved.points == 240
    assert moved.median < 0.05  # of the spread
    fresh = layout(vectors)
    anew = movement(before, aligned(before, fresh))
    assert moved.median < anew.median / 3
    centres = np.stack([np.median(after[:240][group[:240].numpy() == i], axis=0) for i in range(6)])
    own = np.linalg.norm(after[240:, None] - centres[None], axis=2).argmin(1)
    assert (own == group[240:].numpy()).mean() > 0.95


def test_who_moved_to_another_group_moves_on_the_map() -> None:
    vectors, group = groups(6, 40)
    before = layout(vectors)
    later = vectors.clone()
    later[0] = vectors[group == 3][5] + 0.01
    after = layout(later, before, vectors)
    apart = np.linalg.norm(after - before, axis=1)
    home = np.median(after[group.numpy() == 3], axis=0)
    assert apart[0] > 5 * np.median(apart)
    assert np.linalg.norm(after[0] - home) < np.linalg.norm(before[0] - home) / 3


def test_points_stay_exactly_where_they_were_if_no_vector_moved() -> None:
    vectors, _ = groups(6, 40)
    before = layout(vectors[:200])
    after = layout(vectors, before, vectors[:200])
    assert np.array_equal(after[:200], before)
    assert np.isfinite(after[200:]).all()


def test_many_small_changes_do_not_carry_a_map_away() -> None:
    vectors, _ = groups(6, 40)
    first = before = layout(vectors)
    random = torch.Generator().manual_seed(1)
    apart = torch.cdist(vectors, vectors).kthvalue(16, dim=1).values[:, None]
    for _ in range(6):
        step = torch.randn(vectors.shape, generator=random)
        later = vectors + 0.005 * apart * step / step.norm(dim=1, keepdim=True)
        before = layout(later, before, vectors)
        vectors = later
    held = movement(first, before).median
    again = first
    for _ in range(6):
        again = layout(vectors, again)  # as if nobody knew how far vectors moved
    assert held < movement(first, again).median / 2


def test_stiffer_springs_hold_points_more() -> None:
    vectors, _ = groups(6, 40)
    before = layout(vectors[:200])
    medians = [
        movement(before, layout(vectors, before, hold=hold)).median for hold in (0.003, 0.03, 0.3)
    ]
    assert medians == sorted(medians, reverse=True)


def test_what_is_absent_has_no_place_and_may_come_back() -> None:
    vectors, _ = groups(3, 20)
    before = layout(vectors, absent=np.array([4, 7]))
    assert np.flatnonzero(np.isnan(before[:, 0])).tolist() == [4, 7]
    after = layout(vectors, before, vectors, absent=np.array([4]))
    assert np.flatnonzero(np.isnan(after[:, 0])).tolist() == [4]
    assert movement(before, after).points == 58


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_few_vectors_have_places(count: int) -> None:
    points = layout(torch.randn(count, 3, generator=torch.Generator().manual_seed(0)))
    assert points.shape == (count, 2)
    assert np.isfinite(points).all()


def test_equal_vectors_and_those_without_a_direction_are_two_groups() -> None:
    points = layout(torch.cat([torch.zeros(30, 4), torch.ones(30, 4)]))
    assert np.isfinite(points).all()
    middle = [points[:30].mean(0), points[30:].mean(0)]
    own = np.linalg.norm(points[:, None] - np.stack(middle), axis=2).argmin(1)
    assert own.tolist() == [0] * 30 + [1] * 30


def test_vectors_in_pieces_are_flattened() -> None:
    vectors, _ = groups(3, 20)
    assert np.array_equal(layout(vectors), layout(vectors.view(60, 3, 4)))


def test_a_map_of_more_rows_is_refused() -> None:
    vectors, _ = groups(3, 20)
    with pytest.raises(UserError, match="the earlier map has 60 rows, and these are 30"):
        layout(vectors[:30], layout(vectors))


def test_spread_is_that_of_points_that_are_there() -> None:
    points = np.array([[3.0, 0.0], [-3.0, 0.0], [np.nan, np.nan]], dtype=np.float32)
    assert spread(points) == pytest.approx(3.0)
    assert spread(points[2:]) == 1.0

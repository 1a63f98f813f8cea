"""Forces and neighbours against the slow way, all with all."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from dicgrl.maps.forces import Edges, pull, push
from dicgrl.maps.movement import aligned, kept
from dicgrl.maps.neighbours import nearest


@pytest.mark.parametrize(("scale", "error"), [(1e-3, 0.25), (1.0, 0.05), (15.0, 0.05)])
def test_push_is_that_of_all_on_all(scale: float, error: float) -> None:
    points = np.random.default_rng(0).normal(size=(400, 2)) * scale
    apart = points[:, None] - points[None]
    near = 1.0 / (1.0 + (apart**2).sum(2))
    force, mass = (near[:, :, None] ** 2 * apart).sum(1), near.sum(1) - 1.0
    found = push(points.astype(np.float32))
    assert np.sqrt(((found.force - force) ** 2).mean()) < error * np.sqrt((force**2).mean())
    assert found.mass.sum() == pytest.approx(mass.sum(), rel=0.01)


def test_push_adds_up_to_nothing() -> None:
    points = np.random.default_rng(1).normal(size=(300, 2)).astype(np.float32) * 8
    force = push(points).force
    assert np.abs(force.sum(0)).max() < 1e-3 * np.abs(force).sum()


def test_a_map_of_any_width_has_a_bounded_grid() -> None:
    points = np.array([[0.0, 0.0], [1e5, 1e5], [1e5, 1e5 + 1]], dtype=np.float32)
    assert np.isfinite(push(points).force).all()


def test_pull_is_that_of_each_edge() -> None:
    random = np.random.default_rng(0)
    points = random.normal(size=(40, 2)).astype(np.float32)
    dense = random.random((40, 40)) * (random.random((40, 40)) < 0.2)
    apart = points[:, None] - points[None]
    edges = Edges.of(csr_array(dense.astype(np.float32)))
    expected = (dense[:, :, None] * apart / (1.0 + (apart**2).sum(2))[:, :, None]).sum(1)
    assert pull(points, edges) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("count", [200, 3000, 3001])
def test_nearest_are_those_of_all_distances(count: int) -> None:
    vectors = torch.randn(count, 5, generator=torch.Generator().manual_seed(0))
    some = torch.tensor([3, 77, 199])
    found = nearest(vectors, some, 6)
    away = torch.cdist(vectors[some], vectors)
    away[torch.arange(3), some] = torch.inf
    expected = away.topk(6, largest=False)
    assert np.array_equal(found.ids, expected.indices.numpy())
    assert found.distances == pytest.approx(expected.values.numpy(), abs=1e-3)


def test_all_others_are_nearest_where_there_are_few() -> None:
    assert nearest(torch.eye(3), torch.arange(3), 10).ids.shape == (3, 2)


def test_a_map_that_is_the_vectors_keeps_all_neighbourhoods() -> None:
    angle = torch.linspace(0.1, 1.7, 50).square()
    vectors = torch.stack([angle.cos(), angle.sin()], dim=1)
    assert kept(vectors, vectors.numpy(), k=5) == (1.0, 1.0)
    anyhow = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    assert kept(vectors, anyhow, k=5).trust < 0.7


def test_trust_is_that_of_the_definition() -> None:
    random = torch.Generator().manual_seed(0)
    vectors = torch.nn.functional.normalize(torch.randn(30, 4, generator=random), dim=1)
    points = vectors[:, :2].numpy()
    k, count = 4, 30
    penalty = 0
    for i in range(count):
        true, shown = _sorted(vectors, i), _sorted(vectors[:, :2], i)
        penalty += sum(max(0, true.index(j) + 1 - k) for j in shown[:k])
    expected = 1 - 2 * penalty / (count * k * (2 * count - 3 * k - 1))
    assert kept(vectors, points, k).trust == pytest.approx(expected)


def test_a_turned_map_is_aligned() -> None:
    points = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    turned = points @ np.array([[0.0, -3.0], [3.0, 0.0]], dtype=np.float32) + 7
    assert aligned(points[:20], turned) == pytest.approx(points, abs=1e-4)


def _sorted(rows: torch.Tensor, i: int) -> list[int]:
    away = (rows - rows[i]).square().sum(1).tolist()
    return sorted((j for j in range(len(rows)) if j != i), key=lambda j: away[j])

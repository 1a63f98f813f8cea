"""How far points of a map moved, and how well it keeps neighbourhoods."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import orthogonal_procrustes
from torch import Tensor

from dicgrl.graph.arrays import IntArray
from dicgrl.maps.forces import Floats
from dicgrl.maps.layout import NEIGHBOURS, directions
from dicgrl.maps.neighbours import nearest

_ROWS = 2000  # whose neighbourhoods are looked at


class Movement(NamedTuple):
    """How far points moved from one map to the next, in units of the map's spread.

    Attributes:
        points: How many points both have.
        median: Half of them moved no farther.
        most: 95 % of them moved no farther.
    """

    points: int
    median: float
    most: float


class Kept(NamedTuple):
    """How well a map keeps neighbourhoods.

    Attributes:
        recall: The share of a row's nearest neighbours that are nearest on the map.
        trust: Trustworthiness (Venna, Kaski, 2001): 1 less a penalty for neighbours on the map that
            are far away in truth; about 0.5 for a map by chance.
    """

    recall: float
    trust: float


def spread(points: Floats) -> float:
    """How far points are from their centre, as the root of the mean square; 1 for one place."""
    there = points[~np.isnan(points[:, 0])].astype(np.float64)
    if not len(there):
        return 1.0
    return float(np.sqrt(((there - there.mean(0)) ** 2).sum(1).mean())) or 1.0


def movement(before: Floats, after: Floats) -> Movement:
    """How far points moved from one map to the next, whose rows begin alike."""
    known = after[: len(before)]
    apart = np.linalg.norm(known.astype(np.float64) - before, axis=1)
    apart = apart[~np.isnan(apart)] / spread(after)
    if not len(apart):
        return Movement(0, 0.0, 0.0)
    return Movement(len(apart), float(np.median(apart)), float(np.quantile(apart, 0.95)))


def aligned(before: Floats, after: Floats) -> Floats:
    """A map turned, mirrored and shifted to lie on an earlier one, and scaled to its size."""
    both = ~np.isnan(before[:, 0]) & ~np.isnan(after[: len(before), 0])
    target, source = before[both].astype(np.float64), after[: len(before)][both].astype(np.float64)
    middle, centre = target.mean(0), source.mean(0)
    turn, _ = orthogonal_procrustes(source - centre, target - middle)
    scale = np.sqrt(((target - middle) ** 2).sum() / max(((source - centre) ** 2).sum(), 1e-12))
    return np.asarray((after - centre) @ turn * scale + middle, dtype=np.float32)


def kept(vectors: Tensor, points: Floats, k: int = NEIGHBOURS, *, seed: int = 0) -> Kept:
    """How well a map keeps the neighbourhoods of vectors, on a sample where there are many.

    Args:
        vectors: A row each, [N, ...].
        points: Their map, [N, 2]; rows without a place are left out.
        k: How many neighbours count.
        seed: Seed of the sample.
    """
    there = np.flatnonzero(~np.isnan(points[:, 0]))
    rows, flat = directions(vectors)[torch.from_numpy(there)], torch.from_numpy(points[there])
    count = len(there)
    some = np.random.default_rng(seed).permutation(count)[:_ROWS]
    chosen = torch.from_numpy(np.sort(some))
    true, shown = nearest(rows, chosen, k).ids, nearest(flat, chosen, k).ids
    shared = sum(len(np.intersect1d(a, b)) for a, b in zip(true, shown, strict=True))
    ranks = _ranks(rows, chosen, shown)
    penalty = np.maximum(ranks - k, 0).sum()
    worst = len(chosen) * k * (2 * count - 3 * k - 1) / 2
    return Kept(shared / true.size, 1.0 - float(penalty) / worst)


def _ranks(rows: Tensor, chosen: Tensor, shown: IntArray) -> IntArray:
    """Which neighbour in truth each neighbour on the map is, counted from 1."""
    found = np.empty_like(shown)
    for place, row in enumerate(chosen.tolist()):
        away = (rows - rows[row]).square().sum(1)
        away[row] = -1.0
        order = torch.empty(len(rows), dtype=torch.int64)
        order[away.argsort(stable=True)] = torch.arange(len(rows))
        found[place] = order[torch.from_numpy(shown[place])].numpy()
    return found

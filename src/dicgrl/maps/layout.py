"""A map of vectors in two dimensions that stays nearly as it is while the vectors grow.

The first map is t-SNE's, of the nearest neighbours by the angle between vectors. A later one goes
on from there: a spring holds each old point where it was, newcomers start among their neighbours,
and all of them settle in few steps. A point whose vector moved farther than its neighbours are away
is let loose; one whose vector hardly moved is held tighter, and stays exactly where it was if the
vector did not move: else many small versions, one after the other, would carry all points away. So
people find again what they know, and what moves on the map has moved in the model.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from torch import Tensor

from dicgrl.errors import UserError
from dicgrl.graph.arrays import IntArray
from dicgrl.maps.forces import Edges, Floats, pull, push
from dicgrl.maps.neighbours import Neighbours, nearest

NEIGHBOURS = 15
HOLD = 0.03
"""How stiff the springs are. A neighbour's pull is 1 / NEIGHBOURS of its distance where it is near;
benchmarks/stable_map.py shows what other values give."""

_STILL, _FIXED = 0.02, 0.002  # of the way to its last neighbour: a vector that moved less is held
_FIRST = ((12.0, 200), (1.0, 500))  # how much more neighbours attract, and for how many steps
_LATER = ((1.0, 200),)
_BEGINNING = 1e-2  # the spread of the first positions: groups find together in a small place
_JITTER = 1e-4  # equal vectors come apart


def layout(
    vectors: Tensor,
    before: Floats | None = None,
    earlier: Tensor | None = None,
    *,
    absent: IntArray | None = None,
    hold: float = HOLD,
    seed: int = 0,
) -> Floats:
    """Lay vectors out in two dimensions.

    The same vectors and the same seed give the same map.

    Args:
        vectors: A row each, [N, ...]; what a row has besides is flattened.
        before: The map of an earlier version, [M, 2], whose rows are the first ones of these; none
            to make a map afresh.
        earlier: The vectors of that version, [M, ...]; without them all springs are alike.
        absent: Rows that are to be on no map.
        hold: How stiff the springs of old points are whose vectors moved.
        seed: Seed of what little is random.

    Returns:
        Positions, [N, 2]; NaN for rows that are on no map.

    Raises:
        UserError: The earlier map has more rows.
    """
    rows = directions(vectors)
    if before is not None and len(before) > len(rows):
        raise UserError(f"the earlier map has {len(before)} rows, and these are {len(rows)}")
    there = torch.isfinite(rows).all(1).numpy()
    there[absent if absent is not None else []] = False
    ids = np.flatnonzero(there)
    found = np.full((len(rows), 2), np.nan, dtype=np.float32)
    if len(ids) < 3:  # nothing to arrange
        found[ids] = np.eye(2, dtype=np.float32)[: len(ids)]
        return found
    old = np.full_like(found, np.nan)
    if before is not None:
        old[: len(before)] = before
    moved = np.full(len(rows), np.nan, dtype=np.float32)
    if earlier is not None:
        known = min(len(earlier), len(rows))
        moved[:known] = (directions(earlier)[:known] - rows[:known]).norm(dim=1).numpy()
    among = rows[torch.from_numpy(ids)]
    random = np.random.default_rng(seed).normal(scale=_JITTER, size=(len(rows), 2))
    jitter = random.astype(np.float32)[ids]
    near = nearest(among, torch.arange(len(ids)), NEIGHBOURS)
    edges = _weights(near)
    if np.isnan(old[ids]).all():
        points = _descend(_principal(among) + jitter, edges, _FIRST)
        found[ids] = points - points.mean(0)
    else:
        points, came = _start(old[ids], near)
        springs = np.where(came, 0.0, _springs(moved[ids], near, hold)).astype(np.float32)
        found[ids] = _descend(points + jitter * came[:, None], edges, _LATER, springs)
    return found


def directions(vectors: Tensor) -> Tensor:
    """Vectors of length 1, in ordinary memory, [N, d]; what is near in direction is near then."""
    return torch.nn.functional.normalize(vectors.detach().cpu().float().flatten(1), dim=1)


def _start(points: Floats, near: Neighbours) -> tuple[Floats, NDArray[np.bool_]]:
    """Put each newcomer to the median of its neighbours, as soon as one of them has a place.

    Returns:
        Positions, and who came.
    """
    points = points.copy()
    came = np.isnan(points[:, 0])
    waiting = np.flatnonzero(came)
    while len(waiting):
        around = points[near.ids[waiting]]  # [waiting, k, 2]
        ready = ~np.isnan(around[:, :, 0]).all(1)
        if not ready.any():  # they only know each other
            points[waiting] = np.nanmedian(points, axis=0)
            break
        points[waiting[ready]] = np.nanmedian(around[ready], axis=1)
        waiting = waiting[~ready]
    return points, came


def _springs(moved: Floats, near: Neighbours, hold: float) -> Floats:
    """How stiff the spring of each point is, by how far its vector moved; NaN: nobody knows.

    A vector that moved a tenth as far as `_STILL` has a spring ten times as stiff, and one that
    moved less than `_FIXED` one that does not give: infinity.
    """
    share = moved / np.maximum(near.distances[:, -1], 1e-9)
    springs = hold * np.fmax(_STILL / np.maximum(share, _FIXED), 1.0)
    springs[share > 1] = 0.0
    springs[share < _FIXED] = np.inf
    return springs.astype(np.float32)


def _principal(rows: Tensor) -> Floats:
    """The first two principal axes, scaled down."""
    centred = (rows - rows.mean(0)).double()
    _, axes = torch.linalg.eigh(centred.T @ centred)
    axes = axes[:, -2:].flip(1)
    axes = axes * axes.gather(0, axes.abs().argmax(0)[None]).sign()  # one sign on every machine
    found = (centred @ axes).numpy()
    found = np.pad(found, ((0, 0), (0, 2 - found.shape[1])))
    return (found * (_BEGINNING / (found[:, 0].std() or 1.0))).astype(np.float32)


def _weights(near: Neighbours) -> Edges:
    """How strongly two points attract each other: by half for each that the other is near.

    Equal weights do as well as those of a perplexity (Boehm et al., 2022). Those of a row add up
    to about 1: forces are counted per point, so that steps are as long in a large map as in a
    small one.
    """
    count, k = near.ids.shape
    rows = np.repeat(np.arange(count), k)
    values = np.full(count * k, 0.5 / k, dtype=np.float32)
    one = csr_array(coo_array((values, (rows, near.ids.ravel())), shape=(count, count)))
    return Edges.of(csr_array(one + one.T))


def _descend(
    points: Floats,
    edges: Edges,
    plan: tuple[tuple[float, int], ...],
    springs: Floats | None = None,
) -> Floats:
    """Go down the gradient of t-SNE, with momentum and gains.

    Args:
        points: Where they begin, [N, 2].
        edges: How strongly they attract each other.
        plan: How much more neighbours attract, and for how many steps.
        springs: How stiff the spring is that holds each where it begins, [N]; infinity for what
            stays there. None without.
    """
    home, points = points, points.copy()
    fixed = np.zeros(len(points), dtype=bool) if springs is None else np.isinf(springs)
    speed, gains = np.zeros_like(points), np.ones_like(points)
    for exaggeration, steps in plan:
        momentum = 0.5 if exaggeration > 1 else 0.8
        for step in range(steps):
            pushed = push(points)
            share = len(points) / max(float(pushed.mass.sum(dtype=np.float64)), 1e-9)
            uphill = exaggeration * pull(points, edges) - share * pushed.force
            rate = 4.0 / exaggeration
            if springs is not None:
                uphill += np.where(fixed, 0.0, springs)[:, None] * (points - home)
                rate = 2.0 * (1 - step / steps)  # a few steps have to come to rest
            gains = np.where(np.sign(uphill) != np.sign(speed), gains + 0.2, gains * 0.8)
            gains = np.maximum(gains, 0.01)
            speed = (momentum * speed - rate * gains * uphill).astype(np.float32)
            speed[fixed] = 0.0
            points += speed
    return points

"""What pulls and pushes the points of a map: the gradient of t-SNE (van der Maaten, Hinton, 2008).

Neighbours attract each other, and every point repels every other. The push of all on all is a
convolution of the points with a kernel: they are spread on a grid by interpolation, and FFT does
the rest (Linderman et al., 2019). A step takes O(N + cells log cells) then, not O(N^2). The force
is the slope of the field of 1 / (1 + r^2), which differences between nodes tell: one transform
gives both.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import fft
from scipy.sparse import csr_array
from torch import Tensor

from dicgrl.graph.arrays import IntArray

Floats = NDArray[np.float32]

_SPACING = 1 / 3  # of the grid's nodes; the kernel is smooth on a length of 1
_MOST_NODES = 2048  # on a side; nodes are farther apart in a map that would need more
_SLOPE = (3 / 4, -3 / 20, 1 / 60)  # central differences of sixth order
_EDGE = len(_SLOPE) + 2  # nodes beyond the outermost point
_GRAIN = 32  # a grid grows by so many nodes, so that its kernel serves several steps


class Push(NamedTuple):
    """How all points repel each.

    Attributes:
        force: Sum over the others of (y_i - y_j) / (1 + |y_i - y_j|^2)^2, [N, 2].
        mass: Sum over the others of 1 / (1 + |y_i - y_j|^2), [N].
    """

    force: Floats
    mass: Floats


class Edges(NamedTuple):
    """Which points attract each other, ordered by the first of both.

    Attributes:
        first: Whom a pair attracts, [E].
        second: Whither, [E].
        weight: How strongly, p_ij, [E].
        counts: How many pairs each point is first of, [N].
    """

    first: Tensor
    second: Tensor
    weight: Tensor
    counts: Tensor

    @classmethod
    def of(cls, weights: csr_array) -> Edges:
        """The edges of a matrix of weights, [N, N]."""
        counts = torch.from_numpy(np.diff(weights.indptr).astype(np.int64))
        first = torch.repeat_interleave(torch.arange(len(counts)), counts)
        second = torch.from_numpy(weights.indices.astype(np.int64))
        return cls(first, second, torch.from_numpy(weights.data.astype(np.float32)), counts)


def push(points: Floats) -> Push:
    """How all points repel each, [N, 2]."""
    low = points.min(0)
    span = float((points.max(0) - low).max())
    spacing = max(_SPACING, span / (_MOST_NODES - 2 * _EDGE - 1 - _GRAIN))
    needed = int(np.ceil(span / spacing)) + 2 * _EDGE + 1
    nodes = fft.next_fast_len(-(-needed // _GRAIN) * _GRAIN, real=True)
    workers = torch.get_num_threads()
    cells, weights = _spread(points, low, spacing, nodes)
    charge = np.bincount(cells.ravel(), weights.ravel(), nodes * nodes).astype(np.float32)
    shape = (2 * nodes, 2 * nodes)
    waves = fft.rfft2(charge.reshape(nodes, nodes), s=shape, workers=workers)
    waves *= _kernel(nodes, spacing)
    field = fft.irfft2(waves, s=shape, workers=workers)[:nodes, :nodes]
    force = [_at(_slope(field, axis, spacing), cells, weights) for axis in (0, 1)]
    return Push(-0.5 * np.stack(force, axis=1), _at(field, cells, weights) - 1.0)  # 1 from itself


def pull(points: Floats, edges: Edges) -> Floats:
    """How neighbours attract each point: sum of p_ij (y_i - y_j) / (1 + |y_i - y_j|^2), [N, 2]."""
    x, y = (torch.from_numpy(np.ascontiguousarray(points[:, axis])) for axis in (0, 1))
    apart = [
        each.index_select(0, edges.first) - each.index_select(0, edges.second) for each in (x, y)
    ]  # [E] each
    held = edges.weight / (apart[0].square() + apart[1].square() + 1.0)
    total = [
        torch.segment_reduce(each * held, "sum", lengths=edges.counts, axis=0, unsafe=True)
        for each in apart
    ]
    return np.asarray(torch.stack(total, dim=1).numpy(), dtype=np.float32)


def _spread(points: Floats, low: Floats, spacing: float, nodes: int) -> tuple[IntArray, Floats]:
    """The nine nodes around each point, and its share in each, [n, 9]: a parabola each way."""
    at = (points - low) / spacing + _EDGE
    nearest = np.rint(at)
    t = (at - nearest).astype(np.float32)[:, :, None]
    share = np.concatenate([t * (t - 1) / 2, 1 - t * t, t * (t + 1) / 2], axis=2)  # [n, 2, 3]
    weights = (share[:, 0, :, None] * share[:, 1, None, :]).reshape(len(points), 9)
    around = np.arange(-1, 2)
    offsets = (around[:, None] * nodes + around[None]).ravel()
    home = nearest.astype(np.int64)
    return (home[:, 0] * nodes + home[:, 1])[:, None] + offsets, weights


def _slope(field: NDArray[Any], axis: int, spacing: float) -> Floats:
    """How steep a field is along an axis, at every node but those of the edge."""
    found = np.zeros(field.shape, dtype=np.float32)
    field, inner = np.moveaxis(field, axis, 0), np.moveaxis(found, axis, 0)
    reach, count = len(_SLOPE), len(field)
    inner = inner[reach : count - reach]
    for step, share in enumerate(_SLOPE, 1):
        later = field[reach + step : count - reach + step]
        inner += np.float32(share / spacing) * (later - field[reach - step : -reach - step])
    return found


def _at(field: NDArray[Any], cells: IntArray, weights: Floats) -> Floats:
    held = np.ascontiguousarray(field).ravel()[cells]
    return np.asarray(np.einsum("ij,ij->i", held, weights), dtype=np.float32)


@lru_cache(maxsize=2)
def _kernel(nodes: int, spacing: float) -> NDArray[np.complex64]:
    """The waves of 1 / (1 + r^2) between nodes of a grid."""
    steps = np.arange(2 * nodes)
    apart = np.where(steps < nodes, steps, steps - 2 * nodes) * np.float32(spacing)
    squares = (apart * apart).astype(np.float32)
    inverse = 1.0 / (np.float32(1.0) + squares[:, None] + squares[None])
    return np.asarray(fft.rfft2(inverse, workers=torch.get_num_threads()))

"""What pulls and pushes the points of a map: the gradient of t-SNE (van der Maaten, Hinton, 2008).

Neighbours attract each other, and every point repels every other. The push of all on all is a
convolution of the points with a kernel: they are spread on a grid by interpolation, and FFT does
the rest (Linderman et al., 2019). A step takes O(N + cells log cells) then, not O(N^2).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.sparse import csr_array

from dicgrl.graph.arrays import IntArray

Floats = NDArray[np.float32]

_SPACING = 1 / 3  # of the grid's nodes; the kernel is smooth on a length of 1
_MOST_NODES = 2048  # on a side; nodes are farther apart in a map that would need more
_EDGE = 2  # nodes beyond the outermost point


class Push(NamedTuple):
    """How all points repel each.

    Attributes:
        force: Sum over the others of (y_i - y_j) / (1 + |y_i - y_j|^2)^2, [N, 2].
        mass: Sum over the others of 1 / (1 + |y_i - y_j|^2), [N].
    """

    force: Floats
    mass: Floats


def push(points: Floats) -> Push:
    """How all points repel each, [N, 2]."""
    low = points.min(0)
    span = float((points.max(0) - low).max())
    spacing = max(_SPACING, span / (_MOST_NODES - 2 * _EDGE - 1))
    nodes = fft.next_fast_len(int(np.ceil(span / spacing)) + 2 * _EDGE + 1, real=True)
    cells, weights = _spread(points, low, spacing, nodes)
    charge = np.bincount(cells.ravel(), weights.ravel(), nodes * nodes).astype(np.float32)
    waves = fft.rfft2(charge.reshape(nodes, nodes), s=(2 * nodes, 2 * nodes))
    fields = [
        _at(fft.irfft2(waves * kernel, s=(2 * nodes, 2 * nodes))[:nodes, :nodes], cells, weights)
        for kernel in _kernels(nodes, spacing)
    ]
    return Push(np.stack(fields[:2], axis=1), fields[2] - 1.0)  # a point is 1 from itself


def pull(points: Floats, near: csr_array) -> Floats:
    """How neighbours attract each point: sum of p_ij (y_i - y_j) / (1 + |y_i - y_j|^2), [N, 2].

    Args:
        points: The points, [N, 2].
        near: The weights p_ij, [N, N].
    """
    apart = np.repeat(points, np.diff(near.indptr), axis=0) - points[near.indices]
    held = near.data / (1.0 + np.einsum("ij,ij->i", apart, apart))
    edges = csr_array((held, near.indices, near.indptr), shape=near.shape)
    total = np.asarray(edges.sum(axis=1), dtype=np.float32)
    return np.asarray(total[:, None] * points - edges @ points, dtype=np.float32)


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


def _at(field: NDArray[Any], cells: IntArray, weights: Floats) -> Floats:
    held = np.ascontiguousarray(field).ravel()[cells]
    return np.asarray(np.einsum("ij,ij->i", held, weights), dtype=np.float32)


@lru_cache(maxsize=2)
def _kernels(nodes: int, spacing: float) -> list[NDArray[np.complex128]]:
    """The waves of both parts of the force, and of the mass, between nodes of a grid."""
    steps = np.arange(2 * nodes)
    apart = (np.where(steps < nodes, steps, steps - 2 * nodes) * spacing).astype(np.float64)
    inverse = 1.0 / (1.0 + apart[:, None] ** 2 + apart[None] ** 2)
    made = (apart[:, None] * inverse**2, apart[None] * inverse**2, inverse)
    return [np.asarray(fft.rfft2(kernel.astype(np.float32))) for kernel in made]

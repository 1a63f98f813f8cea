"""Scale features of nodes for a model."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dicgrl.graph.arrays import FloatArray

_NUMBERS = 1 << 20  # numbers to scale at a time


def scaled(features: Tensor, how: str) -> Tensor:
    """Scale features of nodes row by row; a row of zeros stays as it is.

    Args:
        features: [N, F].
        how: `l2` for length 1, `row` for a sum of absolute values of 1, `none` for no scaling.

    Example:
        >>> scaled(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), "l2").tolist()
        [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    if how == "none":
        return features
    order = 2 if how == "l2" else 1
    return torch.nn.functional.normalize(features, p=float(order), dim=1)


def scaled_blocks(features: FloatArray, how: str) -> Iterator[Tensor]:
    """The same for an array, some rows at a time, as it may be larger than memory.

    Example:
        >>> import numpy as np
        >>> [block.tolist() for block in scaled_blocks(np.eye(2, dtype=np.float32), "none")]
        [[[1.0, 0.0], [0.0, 1.0]]]
    """
    rows = max(_NUMBERS // max(features.shape[1], 1), 1)
    for first in range(0, len(features), rows):
        yield scaled(torch.from_numpy(features[first : first + rows].copy()), how)

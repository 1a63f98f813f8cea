"""Numbers of 16 bits from numbers of 32, up or down by chance, so that the mean is right.

A learning step is often smaller than the distance between two numbers of 16 bits: rounded to the
nearest, it would be lost each time. Rounded up as often as it comes near the next one, many small
steps arrive in the mean. The chance is a hash of the row, the place in it and how often the row has
moved: the same on every device, and the same again when a run is repeated or resumed.
"""

from __future__ import annotations

import torch
from torch import Tensor

_WORD = 0xFFFFFFFF
_ROW, _MOVE, _PLACE = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D  # odd, far apart
_FIRST, _SECOND = 0x7FEB352D, 0x846CA68B


def stochastic(values: Tensor, rows: Tensor, moves: Tensor) -> Tensor:
    """Numbers [m, width] in bfloat16; of the two around each, the nearer one is the likelier.

    Args:
        values: The numbers, float32.
        rows: The row of the table that each line is of, [m].
        moves: How often it has moved, [m, 1].

    Example:
        >>> value = torch.full((1, 3000), 1 + 2**-7 / 3)
        >>> rounded = stochastic(value, torch.tensor([5]), torch.ones(1, 1)).float()
        >>> rounded.unique().tolist(), round((rounded.mean().item() - 1) * 2**7, 1)
        ([1.0, 1.0078125], 0.3)
    """
    places = torch.arange(values.shape[1], device=values.device)
    word = (rows[:, None] * _ROW + moves.long() * _MOVE + places * _PLACE) & _WORD
    word = ((word ^ (word >> 16)) * _FIRST) & _WORD
    word = ((word ^ (word >> 15)) * _SECOND) & _WORD
    added = ((word ^ (word >> 16)) & 0xFFFF).int()
    kept = (values.contiguous().view(torch.int32) + added) & ~0xFFFF
    return torch.where(values.isfinite(), kept.view(torch.float32), values).bfloat16()

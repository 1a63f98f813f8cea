"""DistMult: f = sum_i h_i r_i t_i (Yang et al. 2015)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.models.fast import Side
from dicgrl.models.queries import Dot, Likeness, QueryScorer

_SPREAD = 0.2  # products of smaller numbers would be too small to start from


class DistMult(QueryScorer, name="distmult"):
    """A relation weighs the coordinates in which its head and tail agree.

    It cannot tell a head from a tail: every relation is symmetric.

    Args:
        dim: Length of the vectors.

    Example:
        >>> head, relation, tail = torch.tensor([[1.0, 2.0], [1.0, 1.0], [2.0, 5.0]])
        >>> DistMult(2).score(head, relation, tail)
        tensor(12.)
    """

    likeness: ClassVar[Likeness] = Dot()

    @override
    def query(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        return given * relation

    @override
    def initial(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        return torch.empty(count, width).normal_(0, _SPREAD, generator=generator)

"""DistMult: f = sum_i h_i r_i t_i (Yang et al. 2015)."""

from __future__ import annotations

from torch import Tensor
from typing_extensions import override

from dicgrl.models.fast import Side
from dicgrl.models.queries import ProductScorer


class DistMult(ProductScorer, name="distmult"):
    """A relation weighs the coordinates in which its head and tail agree.

    It cannot tell a head from a tail: every relation is symmetric.

    Args:
        dim: Length of the vectors.
        n3: Weight of the regulariser.

    Example:
        >>> import torch
        >>> head, relation, tail = torch.tensor([[1.0, 2.0], [1.0, 1.0], [2.0, 5.0]])
        >>> DistMult(2).score(head, relation, tail)
        tensor(12.)
    """

    @override
    def query(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        return given * relation

    @override
    def query_gradients(
        self, given: Tensor, relation: Tensor, side: Side, gradient: Tensor
    ) -> tuple[Tensor, Tensor]:
        return gradient * relation, gradient * given

    @override
    def moduli(self, vectors: Tensor) -> Tensor:
        return vectors.abs()

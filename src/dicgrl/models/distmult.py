"""DistMult: f = sum_i h_i r_i t_i (Yang et al. 2015)."""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.models.fast import Side
from dicgrl.models.queries import ProductScorer
from dicgrl.models.queries.product import ridge


class DistMult(ProductScorer, name="distmult"):
    """A relation weights the coordinates in which its head and tail agree.

    It cannot distinguish head and tail, so every relation is symmetric.

    Args:
        dim: Length of the vectors.
        n3: Weight of the regulariser.

    Example:
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

    @override
    def place_relation(self, head: Tensor, tail: Tensor) -> Tensor:
        return torch.stack([head * tail, head * head], -1).flatten(-2)

    @override
    def settle_relation(self, mean: Tensor) -> Tensor:
        both, own = mean[..., 0::2], mean[..., 1::2]
        return both / ridge(own)

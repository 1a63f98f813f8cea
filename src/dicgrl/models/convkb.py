"""ConvKB: f = W1 . ReLU(Conv([h; r; t])) (Nguyen et al. 2018; equation 3 of the paper)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dicgrl.models.scorer import Scorer


class ConvKB(Scorer, name="convkb"):
    """Filters of shape 1 x 3 slide over the rows of [h; r; t]; a linear layer weighs what they see.

    Args:
        dim: Length of the vectors.
        filters: Number of filters, M in the paper.
        dropout: Share of the filters' outputs that is dropped in training.
    """

    def __init__(self, dim: int, filters: int = 50, dropout: float = 0.0) -> None:
        super().__init__(dim)
        self.dropout = dropout
        self.kernel = nn.Parameter(torch.empty(3, filters))
        self.bias = nn.Parameter(torch.zeros(filters))
        self.weight = nn.Parameter(torch.empty(dim, filters))

    def initialise(self, generator: torch.Generator) -> None:
        """See `Scorer`; both layers start at the scale that keeps their outputs' variance."""
        with torch.no_grad():
            self.kernel.normal_(0, 0.5, generator=generator)
            bound = (6 / (self.weight.numel() + 1)) ** 0.5
            self.weight.uniform_(-bound, bound, generator=generator)

    def initial(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        """See `Scorer`."""
        bound = (6 / self.dim) ** 0.5
        return torch.empty(count, width).uniform_(-bound, bound, generator=generator)

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """See `Scorer`."""
        k = self.kernel
        # Sums of the vectors that are shared by many pairs are made before broadcasting.
        terms = sorted(
            ((head, k[0]), (relation, k[1]), (tail, k[2])), key=lambda term: term[0].numel()
        )
        total: Tensor = self.bias
        for vector, weight in terms:
            total = total + vector[..., None] * weight  # [..., dim, M]
        seen = F.dropout(F.relu(total), self.dropout, self.training)
        return (seen * self.weight).sum((-1, -2))

    def pair_bytes(self) -> int:
        """See `Scorer`."""
        return 4 * 3 * self.dim * self.kernel.shape[1]

"""ConvKB: f = W1 . ReLU(Conv([h; r; t])) (Nguyen et al. 2018; equation 3 of the paper)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dicgrl.kernels import available
from dicgrl.models.scorer import Scorer

# Filters at the start: weights of h, r, t, and of their output in even and in odd coordinates.
_START = (
    (1.0, 1.0, -1.0, -1.0, 0.0),
    (-1.0, -1.0, 1.0, -1.0, -2.0),
    (1.0, -1.0, -1.0, 0.0, -2.0),
    (1.0, 0.0, -1.0, 0.0, 1.0),
    (-1.0, 0.0, 1.0, 0.0, 1.0),
    (0.0, 1.0, 0.0, 0.0, -1.0),
)


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
        """See `Scorer`; the start is a distance that the filters can then reshape, plus some noise.

        Even coordinates start as TransE, -|h + r - t|, which knows directions. Odd ones start as
        -||h - t| - |r||, a distance kept both ways: for r > 0 it is -r + |x| - 2 relu(x - r)
        - 2 relu(-x - r) with x = h - t. A translation alone cannot say that a relation is symmetric
        and that nothing is related to itself.
        """
        pattern = _START if self.kernel.shape[1] >= len(_START) else _START[:2]
        kind = torch.arange(self.kernel.shape[1]) % len(pattern)  # of each filter
        share = 1 / torch.bincount(kind)[kind]
        even = torch.tensor([row[3] for row in pattern])[kind] * share
        odd = torch.tensor([row[4] for row in pattern])[kind] * share
        odd = odd if len(pattern) == len(_START) else even
        with torch.no_grad():
            noise = torch.empty_like(self.kernel).normal_(0, 0.1, generator=generator)
            self.kernel.copy_(torch.tensor([row[:3] for row in pattern])[kind].T + noise)
            self.weight.normal_(1, 0.1, generator=generator)
            self.weight[0::2] *= even
            self.weight[1::2] *= odd

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """See `Scorer`."""
        drops = self.training and self.dropout > 0
        if not drops and available(head, relation, tail):
            from dicgrl.kernels.convkb import conv_score  # needs Triton

            return conv_score(head, relation, tail, self.kernel, self.bias, self.weight)
        # One order of summation for all shapes: another one would round differently and break ties.
        total = self.bias + relation[..., None] * self.kernel[1]  # [..., dim, M]
        total = total + head[..., None] * self.kernel[0] + tail[..., None] * self.kernel[2]
        seen = F.dropout(total.relu(), self.dropout, drops)
        return (seen * self.weight).sum((-1, -2))

    def place(self, known: Tensor, relation: Tensor, side: str) -> Tensor:
        """See `Scorer`; as in TransE, whose distance its filters start from."""
        return known + relation if side == "tail" else known - relation

    def between(self, head: Tensor, tail: Tensor) -> Tensor:
        """See `Scorer`."""
        return tail - head

    def pair_bytes(self) -> int:
        """See `Scorer`; the kernel keeps nothing but the score."""
        if available(self.weight):
            return 4
        return 4 * 3 * self.dim * self.kernel.shape[1]

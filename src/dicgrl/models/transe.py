"""TransE: f = -||h + r - t||_p (Bordes et al. 2013; equation 2 of the paper)."""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.errors import UserError
from dicgrl.models.scorer import Scorer


class TransE(Scorer, name="transe"):
    """A relation is a translation; the score is the negative distance.

    Args:
        dim: Length of the vectors.
        p: Norm of the distance, 1 or 2.

    Example:
        >>> head, relation, tail = torch.tensor([[1.0, 2.0], [1.0, 1.0], [2.0, 5.0]])
        >>> TransE(2, p=1).score(head, relation, tail)
        tensor(-2.)
    """

    def __init__(self, dim: int, p: int = 1) -> None:
        super().__init__(dim)
        if p not in (1, 2):
            raise UserError(f"p={p}: TransE measures distances with p=1 or p=2")
        self.p = p

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """See `Scorer`."""
        difference = head + relation - tail
        if self.p == 1:
            return difference.abs().sum(-1).neg()
        # Its gradient is 0 at distance 0, where that of a square root is not a number.
        distance: Tensor = torch.linalg.vector_norm(difference, dim=-1)
        return distance.neg()

    def score_tails(self, head: Tensor, relation: Tensor, tails: Tensor) -> Tensor:
        """See `Scorer`."""
        return self._distances(head + relation, tails)

    def score_heads(self, heads: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """See `Scorer`."""
        return self._distances(tail - relation, heads)

    def _distances(self, queries: Tensor, candidates: Tensor) -> Tensor:
        # The matrix-product form of the Euclidean distance loses the digits that decide ties.
        mode = "donot_use_mm_for_euclid_dist"
        distances: Tensor = torch.cdist(queries, candidates, p=float(self.p), compute_mode=mode)
        return distances.neg()

    def place(self, known: Tensor, relation: Tensor, side: str) -> Tensor:
        """See `Scorer`."""
        return known + relation if side == "tail" else known - relation

    def between(self, head: Tensor, tail: Tensor) -> Tensor:
        """See `Scorer`."""
        return tail - head

    def pair_bytes(self) -> int:
        """See `Scorer`; the distances themselves are all that is kept."""
        return 4

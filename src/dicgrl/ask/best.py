"""Keeps the k best answers to many questions while candidates arrive in blocks.

No block is sorted as a whole.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Best:
    """The best answers so far. Of answers with equal scores, those with lower ids are kept.

    A candidate whose score is minus infinity or NaN is not an answer.

    Args:
        questions: How many questions there are.
        k: How many answers to each, at most.
        device: Where scores come from.

    Attributes:
        ids: The answers, best first, [q, k].
        scores: Their scores, minus infinity where there are fewer answers, [q, k].

    Example:
        >>> best = Best(questions=1, k=2, device="cpu")
        >>> best.add(torch.tensor([0]), torch.tensor([[1.0, 3.0]]), torch.tensor([0, 1]))
        >>> best.add(torch.tensor([0]), torch.tensor([[2.0, 3.0]]), torch.tensor([7, 8]))
        >>> best.ids.tolist(), best.scores.tolist()
        ([[1, 8]], [[3.0, 3.0]])
    """

    def __init__(self, questions: int, k: int, device: torch.device | str) -> None:
        self.ids = torch.zeros(questions, k, dtype=torch.long, device=device)
        self.scores = torch.full((questions, k), -torch.inf, device=device)

    def add(self, rows: Tensor, scores: Tensor, ids: Tensor) -> None:
        """Take in a block of candidates.

        Args:
            rows: Which questions, [b].
            scores: Their scores of the candidates, [b, c]; written to.
            ids: The candidates, rising, [c]; above all that these questions were given before.
        """
        k = self.ids.shape[1]
        found, at = highest(scores.masked_fill_(scores.isnan(), -torch.inf), k)
        # Earlier candidates come first, so that a stable order leaves the lower ids in front.
        every = torch.cat([self.scores[rows], found.to(self.scores.dtype)], 1)
        order = every.argsort(dim=1, descending=True, stable=True)[:, :k]
        self.scores[rows] = every.gather(1, order)
        self.ids[rows] = torch.cat([self.ids[rows], ids[at]], 1).gather(1, order)


def highest(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest of each row and where they stand, falling; of equal ones the first.

    Args:
        scores: [b, c], none of which is not a number.
        k: How many; all where there are fewer.

    Example:
        >>> highest(torch.tensor([[1.0, 2.0, 2.0, 2.0]]), 2)[1]
        tensor([[1, 2]])
    """
    count = scores.shape[1]
    if k >= count:
        ordered = scores.sort(dim=1, descending=True, stable=True)
        return ordered.values, ordered.indices
    found, at = scores.topk(k + 1)
    tied = found[:, k] == found[:, k - 1]  # any of the last ones may have been taken
    found, at = found[:, :k], at[:, :k]
    rows = tied.nonzero()[:, 0]
    if len(rows):
        at[rows] = _first(scores[rows], found[rows], at[rows])
    at, order = at.sort(dim=1)
    found, order = found.gather(1, order).sort(dim=1, descending=True, stable=True)
    return found, at.gather(1, order)


def _first(scores: Tensor, found: Tensor, at: Tensor) -> Tensor:
    """Places of the highest, where more are equal to the last of them: the first of these."""
    last = found[:, -1:]
    is_last = found == last
    equal = scores == last
    equal &= equal.cumsum(1, dtype=torch.int32) <= is_last.sum(1, keepdim=True)
    return at.masked_scatter(is_last, equal.nonzero()[:, 1])

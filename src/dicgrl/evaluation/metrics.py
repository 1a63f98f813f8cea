"""Metrics of link prediction from ranks: MRR and Hits@k, both sides pooled, realistic ties."""

from __future__ import annotations

import torch

from dicgrl.evaluation.ranks import Ranks

HITS = (1, 3, 10)


def ranking_metrics(ranks: Ranks) -> dict[str, float]:
    """MRR, Hits@1, 3, 10 and the mean rank as fractions of both sides together.

    Example:
        >>> zero = torch.zeros(2, 1, dtype=torch.long)
        >>> ranking_metrics(Ranks(torch.tensor([[0], [3]]), zero, zero + 10))["mrr"]
        0.625
    """
    realistic = ranks.realistic.double()
    if realistic.numel() == 0:
        return {"mrr": 0.0, **{f"hits@{k}": 0.0 for k in HITS}, "mean_rank": 0.0}
    values = torch.stack(
        [
            realistic.reciprocal().mean(),
            *((realistic <= k).double().mean() for k in HITS),
            realistic.mean(),
        ]
    )
    names = ["mrr", *(f"hits@{k}" for k in HITS), "mean_rank"]
    return dict(zip(names, values.tolist(), strict=True))

"""Metrics of link prediction from ranks: MRR and Hits@k, both sides pooled, realistic ties."""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.evaluation.ranks import Ranks

HITS = (1, 3, 10)
OTHERS = "_others"  # suffix of metrics without the entity of the question as a candidate
SNAPSHOT = "_snapshot"  # suffix of metrics by the snapshot protocol (`dicgrl.trainers.snapshots`)


def ranking_metrics(ranks: Ranks, elsewhere: Tensor | None = None) -> dict[str, float]:
    """MRR, Hits@1, 3, 10 and the mean rank as fractions of both sides together.

    Args:
        ranks: The ranks.
        elsewhere: Which triples have a relation that is not reflexive, [n]. If given, the result
            also has `mrr_others` and `hits@k_others`, for which the entity of such a question is
            not a candidate.

    Example:
        >>> zero = torch.zeros(2, 1, dtype=torch.long)
        >>> ranking_metrics(Ranks(torch.tensor([[0], [3]]), zero, zero + 10))["mrr"]
        0.625
    """
    values = _shares(ranks.realistic)
    values["mean_rank"] = ranks.realistic.double().mean()
    if elsewhere is not None:
        others = _shares(ranks.among_others(elsewhere).realistic)
        values |= {name + OTHERS: value for name, value in others.items()}
    if ranks.realistic.numel() == 0:
        return dict.fromkeys(values, 0.0)
    return dict(zip(values, torch.stack(list(values.values())).tolist(), strict=True))


def _shares(ranks: Tensor) -> dict[str, Tensor]:
    """MRR and Hits@k, without waiting for the device."""
    ranks = ranks.double()
    hits = {f"hits@{k}": (ranks <= k).double().mean() for k in HITS}
    return {"mrr": ranks.reciprocal().mean()} | hits

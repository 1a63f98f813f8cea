"""How far probabilities can be trusted: calibration error, Brier score and reliability bins.

Answers are sorted by probability and cut into bins of equal size. In each bin the mean probability
should equal the share of answers that are right; the expected calibration error (Naeini et al.
2015) is the mean distance of the two. With bins of equal size, no bin of three answers decides.
Even perfect probabilities have some distance by chance, which is reported as well.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

BINS = 10
_FEWEST = 20  # fewest answers in a bin, if there are more than that


def reliability(probabilities: Tensor, right: Tensor, bins: int = BINS) -> dict[str, Any]:
    """Compare probabilities [n] with what was right [n]; the result is ready for JSON.

    Args:
        probabilities: Probabilities of answers.
        right: Whether each is right.
        bins: Number of bins, at most.

    Returns:
        `count`; `ece`, and `ece_by_chance`, which perfect probabilities would have; `brier`, the
        mean squared error, and `brier_of_mean`, that of always saying the share that is right;
        `bins`, each with its count, mean probability and share of right answers.

    Example:
        >>> said = torch.tensor([0.2] * 10 + [0.8] * 10)
        >>> found = reliability(said, torch.tensor([1, 1] + [0] * 8 + [1] * 8 + [0, 0]))
        >>> round(found["ece"], 6), found["brier"] < found["brier_of_mean"]
        (0.0, True)
    """
    count = len(probabilities)
    if not count:
        return {"count": 0}
    said, order = probabilities.double().sort(stable=True)
    true = right.double()[order]
    error = by_chance = 0.0
    listed = []
    for first, last in _bounds(said, max(min(bins, count // _FEWEST), 1)):
        p, y = said[first:last], true[first:last]
        share = len(p) / count
        distance = (p.mean() - y.mean()).abs().item()
        error += share * distance
        # The mean of a normal deviate's absolute value is sqrt(2 / pi) standard deviations.
        by_chance += math.sqrt(2 / math.pi * (p * (1 - p)).sum().item()) / count
        listed.append({"count": len(p), "said": p.mean().item(), "right": y.mean().item()})
    mean = true.mean().item()
    return {
        "count": count,
        "ece": error,
        "ece_by_chance": by_chance,
        "brier": (said - true).square().mean().item(),
        "brier_of_mean": mean * (1 - mean),
        "bins": listed,
    }


def _bounds(said: Tensor, bins: int) -> list[tuple[int, int]]:
    """Bounds of bins of sorted probabilities; equal ones are never separated."""
    cuts = [round(len(said) * number / bins) for number in range(1, bins)]
    ends = torch.searchsorted(said, said[cuts], right=True).tolist() if cuts else []
    edges = [0, *sorted({*ends} - {len(said)}), len(said)]
    return list(pairwise(edges))

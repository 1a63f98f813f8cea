"""Accuracy of node classification, and the loss that early stopping uses."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def accuracy_metrics(scores: Tensor, labels: Tensor) -> dict[str, float]:
    """Share of nodes whose true class scores highest, and the mean cross entropy.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[2.0, 0.0], [2.0, 0.0]])
        >>> accuracy_metrics(scores, torch.tensor([0, 1]))["accuracy"]
        0.5
    """
    if len(labels) == 0:
        return {"accuracy": 0.0, "loss": 0.0}
    right = (scores.argmax(1) == labels).double().mean()
    return {"accuracy": right.item(), "loss": F.cross_entropy(scores, labels).item()}

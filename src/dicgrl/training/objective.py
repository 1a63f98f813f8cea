"""The objective of link prediction, L + beta L_norm (equation 9), for a batch of triples."""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.models.knowledge import KnowledgeModel
from dicgrl.training.losses import Loss
from dicgrl.training.sampling import NegativeSampler


class LinkObjective:
    """The loss of a batch of triples against freshly drawn negatives.

    Args:
        sampler: Draws the negatives.
        loss: Compares positive and negative scores.
        negatives: Negatives per triple, half with another head, half with another tail.
        beta: Weight of the normalisation loss; it counts for disentangled models only.
    """

    def __init__(
        self, sampler: NegativeSampler, loss: Loss, negatives: int = 64, beta: float = 0.1
    ) -> None:
        self.sampler = sampler
        self.loss = loss
        self.negatives = negatives
        self.beta = beta

    def __call__(self, model: KnowledgeModel, triples: Tensor, weight: Tensor) -> Tensor:
        """Loss of triples [b, 3] with weights [b]."""
        heads, relations, tails = triples.unbind(1)
        other_heads, other_tails = self.sampler.corrupt(triples, self.negatives)
        mask = None
        if self.sampler.saturated:
            mask = torch.cat([other_heads >= 0, other_tails >= 0], 1)
            other_heads, other_tails = other_heads.clamp(min=0), other_tails.clamp(min=0)
        positive = model.score(heads, relations, tails)  # [b]
        negative = torch.cat(
            [
                model.score(other_heads, relations[:, None], tails[:, None]),
                model.score(heads[:, None], relations[:, None], other_tails),
            ],
            1,
        )  # [b, negatives]
        total = self.loss(positive, negative, mask, weight)
        route = model.route(heads, relations, tails) if self.beta else None
        if route is not None:
            missing = route.concentration_loss() * weight
            total = total + self.beta * missing.sum() / weight.sum().clamp(min=1e-12)
        return total

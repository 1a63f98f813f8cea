"""Losses on scores of positive and negative triples, weighted per example.

Each takes positives [b], negatives [b, m], a mask of the negatives that exist ([b, m] or None) and
weights [b], and returns the weighted mean over the examples.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

from dicgrl.errors import unknown_name

Loss = Callable[[Tensor, Tensor, Tensor | None, Tensor], Tensor]


def soft_margin(margin: float = 0.0) -> Loss:
    """log(1 + exp(-y f)) over each positive and its negatives (equation 6, its sign put right).

    Args:
        margin: Added to every score; distances need it, since they are never above zero.
    """

    def loss(positive: Tensor, negative: Tensor, mask: Tensor | None, weight: Tensor) -> Tensor:
        wrong = _masked(F.softplus(negative + margin), mask)
        both = F.softplus(-positive - margin) + wrong.sum(-1)
        return _mean(both / (1 + negative.shape[-1]), weight)

    return loss


def margin_ranking(margin: float = 5.0) -> Loss:
    """max(0, margin - f(positive) + f(negative)), averaged over the negatives of each positive."""

    def loss(positive: Tensor, negative: Tensor, mask: Tensor | None, weight: Tensor) -> Tensor:
        each = _masked(F.relu(margin - positive[:, None] + negative), mask)
        exist = each.shape[-1] if mask is None else mask.sum(-1).clamp(min=1)
        return _mean(each.sum(-1) / exist, weight)

    return loss


def self_adversarial(margin: float = 9.0, temperature: float = 1.0) -> Loss:
    """Negatives weighted by how likely the model finds them (Sun et al. 2019, RotatE).

    Args:
        margin: Added to every score.
        temperature: How strongly hard negatives count more; 0 counts all alike.
    """

    def loss(positive: Tensor, negative: Tensor, mask: Tensor | None, weight: Tensor) -> Tensor:
        logits = negative.detach() * temperature
        if mask is not None:
            logits = logits.masked_fill(~mask, -1e30)
        share = logits.softmax(-1)
        wrong = _masked(F.softplus(negative + margin), mask)
        both = F.softplus(-positive - margin) + (share * wrong).sum(-1)
        return _mean(both / 2, weight)

    return loss


LOSSES: dict[str, Callable[..., Loss]] = {
    "softmargin": soft_margin,
    "margin": margin_ranking,
    "selfadversarial": self_adversarial,
}


def make_loss(name: str, margin: float, temperature: float) -> Loss:
    """The loss of that name; `temperature` counts for the self-adversarial one."""
    if name not in LOSSES:
        raise unknown_name("loss", name, LOSSES)
    if name == "selfadversarial":
        return self_adversarial(margin, temperature)
    return LOSSES[name](margin)


def _masked(values: Tensor, mask: Tensor | None) -> Tensor:
    return values if mask is None else values.masked_fill(~mask, 0.0)


def _mean(values: Tensor, weight: Tensor) -> Tensor:
    return (values * weight).sum() / weight.sum().clamp(min=1e-12)

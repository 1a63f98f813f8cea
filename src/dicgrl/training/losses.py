"""Losses on scores of positive and negative triples, weighted per example.

Each takes positives [b], negatives [b, m] (other heads first), a mask of the negatives that exist
([b, m] or None) and weights [b], and returns the weighted mean over the examples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from dicgrl.common.options import Section, option
from dicgrl.errors import unknown_name
from dicgrl.kernels import available


@dataclass(frozen=True)
class LossSettings(Section):
    """Settings of a loss, which are arguments of its class with the same names."""


@dataclass(frozen=True)
class MarginSettings(LossSettings):
    """Settings of a loss with a margin."""

    margin: float = option(9.0, "Margin of the loss.")


@dataclass(frozen=True)
class AdversarialSettings(MarginSettings):
    """Settings of a loss that weights negatives by how likely the model finds them."""

    temperature: float = option(1.0, "Sharpness of the self-adversarial weights.", least=0)


class Loss(Protocol):
    """Compares the scores of positives and of their negatives."""

    def __call__(
        self, positive: Tensor, negative: Tensor, mask: Tensor | None, weight: Tensor, /
    ) -> Tensor:
        """Weighted mean over the examples."""

    def level(self, positive: Tensor, /) -> Tensor:
        """Score that the negatives of each example should stay below, [b, 1]."""


@dataclass(frozen=True, slots=True)
class _PairLoss:
    """A loss that is computed by a kernel if possible, otherwise by PyTorch.

    Attributes:
        margin: Margin of the loss.
        temperature: How much more hard negatives count; 0 if a loss has no such weights.
    """

    margin: float
    temperature: float = field(default=0.0, init=False, repr=False)
    name: ClassVar[str]
    Settings: ClassVar[type[LossSettings]] = MarginSettings

    def __call__(
        self, positive: Tensor, negative: Tensor, mask: Tensor | None, weight: Tensor
    ) -> Tensor:
        """Weighted mean over the examples."""
        if available(positive, negative, weight) and not weight.requires_grad:
            from dicgrl.kernels import losses  # needs Triton

            return losses.loss(
                self.name, self.margin, self.temperature, positive, negative, mask, weight
            )
        each = self.each(positive, negative, mask)
        return weighted_mean(each, weight)

    def each(self, positive: Tensor, negative: Tensor, mask: Tensor | None) -> Tensor:
        """Loss of each example, [b]."""
        raise NotImplementedError

    def level(self, positive: Tensor) -> Tensor:
        """Score that the negatives of each example should stay below, [b, 1]."""
        return torch.full_like(positive, -self.margin)[:, None]


@dataclass(frozen=True, slots=True)
class SoftMargin(_PairLoss):
    """log(1 + exp(-y f)) over each positive and its negatives (equation 6, its sign corrected).

    Attributes:
        margin: Added to every score; distances need it, as their scores are never above zero.
    """

    margin: float = 0.0
    name: ClassVar[str] = "softmargin"

    @override
    def each(self, positive: Tensor, negative: Tensor, mask: Tensor | None) -> Tensor:
        wrong = _masked(F.softplus(negative + self.margin), mask)
        both = F.softplus(-positive - self.margin) + wrong.sum(-1)
        return both / (1 + negative.shape[-1])


@dataclass(frozen=True, slots=True)
class MarginRanking(_PairLoss):
    """max(0, margin - f(positive) + f(negative)), averaged over the negatives of each positive.

    Attributes:
        margin: How far a positive must be ahead.
    """

    margin: float = 5.0
    name: ClassVar[str] = "margin"

    @override
    def each(self, positive: Tensor, negative: Tensor, mask: Tensor | None) -> Tensor:
        wrong = _masked(F.relu(self.margin - positive[:, None] + negative), mask)
        exist = wrong.shape[-1] if mask is None else mask.sum(-1).clamp(min=1)
        return wrong.sum(-1) / exist

    @override
    def level(self, positive: Tensor) -> Tensor:
        return positive[:, None] - self.margin


@dataclass(frozen=True, slots=True)
class MeanMargin(_PairLoss):
    """max(0, margin - f(positive) + mean of f(negatives)) / (1 + m).

    This is the loss of the published code of LKGE, IncDE and FastKGE, which divides by all rows of
    a batch. Easy negatives compensate for hard ones.

    Attributes:
        margin: How far a positive must be ahead of the mean of its negatives.
    """

    margin: float = 8.0
    name: ClassVar[str] = "meanmargin"

    @override
    def each(self, positive: Tensor, negative: Tensor, mask: Tensor | None) -> Tensor:
        total = _masked(negative, mask).sum(-1)
        exist = negative.shape[-1] if mask is None else mask.sum(-1).clamp(min=1)
        return F.relu(self.margin - positive + total / exist) / (1 + negative.shape[-1])

    @override
    def level(self, positive: Tensor) -> Tensor:
        return positive[:, None] - self.margin


@dataclass(frozen=True, slots=True)
class SelfAdversarial(_PairLoss):
    """Negatives weighted by how likely the model finds them (Sun et al. 2019, RotatE).

    Attributes:
        margin: Added to every score.
        temperature: How much more hard negatives count; 0 for equal weights.
    """

    margin: float = 9.0
    temperature: float = 1.0
    name: ClassVar[str] = "selfadversarial"
    Settings: ClassVar[type[LossSettings]] = AdversarialSettings

    @override
    def each(self, positive: Tensor, negative: Tensor, mask: Tensor | None) -> Tensor:
        logits = negative.detach() * self.temperature
        if mask is not None:
            logits = logits.masked_fill(~mask, -1e30)
        share = logits.softmax(-1)
        wrong = _masked(F.softplus(negative + self.margin), mask)
        return (F.softplus(-positive - self.margin) + (share * wrong).sum(-1)) / 2


@dataclass(frozen=True, slots=True)
class Softmax(_PairLoss):
    """Cross entropy of the positive among its negatives, separately for heads and tails.

    -log(exp f(positive) / (exp f(positive) + sum exp f(negative))), the mean of both sides.
    """

    margin: float = field(default=0.0, init=False, repr=False)
    name: ClassVar[str] = "softmax"
    Settings: ClassVar[type[LossSettings]] = LossSettings

    @override
    def each(self, positive: Tensor, negative: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            negative = negative.masked_fill(~mask, -torch.inf)
        own, total = positive[:, None], torch.zeros_like(positive)
        for side in sides(negative):
            total = total + torch.cat([own, side], 1).logsumexp(1) - positive
        return total / 2

    @override
    def level(self, positive: Tensor) -> Tensor:
        return positive[:, None]


LOSSES: dict[str, type[_PairLoss]] = {
    kind.name: kind for kind in (SoftMargin, MarginRanking, SelfAdversarial, Softmax, MeanMargin)
}


def make_loss(name: str, margin: float, temperature: float) -> Loss:
    """Create a loss by name.

    Only the self-adversarial loss uses `temperature`; the softmax does not use `margin` either.
    """
    if name not in LOSSES:
        raise unknown_name("loss", name, LOSSES)
    if name == "selfadversarial":
        return SelfAdversarial(margin, temperature)
    return LOSSES[name](margin) if name != "softmax" else Softmax()


def sides(negative: Tensor) -> tuple[Tensor, Tensor]:
    """Split scores into those of other heads and other tails, as `NegativeSampler.corrupt` does."""
    heads = negative.shape[1] // 2
    return negative[:, :heads], negative[:, heads:]


def weighted_mean(each: Tensor, weight: Tensor) -> Tensor:
    """Weighted mean of values [b] with weights [b]; 0 if all weights are 0."""
    return (each * weight).sum() / weight.sum().clamp(min=1e-12)


def _masked(values: Tensor, mask: Tensor | None) -> Tensor:
    return values if mask is None else values.masked_fill(~mask, 0.0)

"""Training objectives, L + beta L_norm (equation 9), of a batch of triples or nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from dicgrl.models.components import Route
from dicgrl.models.knowledge import KnowledgeModel
from dicgrl.models.mode import evaluating
from dicgrl.models.network import NetworkModel
from dicgrl.models.reciprocal import Reciprocal
from dicgrl.training.losses import Loss, weighted_mean
from dicgrl.training.neighbours import BatchView, Neighbourhood
from dicgrl.training.sampling import NegativeSampler

#: Other heads, other tails, and a mask of those that exist, [b, m]; None for all.
Drawn = tuple[Tensor, Tensor, Tensor | None]

# Of a step: vectors of a triple, with queries, gradients and a regulariser; bytes of a score, for
# what the loss makes of it; bytes of each further row of a negative, which is listed.
_VECTORS, _SCORED, _LISTED = 24, 24, 24


class LinkObjective:
    """The loss of a batch of triples against newly drawn negatives.

    The normalisation loss is omitted if it has no gradient.

    Args:
        sampler: Draws the negatives.
        loss: Compares positive and negative scores.
        negatives: Negatives per triple, half with another head, half with another tail.
        beta: Weight of the normalisation loss; only used by disentangled models.
        share: How many consecutive triples of a batch share their negatives.
    """

    def __init__(
        self,
        sampler: NegativeSampler,
        loss: Loss,
        negatives: int = 64,
        beta: float = 0.1,
        share: int = 1,
    ) -> None:
        self.sampler = sampler
        self.loss = loss
        self.negatives = negatives
        self.beta = beta
        self.share = share

    def __call__(
        self,
        model: KnowledgeModel,
        triples: Tensor,
        weight: Tensor,
        thresholds: Tensor | None = None,
    ) -> Tensor:
        """Loss of triples [b, 3] with weights [b].

        Args:
            model: The model.
            triples: The triples.
            weight: Their weights.
            thresholds: Scores that other heads and other tails should stay below, [b, 2]; those of
                the loss unless given.
        """
        triples = triples.long()  # parts have 32 bits, in which positions of numbers would overflow
        share = min(self.share, len(triples))
        drawn = [self._negatives(triples, share) for _ in range(1 + model.inverses)]
        return self.compare(model, triples, weight, drawn, thresholds)

    def compare(
        self,
        model: KnowledgeModel,
        triples: Tensor,
        weight: Tensor,
        drawn: Sequence[Drawn],
        thresholds: Tensor | None = None,
    ) -> Tensor:
        """The loss against given negatives; in both directions if there are inverse relations."""
        share = min(self.share, len(triples))
        other_heads, other_tails, mask = drawn[0]
        positive, negative, route = model.score_links(
            triples, other_heads, other_tails, share=share
        )
        if thresholds is not None:
            of_head, of_tail = torch.split(thresholds, 1, 1)
            wide = torch.cat(
                [
                    of_head.expand(-1, other_heads.shape[1]),
                    of_tail.expand(-1, other_tails.shape[1]),
                ],
                1,
            )
            negative = negative - wide + self.loss.level(positive.detach())
        total = self.loss(positive, negative, mask, weight)
        if model.inverses:
            other_heads, other_tails, mask = drawn[1]
            others = (
                each.repeat_interleave(share, 0)[: len(triples)] if share > 1 else each
                for each in (other_heads, other_tails)
            )
            inverse = score_inverses(model, triples, *others)
            total = (total + self.loss(*inverse, mask, weight)) / 2
        return with_terms(model, total, triples, route, weight, self.beta)

    def _negatives(self, triples: Tensor, share: int) -> Drawn:
        if share > 1:
            return self.sampler.shared(triples, self.negatives, share)
        other_heads, other_tails = self.sampler.corrupt(triples, self.negatives)
        if not self.sampler.saturated:
            return other_heads, other_tails, None
        mask = torch.cat([other_heads >= 0, other_tails >= 0], 1)
        heads, _, tails = torch.split(triples, 1, dim=1)  # rows that the batch uses anyway
        other_heads = torch.where(other_heads >= 0, other_heads, heads)
        return other_heads, torch.where(other_tails >= 0, other_tails, tails), mask


def with_terms(
    model: KnowledgeModel,
    loss: Tensor,
    triples: Tensor,
    route: Route | None,
    weight: Tensor,
    beta: float,
) -> Tensor:
    """Add the terms that do not depend on negatives to the loss of triples [b, 3].

    Args:
        model: The model.
        loss: Loss of their scores.
        triples: The triples.
        route: The components that they use.
        weight: Their weights, [b].
        beta: Weight of the normalisation loss.
    """
    # If the attention does not learn, its term would have no effect.
    if route is not None and beta and route.alpha.requires_grad:
        loss = loss + beta * weighted_mean(route.concentration_loss(), weight)
    extra = model.regularisation(triples, route)
    return loss if extra is None else loss + weighted_mean(extra, weight)


def score_inverses(
    model: KnowledgeModel, triples: Tensor, other_heads: Tensor, other_tails: Tensor
) -> tuple[Tensor, Tensor]:
    """Like `KnowledgeModel.score_links`, through the inverse relations of the model."""
    assert isinstance(model.scorer, Reciprocal)
    relation = model.relation_vectors(triples[:, 1], None)
    head, tail = (model.entity_vectors(triples[:, end], None) for end in (0, 2))
    heads, tails = (model.entity_vectors(others, None) for others in (other_heads, other_tails))
    score, wide = model.scorer.score_inverse, relation[:, None]
    negative = [score(heads, wide, tail[:, None]), score(head[:, None], wide, tails)]
    return score(head, relation, tail), torch.cat(negative, 1)


def step_bytes(
    model: KnowledgeModel, triples: int, negatives: int, share: int = 1, *, sparse: bool
) -> int:
    """Upper bound of the memory of a step on triples and their negatives, besides the model.

    Fast paths read rows where they are. What is as long as a vector belongs to the triples
    themselves, to touched rows if only these have a gradient, or to negatives that are shared.

    Args:
        model: A model with these settings, which may be empty.
        triples: Number of triples of the step.
        negatives: Negatives per triple.
        share: How many triples share their negatives.
        sparse: Whether only touched rows will have a gradient.
    """
    share = share if model.shares_negatives else 1
    drawn = math.ceil(triples / share) * negatives
    vectors = _VECTORS * triples
    if share > 1:
        vectors += drawn
    if sparse:  # each mention of a row has a place, whether or not others have its gradient
        vectors += (2 * triples + drawn) * (1 + model.inverses)
    further = model.active // model.size - 1
    of_negatives = drawn * (model.link_bytes() + _LISTED * further)
    return of_negatives + _SCORED * triples * negatives + 4 * model.active * vectors


class NodeObjective:
    """Cross entropy of nodes' classes (equation 7) plus the normalisation loss.

    Args:
        labels: Class of every node, [N].
        neighbourhood: Returns the features, edges and positions of a batch of nodes.
        beta: Weight of the normalisation loss; only used by disentangled models.
        kept: Attention to use instead of the model's own, by name; it does not learn.
        movable: Mask of the components of nodes that gradients may reach, [N, K]; all by default.
    """

    def __init__(
        self,
        labels: Tensor,
        neighbourhood: Neighbourhood,
        beta: float = 0.1,
        kept: dict[str, Tensor] | None = None,
        movable: Tensor | None = None,
    ) -> None:
        self.labels = labels
        self.neighbourhood = neighbourhood
        self.beta = beta
        self.kept = kept or {}
        self.movable = movable

    def __call__(self, model: NetworkModel, nodes: Tensor, weight: Tensor) -> Tensor:
        """Loss of nodes [b] with weights [b]."""
        seen = self.neighbourhood(nodes)
        given = None if self.movable is None else self.movable[seen.nodes]
        scores: Tensor = functional_call(model, self.kept, (seen.x, seen.edges, given))
        each = F.cross_entropy(scores[seen.positions], self.labels[nodes], reduction="none")
        return weighted_mean(each, weight) + self.beta * model.take_concentration()


class KeptClasses:
    """Kullback-Leibler divergence of class probabilities of nodes from what they were.

    New classes had a probability of zero.

    Args:
        before: Returns the earlier class scores [b, C'] of nodes [b] from what they see.
        neighbourhood: Returns the features, edges and positions of a batch of nodes.
        beta: Weight of the normalisation loss; only used by disentangled models.
    """

    def __init__(
        self,
        before: Callable[[Tensor, BatchView], Tensor],
        neighbourhood: Neighbourhood,
        beta: float = 0.1,
    ) -> None:
        self.before = before
        self.neighbourhood = neighbourhood
        self.beta = beta

    def __call__(self, model: NetworkModel, nodes: Tensor, weight: Tensor) -> Tensor:
        """Loss of nodes [b] with weights [b]."""
        seen = self.neighbourhood(nodes)
        with evaluating(model):  # with dropout it would learn to answer from half of the input
            scores: Tensor = model(seen.x, seen.edges)[seen.positions]
        before = self.before(nodes, seen).log_softmax(1)
        now = scores.log_softmax(1)[:, : before.shape[1]]
        each = F.kl_div(now, before, reduction="none", log_target=True).sum(1)
        return weighted_mean(each, weight) + self.beta * model.take_concentration()

"""A step of several ranks: each scores its share of the batch, and gradients go to their owners.

The loss of the batch is the weighted mean over its triples, as in one process: the share of a rank
is the mean over its own triples times their share of the weight, and gradients are added up. All
ranks get the whole batch, so that each knows which relations it contains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.models import KnowledgeModel
from dicgrl.models.rows import all_rows_of
from dicgrl.models.table import Table
from dicgrl.parallel.model import ShardedModel
from dicgrl.parallel.sampling import OwnSampler
from dicgrl.parallel.table import Fetched
from dicgrl.training.known import HEAD, RELATION, TAIL
from dicgrl.training.objective import Drawn, LinkObjective


@dataclass(slots=True)
class Step:
    """What remains to be done in a step once its gradients are computed.

    Attributes:
        local: The model that it worked on; None if this rank had no triples.
        ends: Heads and tails that were fetched.
        others: Places of negatives among own entities.
        relations: Relations of the whole batch.
        loss: This rank's share of the loss, which becomes the loss of the batch.
    """

    local: KnowledgeModel | None
    ends: Fetched
    others: Tensor
    relations: Tensor
    loss: Tensor

    @torch.no_grad()
    def settle(self, model: ShardedModel) -> None:
        """Send gradients of rows to their owners, and add up those of relations."""
        fetched = len(self.ends.rows)
        gradient = self.ends.rows.new_zeros(self.ends.rows.shape, dtype=torch.float32)
        used = torch.zeros(fetched, dtype=torch.bool, device=gradient.device)
        if self.local is not None:
            every, touched = _gradients(self.local.entities)
            table = model.sharded
            places = all_rows_of(self.others, table.count)[touched[fetched:]]
            table.own.accumulate(places, every[fetched:][touched[fetched:]])
            gradient, used = every[:fetched], touched[:fetched]
        self.ends.send_back(gradient, used)
        self._add_up(model)

    def _add_up(self, model: ShardedModel) -> None:
        """Add up replicated gradients in one message, with the loss at its end."""
        rows = {
            "relations": model.relation_rows_of(self.relations),
            "attention": self.relations,
        }
        tables = model.replicated()
        pieces = []
        for name, table in tables.items():
            used = _touched(table)[rows[name]]  # rows that only others used count in the sum
            pieces.append(torch.cat([table.gradient[rows[name]], used[:, None].float()], 1))
        loss = self.loss.detach().reshape(1).to(pieces[0].dtype)
        sums = torch.cat([*(piece.flatten() for piece in pieces), loss])
        model.group.add(sums, "relations")
        *added, loss = torch.split(sums, [*(piece.numel() for piece in pieces), 1])
        for (name, table), piece, values in zip(tables.items(), pieces, added, strict=True):
            every = values.view_as(piece)
            table.gradient[rows[name]] = every[:, :-1]
            table.touch(rows[name][every[:, -1] > 0])
        self.loss.copy_(loss[0])


class ShardedObjective(LinkObjective):
    """The loss of a batch that every rank gets, and of which each scores a share.

    Args:
        alone: The objective of a single process.
        sampler: Draws negatives among the entities that this rank owns.
        begin: Called with every step, which must be settled once its gradients are computed.
    """

    sampler: OwnSampler

    def __init__(
        self, alone: LinkObjective, sampler: OwnSampler, begin: Callable[[Step], None]
    ) -> None:
        share = alone.share if sampler.left else 1  # without entities nothing can be drawn
        super().__init__(sampler, alone.loss, alone.negatives, alone.beta, share)
        self._begin = begin

    @override
    def __call__(
        self,
        model: KnowledgeModel,
        triples: Tensor,
        weight: Tensor,
        thresholds: Tensor | None = None,
    ) -> Tensor:
        """This rank's share of the loss of triples [b, 3] with weights [b]."""
        assert isinstance(model, ShardedModel) and thresholds is None
        group = model.group
        mine = triples.tensor_split(group.size)[group.rank]
        weights = weight.tensor_split(group.size)[group.rank]
        ends, which = torch.unique(mine[:, [HEAD, TAIL]], return_inverse=True)
        with torch.no_grad():
            fetched = model.sharded.fetch(ends)
        relations = torch.unique(triples[:, RELATION])
        if not len(mine):  # fewer triples than ranks: it still has to serve the others
            loss = model.relations.anchor * 0.0
            self._begin(Step(None, fetched, ends, relations, loss))
            return loss
        local, drawn, others = self._beside(model, mine, fetched)
        here = torch.stack([which[:, 0], mine[:, RELATION], which[:, 1]], 1)
        loss = self.compare(local, here, weights, drawn) * (weights.sum() / weight.sum())
        self._begin(Step(local, fetched, others, relations, loss))
        return loss

    @torch.no_grad()
    def _beside(
        self, model: ShardedModel, triples: Tensor, fetched: Fetched
    ) -> tuple[KnowledgeModel, list[Drawn], Tensor]:
        """The model of a step, and its negatives by place there and by place among own entities."""
        share = min(self.share, len(triples))
        every = [self._drawn(triples, share) for _ in range(1 + model.inverses)]
        some = [side for drawn in every for side in drawn[:2]]
        places, which = torch.unique(torch.cat([s.flatten() for s in some]), return_inverse=True)
        first = len(fetched.rows) // model.count
        sides = [
            (first + each).view(side.shape)
            for each, side in zip(which.split([s.numel() for s in some]), some, strict=True)
        ]
        drawn = [
            (sides[2 * number], sides[2 * number + 1], mask)
            for number, (_, _, mask) in enumerate(every)
        ]
        own = model.sharded.own.rows[all_rows_of(places, model.count)]
        return model.beside(torch.cat([fetched.rows, own]).float()), drawn, places

    def _drawn(self, triples: Tensor, share: int) -> Drawn:
        """Negatives by their places among own entities."""
        sampler, count = self.sampler, self.negatives
        if share > 1:
            return sampler.shared(triples, count, share)
        heads, tails = sampler.corrupt(triples, count)
        if not sampler.saturated:
            return heads, tails, None
        mask = torch.cat([heads >= 0, tails >= 0], 1)
        return heads.clamp(min=0), tails.clamp(min=0), mask


def _touched(table: Table) -> Tensor:
    """Which rows of a table a step has touched, [n]."""
    touched = torch.zeros(len(table), dtype=torch.bool, device=table.rows.device)
    ids = table.touched()
    if ids is not None:
        touched[ids] = True
    return touched


def _gradients(table: Table) -> tuple[Tensor, Tensor]:
    """Gradients of all rows of a table, and which of them a step has touched."""
    touched = _touched(table)
    if not table.sparse:
        return table.gradient, touched
    found = torch.zeros_like(table.rows, dtype=table.learned)
    found[touched] = table.gradient_of(touched.nonzero()[:, 0])
    return found, touched

"""Products of queries with negatives that triples share: one matrix product for each group.

What a negative costs then is a dot product that is part of a large one, and its row is gathered
once for all triples of the group, so that a triple may have thousands of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from dicgrl.kernels.batch import Batch
from dicgrl.models.queries.comparison import add_rows


def scores(batch: Batch, queries: Sequence[Tensor]) -> Tensor:
    """Scores of the negatives, [b, m].

    Args:
        batch: Plain triples and the negatives that so many of them share.
        queries: What heads are compared with, and what tails are, [b, l] each.
    """
    found = [
        (_grouped(batch, query) @ _vectors(batch, side).mT).flatten(0, 1)
        for query, side in zip(queries, batch.sides(), strict=True)
    ]  # [g, share, m] each
    return torch.cat(found, 1)[: len(batch.triples)]


def add_gradients(
    batch: Batch, queries: Sequence[Tensor], upstream: Tensor, d_entities: Tensor
) -> list[Tensor]:
    """Add the gradients of the negatives' rows to those of the table.

    Args:
        batch: As in the forward pass.
        queries: Likewise.
        upstream: Gradients of the scores, [b, m].
        d_entities: Gradients of the entities' rows, added to.

    Returns:
        Gradients of the queries, [b, l] each.
    """
    found = []
    for query, side in zip(queries, batch.sides(), strict=True):
        pull = _grouped(batch, upstream[:, side])  # [g, share, m]
        found.append((pull @ _vectors(batch, side)).flatten(0, 1)[: len(query)])
        rows = (pull.mT @ _grouped(batch, query)).flatten(0, 1)
        add_rows(d_entities, batch.others[:, side].reshape(-1), rows, batch.pace)
    return found


def _vectors(batch: Batch, side: slice) -> Tensor:
    """Vectors of the negatives of a side, [g, m, l]."""
    others = batch.others[:, side]
    return batch.entities.index_select(0, others.reshape(-1)).view(*others.shape, -1)


def _grouped(batch: Batch, each: Tensor) -> Tensor:
    """Values [b, n] of the triples by group, [g, share, n]; zeros where the last one is short."""
    missing = len(batch.others) * batch.share - len(each)
    return F.pad(each, (0, 0, 0, missing)).view(len(batch.others), batch.share, -1)

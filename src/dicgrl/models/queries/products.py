"""Products of queries with negatives that triples share: one matrix product per group.

A negative is then much cheaper, and its row is gathered once for all triples of the group, so that
a triple may have thousands of negatives.
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
        batch: Plain triples with shared negatives.
        queries: The queries that heads, and that tails, are compared with, [b, l] each.
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
        add_rows(batch, d_entities, batch.others[:, side].reshape(-1), rows)
    return found


def _vectors(batch: Batch, side: slice) -> Tensor:
    """Vectors of the negatives of a side, [g, m, l]."""
    others = batch.others[:, side]
    return batch.vectors(others.reshape(-1)).view(*others.shape, batch.entities.shape[1])


def _grouped(batch: Batch, each: Tensor) -> Tensor:
    """Values [b, n] of the triples by group, [g, share, n]; the last group is padded with zeros."""
    missing = len(batch.others) * batch.share - len(each)
    return F.pad(each, (0, 0, 0, missing)).view(len(batch.others), batch.share, -1)

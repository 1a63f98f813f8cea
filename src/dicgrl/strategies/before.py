"""A model's state before a part: how far it has moved since, and how to pull it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from dicgrl.models.copies import RowCopies
from dicgrl.trainers import Trainer


class Before:
    """Old rows and weights before a part; the cost depends on how many rows may change."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._old = trainer.old_rows()
        tables = trainer.model.tables()
        self._rows = {name: RowCopies(table, state=False) for name, table in tables.items()}
        self._dense = {n: p.detach().clone() for n, p in trainer.model.named_parameters()}

    def cover(self) -> None:
        """Copy further rows that may change from now on."""
        for rows in self._rows.values():
            rows.cover()

    def _moved(self) -> Iterator[tuple[RowCopies, Tensor, Tensor, Tensor]]:
        for name, rows in self._rows.items():
            for ids, values in rows.copies:
                old = ids < self._old[name]
                before = values["rows"][old]
                yield rows, ids[old], before, rows.table.rows[ids[old]] - before

    @torch.no_grad()
    def bound(self, most: float) -> None:
        """Pull back rows that moved farther than a given share of their length."""
        for rows, ids, before, change in self._moved():
            far = change.norm(dim=1) / (most * before.norm(dim=1)).clamp(min=1e-12)
            rows.table.put(ids, before + change / far.clamp(min=1)[:, None])

    @torch.no_grad()
    def drift(self) -> dict[str, float]:
        """How far old rows moved, as a share of their length: mean and maximum."""
        shares = [
            change.norm(dim=1) / before.norm(dim=1).clamp(min=1e-12)
            for _, _, before, change in self._moved()
            if len(before)
        ]
        if not shares:
            return {"mean": 0.0, "largest": 0.0, "rows": 0}
        every = torch.cat(shares)
        changed = every > 0
        mean = every.sum() / changed.sum().clamp(min=1)
        return {
            "mean": mean.item(),
            "largest": every.max().item(),
            "rows": int(changed.sum()),
        }

    @torch.no_grad()
    def average(self, rows: Mapping[str, int]) -> None:
        """Average dense weights with the previous ones, by the training examples behind each.

        Args:
            rows: For weights that grow, their number of rows before the part. Rows that came with
                the part, such as the weights of a new class, have no previous value.
        """
        trainer = self._trainer
        old = trainer.count("train", 0, trainer.newest) / max(trainer.count("train"), 1)
        for name, parameter in trainer.model.named_parameters():
            before = self._dense[name]
            if name in rows:
                parameter[: rows[name]].lerp_(before[: rows[name]], old)
            else:
                parameter.lerp_(before, old)

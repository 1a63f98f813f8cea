"""TransE's fast path through a training batch on a GPU: `dicgrl.kernels.transe_batch`.

Elsewhere TransE uses the fast path of all query decoders (`dicgrl.models.queries.batch`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from typing_extensions import override

from dicgrl.kernels.batch import Batch
from dicgrl.models.fast import FastBatch


@dataclass(frozen=True, slots=True)
class TranslationBatch(FastBatch):
    """TransE's kernels.

    Attributes:
        p: Norm of the distance, 1 or 2.
    """

    handles_places: ClassVar[bool] = True

    p: int

    @property
    @override
    def negative_bytes(self) -> int:
        return 20  # its id twice and its score

    @override
    def scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        from dicgrl.kernels import transe_batch  # needs Triton

        return transe_batch.scores(batch, self.p)

    @override
    def add_gradients(
        self,
        batch: Batch,
        scores: tuple[Tensor, Tensor],
        upstream: tuple[Tensor, Tensor],
        into: tuple[Tensor, Tensor | None],
        gated: bool,
    ) -> Tensor | None:
        from dicgrl.kernels import transe_batch  # needs Triton

        return transe_batch.scatter(batch, self.p, scores[1], *upstream, *into, gated)

"""FastKGE: nothing old changes; new rows are a random start plus a product of low rank.

(Liu et al., IJCAI 2024, "Fast and continual knowledge graph embedding via incremental LoRA".) New
entities form layers of equal size, sorted by distance from the old graph, then by number of facts,
the smallest first. In layer l

    row = start + A B_l / r_l,    A in R^{r_l}, a row for each entity, B_l in R^{r_l x d},

where A begins at 0, B_l is drawn from N(0, 1) and only these learn. With `adaptive` the rank
depends on the number S_l of facts of the layer, r_l = max(0.9 r, r S_l / mean S); otherwise it is
r / layers. New relations are one layer. After the part the product is added to the rows, and
nothing else is kept.

The published code assigns the ranks to the wrong entities, as it applies its order in the wrong
direction, and finds nearly all new entities at distance 1. Both are corrected here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from dicgrl.common.options import Section, option
from dicgrl.graph.arrays import IntArray
from dicgrl.models.table import Table
from dicgrl.strategies.distance import degrees, distances
from dicgrl.strategies.freezing import freeze_old, unfreeze
from dicgrl.strategies.ingredients import Composed, Ingredient
from dicgrl.trainers import LinkTrainer, Trainer
from dicgrl.training.adam import RowAdam
from dicgrl.training.stepper import Objective

_ROWS_PER_RANK = 20  # a layer with more rows per rank gets a higher rank than the setting says


class Adapters(Ingredient):
    """New rows learn through products of low rank; old rows are frozen."""

    @dataclass(frozen=True)
    class Settings(Section):
        """Settings of the adapters."""

        rank: int = option(150, "Rank of fastkge's adapters of new entities.", least=1, most=10_000)
        relation_rank: int = option(
            20, "Rank of fastkge's adapters of new relations.", least=1, most=10_000
        )
        adapters: int = option(
            2,
            "Number of layers of new entities in fastkge, each with an adapter.",
            least=1,
            most=1000,
        )
        adaptive: bool = option(
            True, "Whether the rank of a layer depends on its facts, or is divided equally."
        )
        adapter_rate: float = option(0.1, "Learning rate of fastkge's adapters.", above=0)

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self._adapted: list[_Adapted] = []
        self._adam: RowAdam | None = None

    @override
    def begin(self, trainer: Trainer) -> None:
        assert isinstance(trainer, LinkTrainer)
        freeze_old(trainer)
        tables, old = trainer.model.tables(), trainer.old_rows()
        rows = trainer.graph.rows("train", trainer.newest)
        facts = degrees(rows, len(tables["entities"]))
        order = _order(rows, old["entities"], facts)
        importance = facts[old["entities"] :][order]
        given = (
            ("entities", order, importance, self.settings.adapters, self.settings.rank),
            ("relations", None, None, 1, self.settings.relation_rank),
        )
        self._adapted = []
        for name, places, weights, layers, rank in given:
            new = len(tables[name]) - old[name]
            if new:
                layers = min(layers, new)
                width = tables[name].width  # a product of a higher rank can express no more
                ranks = [min(r, width) for r in self._ranks(weights, new, layers, rank)]
                at = torch.arange(new) if places is None else torch.from_numpy(places)
                adapted = _Adapted(tables[name], old[name] + at, ranks, trainer.generator)
                self._adapted.append(adapted)
        if self._adapted:
            parameters = [each for adapted in self._adapted for each in adapted.parameters]
            self._adam = RowAdam([], parameters, lr=self.settings.adapter_rate)

    def _ranks(self, importance: IntArray | None, new: int, layers: int, rank: int) -> list[int]:
        """The rank of each layer."""
        size = -(-new // layers)
        rank = max(rank, size // _ROWS_PER_RANK)
        if importance is None:
            return [rank]
        if not self.settings.adaptive:
            return [max(rank // layers, 1)] * layers
        sums = [float(importance[i * size : (i + 1) * size].sum()) for i in range(layers)]
        mean = max(float(np.mean(sums)), 1e-12)
        return [max(int(0.9 * rank), int(rank * each / mean), 1) for each in sums]

    @override
    def adjust(self, trainer: Trainer, objective: Objective) -> None:
        del trainer, objective
        if self._adam is not None:
            for adapted in self._adapted:
                adapted.take_gradient()
            self._adam.step()
            for adapted in self._adapted:
                adapted.put_rows()

    @override
    def end(self, trainer: Trainer) -> None:
        self._adapted, self._adam = [], None
        unfreeze(trainer)


def _order(triples: IntArray, known: int, facts: IntArray) -> IntArray:
    """New entities by distance from the old graph, then by facts; the first new one is number 0."""
    far = distances(triples, known, len(facts))[known:]
    return np.lexsort((facts[known:], far))


class _Adapted:
    """Rows of a table that are a start plus a product; layers are padded to the same size.

    Args:
        table: The table.
        rows: The rows, sorted by layer, [n].
        ranks: The rank of each layer.
        generator: Draws the second factor.
    """

    def __init__(
        self, table: Table, rows: Tensor, ranks: list[int], generator: torch.Generator
    ) -> None:
        device = table.rows.device
        self._table, self._rows = table, rows.to(device)
        self._base = table.rows[self._rows].float()
        self._shape = len(ranks), -(-len(rows) // len(ranks)), table.width  # layers, rows, numbers
        layers, size, width = self._shape
        rank = torch.tensor(ranks, device=device)[:, None, None]
        most = max(ranks)
        self._used = (torch.arange(most, device=device) < rank).float() / rank  # [l, 1, r]
        drawn = torch.randn(layers, most, width, generator=generator, device=device)
        self._left = nn.Parameter(torch.zeros(layers, size, most, device=device))
        self._right = nn.Parameter(drawn)

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [self._left, self._right]

    @torch.no_grad()
    def take_gradient(self) -> None:
        """Move the gradient from the rows to the factors; the table's optimiser must not use it."""
        layers, size, width = self._shape
        self._table.accumulate(self._rows, torch.zeros_like(self._base))  # mark all as touched
        gradient = self._table.gradient_of(self._rows)
        padded = gradient.new_zeros(layers * size, width)
        padded[: len(self._rows)] = gradient
        self._table.add_gradient(self._rows, -gradient)
        by_layer = padded.view(self._shape)
        self._left.grad = (by_layer @ self._right.transpose(1, 2)) * self._used
        self._right.grad = (self._left * self._used).transpose(1, 2) @ by_layer

    @torch.no_grad()
    def put_rows(self) -> None:
        product = ((self._left * self._used) @ self._right).flatten(0, 1)
        rows = self._base + product[: len(self._rows)]
        self._table.rows.index_copy_(0, self._rows, rows.to(self._table.rows.dtype))


class FastKGE(Composed, name="fastkge"):
    """Learns low-rank adapters of new rows; old rows never change."""

    ingredients = (Adapters,)
    needs_links = True

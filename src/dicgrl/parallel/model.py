"""A knowledge-graph embedding whose entities are dealt to ranks; relations are on each of them.

A step works on a small ordinary model: rows of the entities that it needs side by side in a table
of its own, the same relations, the same scorer with its fast paths. So do ranks, whose candidates
are the entities that a rank owns.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, cast

import torch
from torch import Tensor, nn
from typing_extensions import override

from dicgrl.errors import UserError
from dicgrl.models import KnowledgeModel
from dicgrl.models.components import Components, Route
from dicgrl.models.fork import fork_table
from dicgrl.models.knowledge import Side
from dicgrl.models.rows import all_rows_of
from dicgrl.models.table import Table
from dicgrl.parallel.group import Group
from dicgrl.parallel.table import ShardedTable
from dicgrl.training.adam import MOMENTS

_PASSING = 1 << 22  # numbers of candidates that pass through a rank at a time


class ShardedModel(KnowledgeModel):
    """A model of which this process has some entities.

    Args:
        group: The processes.
        configuration: As of `KnowledgeModel.configuration`, components as they are made.
        device: Where this rank's share lives.

    Raises:
        UserError: The model has weights that are rows of no table.
    """

    def __init__(
        self, group: Group, configuration: dict[str, Any], device: torch.device | str
    ) -> None:
        super().__init__(**configuration, device=device)
        weights = [name for name, _ in self.named_parameters()]
        if weights:
            raise UserError(
                f"{self.name} has weights besides its vectors ({', '.join(weights)}), which "
                "several processes cannot share yet: use transe, distmult, complex or rotate"
            )
        self.group = group
        dtype = self.entities.rows.dtype
        self.entities = ShardedTable(self.size, device, dtype, group, self.count)

    @classmethod
    def of(cls, whole: KnowledgeModel, group: Group, device: torch.device) -> ShardedModel:
        """This rank's share of a model."""
        configuration = whole.configuration()
        if configuration["components"] is not None:
            configuration["components"] = Components(**configuration["components"])
        model = cls(group, configuration, device)
        model.generator.set_state(whole.generator.get_state())
        for name, table in model.tables().items():
            buffers = whole.tables()[name].snapshot()
            if name != "entities":
                buffers = {key: values.to(device) for key, values in buffers.items()}
            table.adopt(buffers)
        model.eval()
        return model

    @property
    def sharded(self) -> ShardedTable:
        """The entities."""
        return cast(ShardedTable, self.entities)

    def whole(self) -> KnowledgeModel | None:
        """The model in the memory of rank 0's host; None on other ranks, which hand theirs in."""
        buffers = self.sharded.hand_in(("rows", *MOMENTS))
        if self.group.rank:
            return None
        configuration = self.configuration()
        if configuration["components"] is not None:
            configuration["components"] = Components(**configuration["components"])
        model = KnowledgeModel(**configuration)
        model.generator.set_state(self.generator.get_state())
        model.entities.adopt(buffers)
        for name, table in self.replicated().items():
            values = {key: each.cpu() for key, each in table.snapshot().items()}
            model.tables()[name].adopt(values)
        model.eval()
        return model

    def replicated(self) -> dict[str, Table]:
        """Tables that every rank has: relations, and attention that goes by them."""
        return {name: table for name, table in self.tables().items() if name != "entities"}

    def own_tables(self) -> dict[str, Table]:
        """What this rank trains: rows of its own entities, and what every rank has."""
        return self.tables() | {"entities": self.sharded.own}

    def beside(self, rows: Tensor) -> KnowledgeModel:
        """An ordinary model whose entities have these rows, [n K, size], and no others."""
        table = Table(self.size, rows.device, rows.dtype)
        table.adopt({"rows": rows})
        return self._with(table)

    def hosting(self, guests: Tensor) -> KnowledgeModel:
        """An ordinary model of one's own entities, and behind them guests, [g]; not to be trained.

        Until the next one is made, and as long as nothing is learned, it can be used.
        """
        rows = self.sharded.fetch(guests).rows
        table = fork_table(self.sharded.own, len(rows))
        table.grow(rows)
        return self._with(table)

    def _with(self, entities: Table) -> KnowledgeModel:
        made = copy(self)
        made.entities = entities
        return made

    @override
    def candidate_scores(self, triples: Tensor, side: Side, start: int, stop: int) -> Tensor:
        if not isinstance(self.entities, ShardedTable):
            return super().candidate_scores(triples, side, start, stop)
        most = max(_PASSING // self.length, 1)
        blocks = [
            super(ShardedModel, self).candidate_scores(triples, side, at, min(at + most, stop))
            for at in range(start, stop, most)
        ]
        return torch.cat(blocks, 1) if blocks else super().candidate_scores(triples, side, 0, 0)

    @override
    def _side_by_side(self, entities: range, route: Route | None) -> Tensor:
        if not isinstance(self.entities, ShardedTable):
            return super()._side_by_side(entities, route)
        ids = torch.arange(entities.start, entities.stop, device=self.device)
        parts = self.entities.gather(all_rows_of(ids, self.count)).view(len(ids), self.count, -1)
        if route is not None:
            parts = parts.index_select(1, route.chosen[0])
        return parts.flatten(1)


class OwnShare:
    """What the training loop sees of a model: this rank's own rows.

    Args:
        model: The model.
    """

    def __init__(self, model: ShardedModel) -> None:
        self._model = model

    def tables(self) -> dict[str, Table]:
        """Its tables by name."""
        return self._model.own_tables()

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """It has no dense parameters."""
        return iter(())

    def train(self, mode: bool = True) -> object:
        """Switch the model."""
        return self._model.train(mode)

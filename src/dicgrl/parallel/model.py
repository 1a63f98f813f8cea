"""A knowledge graph embedding whose entities are distributed over ranks, with relations on each.

A step works on a small ordinary model, which has a table with the rows of the entities that it
needs, the same relations, and the same scorer with its fast paths. Ranking does the same, with the
entities that a rank owns as candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from typing_extensions import override

from dicgrl.models import KnowledgeModel
from dicgrl.models.components import Components
from dicgrl.models.fork import fork_table
from dicgrl.models.knowledge import Side
from dicgrl.models.table import Table
from dicgrl.parallel.group import Group
from dicgrl.parallel.shards import Shards
from dicgrl.parallel.table import ShardedTable
from dicgrl.training.adam import MOMENTS
from dicgrl.training.known import HEAD, TAIL


@dataclass(frozen=True, slots=True)
class Hosted:
    """The entities of triples with local numbers: first a rank's own entities, then guests.

    Attributes:
        own: Number of entities that the rank owns.
        guests: Entities of other ranks, sorted.
        shards: Which rank owns which entity.
        rank: Number of the rank.
        model: A model of these entities, not to be trained. It is valid until the next one is
            created, and as long as nothing is learned.
    """

    own: int
    guests: Tensor
    shards: Shards
    rank: int
    model: KnowledgeModel

    def triples(self, triples: Tensor) -> Tensor:
        """The triples [n, 3] with local numbers; -1 for an entity that is not here."""
        made = triples.clone()
        for column in (HEAD, TAIL):
            made[:, column] = self._numbers(triples[:, column].contiguous())
        return made

    def known(self, triples: Tensor) -> Tensor:
        """The triples whose entities are here."""
        here = self.triples(triples)
        return here[(here[:, HEAD] >= 0) & (here[:, TAIL] >= 0)]

    def _numbers(self, entities: Tensor) -> Tensor:
        found = torch.full_like(entities, -1)
        if len(self.guests):
            at = torch.searchsorted(self.guests, entities).clamp_(max=len(self.guests) - 1)
            found = torch.where(self.guests[at] == entities, self.own + at, found)
        mine = self.shards.owners(entities) == self.rank
        return torch.where(mine, self.shards.places(entities), found)


class ShardedModel(KnowledgeModel):
    """A model of which this process owns some entities.

    Args:
        group: The processes.
        configuration: As in `KnowledgeModel.configuration`, but with `Components` objects.
        device: Device of this rank's share.
    """

    def __init__(
        self, group: Group, configuration: dict[str, Any], device: torch.device | str
    ) -> None:
        super().__init__(**configuration, device=device)
        self.group = group
        dtype = self.entities.rows.dtype
        self.entities = ShardedTable(self.size, device, dtype, group, self.count)

    @classmethod
    def of(cls, whole: KnowledgeModel, group: Group, device: torch.device) -> ShardedModel:
        """This rank's share of a whole model."""
        configuration = whole.configuration()
        if configuration["components"] is not None:
            configuration["components"] = Components(**configuration["components"])
        model = cls(group, configuration, device)
        model.generator.set_state(whole.generator.get_state())
        model.sharded.take_share(whole.entities)
        for name, table in model.replicated().items():
            buffers = whole.tables()[name].snapshot()
            table.adopt({key: values.to(device) for key, values in buffers.items()})
        model.eval()
        return model

    @property
    def sharded(self) -> ShardedTable:
        """The entities."""
        return cast(ShardedTable, self.entities)

    def whole(self) -> KnowledgeModel | None:
        """The whole model, in the host memory of rank 0; other ranks send theirs and get None."""
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
        """Tables that every rank has: relations, and attention of relations."""
        return {name: table for name, table in self.tables().items() if name != "entities"}

    def agree(self) -> None:
        """Copy replicated rows from rank 0 to all ranks, as GPUs may round sums differently."""
        for table in self.replicated().values():
            self.group.told(table.rows)

    def own_tables(self) -> dict[str, Table]:
        """The tables that this rank trains: its own entities, and replicated tables."""
        return self.tables() | {"entities": self.sharded.own}

    def beside(self, rows: Tensor) -> KnowledgeModel:
        """An ordinary model with just these rows of entities, [n K, size]."""
        table = Table(self.size, rows.device, rows.dtype)
        table.adopt({"rows": rows})
        return self._with(table)

    def hosting(self, triples: Tensor) -> Hosted:
        """The rank's own entities, together with those of triples [n, 3] as guests."""
        table = self.sharded
        ends = torch.unique(triples[:, [HEAD, TAIL]])
        guests = ends[table.shards.owners(ends) != self.group.rank]
        rows = table.fetch(guests).rows
        beside = fork_table(table.own, len(rows))
        beside.grow(rows)
        own = len(table.own) // self.count
        return Hosted(own, guests, table.shards, self.group.rank, self._with(beside))

    def _with(self, entities: Table) -> KnowledgeModel:
        made = copy(self)
        made.entities = entities
        return made

    @override
    @torch.no_grad()
    def candidate_scores(self, triples: Tensor, side: Side, start: int, stop: int) -> Tensor:
        """As in one process: each rank scores its own candidates, and all get all scores."""
        if not isinstance(self.entities, ShardedTable):
            return super().candidate_scores(triples, side, start, stop)
        shards, group = self.sharded.shards, self.group
        asked = triples.clone()  # entities on the asked side are not needed
        asked[:, TAIL if side == "tail" else HEAD] = triples[:, HEAD if side == "tail" else TAIL]
        here = self.hosting(asked)
        ranges = [[shards.length(end, rank) for end in (start, stop)] for rank in range(group.size)]
        first, last = ranges[group.rank]
        mine = here.model.candidate_scores(here.triples(asked), side, first, last)  # [q, own]
        widest = max(end - begin for begin, end in ranges)
        padded = mine.new_zeros(len(mine), widest)
        padded[:, : last - first] = mine
        scores = mine.new_empty(len(mine), stop - start)
        for rank, theirs in enumerate(group.gathered(padded, "scores")):
            begin, end = ranges[rank]
            entities = shards.entities(stop, rank, scores.device)[begin:end] - start
            scores[:, entities] = theirs[:, : end - begin]
        return scores


class OwnShare:
    """The view of a model that the training loop gets: this rank's own rows.

    Args:
        model: The model.
    """

    def __init__(self, model: ShardedModel) -> None:
        self._model = model

    def tables(self) -> dict[str, Table]:
        """The tables by name."""
        return self._model.own_tables()

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """There are no dense parameters."""
        return iter(())

    def train(self, mode: bool = True) -> object:
        """Switch the model between training and evaluation."""
        return self._model.train(mode)

"""A knowledge-graph embedding whose entities are dealt to ranks; relations are on each of them.

A step works on a small ordinary model: rows of the entities that it needs side by side in a table
of its own, the same relations, the same scorer with its fast paths. So do ranks, whose candidates
are the entities that a rank owns.
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
    """What triples speak of, in the numbers of a rank: first its own entities, then guests.

    Attributes:
        own: How many entities it owns.
        guests: Entities of other ranks, rising.
        shards: Who owns what.
        rank: Its number.
        model: Of these entities; not to be trained. Until the next one is made, and as long as
            nothing is learned, it can be used.
    """

    own: int
    guests: Tensor
    shards: Shards
    rank: int
    model: KnowledgeModel

    def triples(self, triples: Tensor) -> Tensor:
        """The same triples [n, 3]; -1 stands for an entity that is not here."""
        made = triples.clone()
        for column in (HEAD, TAIL):
            made[:, column] = self._numbers(triples[:, column].contiguous())
        return made

    def known(self, triples: Tensor) -> Tensor:
        """Those that are about entities that are here."""
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
    """A model of which this process has some entities.

    Args:
        group: The processes.
        configuration: As of `KnowledgeModel.configuration`, components as they are made.
        device: Where this rank's share lives.
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
        """This rank's share of a model."""
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

    def agree(self) -> None:
        """Let every rank have rank 0's rows of what each has: GPUs may round sums differently."""
        for table in self.replicated().values():
            self.group.told(table.rows)

    def own_tables(self) -> dict[str, Table]:
        """What this rank trains: rows of its own entities, and what every rank has."""
        return self.tables() | {"entities": self.sharded.own}

    def beside(self, rows: Tensor) -> KnowledgeModel:
        """An ordinary model whose entities have these rows, [n K, size], and no others."""
        table = Table(self.size, rows.device, rows.dtype)
        table.adopt({"rows": rows})
        return self._with(table)

    def hosting(self, triples: Tensor) -> Hosted:
        """One's own entities, and beside them what else triples [n, 3] speak of."""
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
        """As of one process; each rank scores its own candidates, and all are told the scores."""
        if not isinstance(self.entities, ShardedTable):
            return super().candidate_scores(triples, side, start, stop)
        shards, group = self.sharded.shards, self.group
        asked = triples.clone()  # what stands on the asked side is not needed
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

"""A table whose rows are distributed over ranks: each owns some, with their gradients and state.

Methods with ids take those of the whole table, and every rank must call them in the same order.
`fetch` gets rows from other ranks. `Fetched.send_back` returns their gradients to the owners, where
gradients of a row from several ranks are added up. A rank's own rows are an ordinary table (`own`),
which is all that the optimiser sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.models.rows import all_rows_of
from dicgrl.models.table import Table
from dicgrl.parallel.group import Group
from dicgrl.parallel.shards import Shards


class OwnRows(Table):
    """The rows of a sharded table that a rank owns."""

    whole_length = 0

    @property
    @override
    def whole(self) -> int:
        return self.whole_length


@dataclass(frozen=True, slots=True)
class Fetched:
    """Rows of entities that were fetched from their owners.

    Attributes:
        rows: All rows of the entities, entity by entity, in the type of the table.
        table: The table that they come from.
        order: The entities sorted by owner.
        to: How many were requested from each rank.
        back: How many each rank has requested here.
        places: The places of these among the rank's own entities.
    """

    rows: Tensor
    table: ShardedTable
    order: Tensor
    to: list[int]
    back: list[int]
    places: Tensor

    def send_back(self, gradient: Tensor, used: Tensor) -> None:
        """Add gradients of the rows to those of their owners.

        Args:
            gradient: Gradient of each row.
            used: Whether a step used the row; a row that no rank has used does not move.
        """
        table, count = self.table, self.table.count
        if count > 1:  # some rows of a requested entity may be unused
            gradient = torch.cat([gradient, used[:, None].to(gradient.dtype)], 1)
        by_entity = gradient.reshape(len(self.order), count * gradient.shape[1])[self.order]
        arrived = table.group.exchange(by_entity, self.to, self.back, "gradients")
        values, rows = arrived.view(-1, gradient.shape[1]), all_rows_of(self.places, count)
        if count > 1:
            counts = values[:, -1] > 0
            values, rows = values[counts, :-1], rows[counts]
        if len(rows):
            table.own.accumulate(rows, values)


class ShardedTable(Table):
    """Rows that are distributed over ranks by entity.

    Args:
        width: Length of a row.
        device: Device of a rank's own rows.
        dtype: Type of the rows.
        group: The ranks.
        count: Number of rows per entity.

    Attributes:
        own: The rows that this rank owns.
        shards: Which rank owns which entity.
    """

    def __init__(
        self,
        width: int,
        device: torch.device | str,
        dtype: torch.dtype,
        group: Group,
        count: int = 1,
    ) -> None:
        super().__init__(width, device, dtype)
        self.own = OwnRows(width, device, dtype)
        self.group, self.count = group, count
        self.shards = Shards(group.size)

    @property
    def entities(self) -> int:
        """Number of entities on all ranks."""
        return self._length // self.count

    def own_entities(self, rank: int | None = None) -> Tensor:
        """The entities that a rank owns (by default this one), sorted, [n]."""
        rank = self.group.rank if rank is None else rank
        return self.shards.entities(self.entities, rank, self.own.rows.device)

    def fetch(self, entities: Tensor) -> Fetched:
        """Fetch all rows of distinct entities [n]."""
        owners = self.shards.owners(entities)
        order = owners.argsort(stable=True)
        to: list[int] = torch.bincount(owners, minlength=self.group.size).tolist()
        back = self.group.counts(to, entities.device)
        asked = self.shards.places(entities[order])
        places = self.group.exchange(asked, to, back, "ids")
        wide = self.count * self.width
        found = self.own.rows[all_rows_of(places, self.count)].view(len(places), wide)
        arrived = self.group.exchange(found, back, to, "rows")
        rows = torch.empty_like(arrived)
        rows[order] = arrived
        return Fetched(rows.view(-1, self.width), self, order, to, back, places)

    @override
    @torch.no_grad()
    def gather(self, ids: Tensor) -> Tensor:
        """Rows by id, [*ids.shape, width]; without a gradient."""
        entities, which = torch.unique(ids // self.count, return_inverse=True)
        return self.fetch(entities).rows[which * self.count + ids % self.count].to(self.learned)

    def mine(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """A mask of the rows [n] that this rank owns, and their places."""
        entities = ids // self.count
        here = self.shards.owners(entities) == self.group.rank
        places = self.shards.places(entities[here]) * self.count + ids[here] % self.count
        return here, places

    # The methods of `Table`, for ids of the whole table.

    @override
    def gains(self, rows: int) -> int:
        return self.own.gains(-(-rows // (self.count * self.group.size)) * self.count)

    @override
    def reserve(self, rows: int) -> None:
        self.own.reserve(len(self.mine(self._next(rows))[1]))

    @override
    def grow(self, rows: Tensor) -> None:
        here, _ = self.mine(self._next(len(rows)))
        self.own.grow(rows[here.to(rows.device)])
        self._lengthen(len(rows))

    def _next(self, rows: int) -> Tensor:
        return torch.arange(self._length, self._length + rows, device=self.own.rows.device)

    def _lengthen(self, rows: int) -> None:
        self._length += rows
        self.own.whole_length = self._length

    def take_share(self, whole: Table) -> None:
        """Fill this empty table with the rank's own rows and state from a whole table."""
        self._lengthen(len(whole))
        mine = all_rows_of(self.own_entities().to(whole.rows.device), self.count)
        place = self.own.rows.device
        self.own.adopt({name: values.to(place) for name, values in whole.read(mine).items()})

    def hand_in(self, names: tuple[str, ...]) -> dict[str, Tensor]:
        """The whole table on rank 0, in host memory; empty on other ranks.

        Args:
            names: Names of possible buffers; those that any rank has are sent.
        """
        own, group = self.own, self.group
        mine = [own.state(name).shape[1] if own.has(name) else 0 for name in names]
        widths = group.largest(torch.tensor(mine, device=own.rows.device)).tolist()
        entities = [self.own_entities(rank) for rank in range(group.size)]
        found: dict[str, Tensor] = {}
        for name, width in zip(names, widths, strict=True):
            if not width:
                continue
            values = own.state(name, width)
            lengths = [len(some) * self.count for some in entities]
            for rank, rows in group.hand_in(values, lengths):
                if name not in found:
                    found[name] = torch.empty(self._length, width, dtype=values.dtype)
                found[name][all_rows_of(entities[rank], self.count).cpu()] = rows.cpu()
        return found

    @override
    def put(self, ids: Tensor, values: Tensor) -> None:
        here, places = self.mine(ids)
        self.own.put(places, values[here])

    @override
    def restrict(self, ids: Tensor | None, pace: Tensor | None = None) -> None:
        if ids is None:
            self.own.restrict(None)
            return
        here, places = self.mine(ids)
        self.own.restrict(places, None if pace is None else pace[here])

    @override
    def slow(self, pace: Tensor) -> None:
        self.own.slow(pace[all_rows_of(self.own_entities(), self.count)])

    @override
    def rest(self, ids: Tensor, share: float = 0.0) -> None:
        self.own.rest(self.mine(ids)[1], share)

    @override
    def wake(self, ids: Tensor) -> None:
        self.own.wake(self.mine(ids)[1])

    @property
    @override
    def gradient(self) -> Tensor:
        return self.own.gradient  # only its device and type are used

    @property
    @override
    def sparse(self) -> bool:
        return self.own.sparse

    @override
    def bytes_of(self, *, state: bool = True) -> int:
        return self.own.bytes_of(state=state)

    @property
    @override
    def rows(self) -> NoReturn:
        raise NotImplementedError("rows of a sharded table lie on several ranks: gather some")

    @override
    def adopt(self, buffers: dict[str, Tensor]) -> NoReturn:
        raise NotImplementedError("a rank takes its share of a whole table: `take_share`")

    @override
    def state(self, name: str, width: int | None = None) -> NoReturn:
        raise NotImplementedError("so does their state")

    @override
    def read(self, ids: Tensor | None, *, state: bool = True) -> NoReturn:
        raise NotImplementedError("a copy is made of one's own rows")

"""Which rank owns which entity.

Entities are dealt like cards, one to each rank in a round; a hash of the round says which rank is
first. So ranks own equally many, whatever the graph's size, and ownership does not depend on the
order of entities: files often list heads and tails, or persons and films, in turn. When the graph
grows, dealing continues and old rows stay where they are. Nothing has to be stored or looked up.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_FACTOR, _FACTOR_2 = 0x2545F4914F6CDD1D, 0x27D4EB2F165667C5
_POSITIVE = (1 << 62) - 1


@dataclass(frozen=True, slots=True)
class Shards:
    """How entities are dealt.

    Attributes:
        size: Number of ranks.

    Example:
        >>> shards = Shards(2)
        >>> shards.owners(torch.arange(8)).tolist()
        [0, 1, 1, 0, 0, 1, 0, 1]
        >>> shards.entities(8, rank=1).tolist(), shards.places(torch.arange(8)).tolist()
        ([1, 2, 5, 7], [0, 0, 1, 1, 2, 2, 3, 3])
    """

    size: int

    def owners(self, entities: Tensor) -> Tensor:
        """The rank of each entity, [...]."""
        return (entities + self._first(entities // self.size)) % self.size

    def places(self, entities: Tensor) -> Tensor:
        """The position of each entity among those of its owner, which are sorted, [...]."""
        return entities // self.size

    def entities(self, count: int, rank: int, device: torch.device | str = "cpu") -> Tensor:
        """The entities that a rank owns among the first `count`, sorted, [n]."""
        rounds = torch.arange(-(-count // self.size), device=device)
        found = rounds * self.size + (rank - self._first(rounds)) % self.size
        return found[found < count]  # the last round may be incomplete

    def length(self, count: int, rank: int) -> int:
        """How many of the first `count` entities a rank owns."""
        whole = count // self.size
        last = torch.arange(whole * self.size, count)
        return whole + int((self.owners(last) == rank).sum())

    def _first(self, rounds: Tensor) -> Tensor:
        """The first rank of each round, [...]: a hash that is the same on every device."""
        mixed = (rounds + 1) * _FACTOR  # overflows 64 bits, as intended
        mixed = ((mixed & _POSITIVE) >> 29 ^ mixed) * _FACTOR_2
        return ((mixed & _POSITIVE) >> 32) % self.size

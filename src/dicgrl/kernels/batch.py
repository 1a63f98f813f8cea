"""What a kernel on a batch of triples and their negatives is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor


class Pace(NamedTuple):
    """How fast rows may change, 0 for not at all; gradients of such rows are not needed.

    Attributes:
        entities: [N * K, 1].
        relations: [R, 1] or [R * K, 1].
        attention: [R, 1]; None where it does not learn from the scores.
    """

    entities: Tensor
    relations: Tensor
    attention: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Where the vectors of a batch lie.

    Attributes:
        entities: Rows of all entities, [N * K, size].
        relations: Rows of all relations, [R, l] or [R * K, size].
        triples: Head, relation, tail, [b, 3].
        others: Replacements, the heads first, [b, m].
        heads: How many of them replace the head.
        chosen: Components of each triple, [b, n]; None for plain vectors.
        count: K; 1 for plain vectors.
        divided: Whether relations have components too.
        p: Norm of the distance, 1 or 2.
        pace: How fast rows may change; None where all may.
    """

    entities: Tensor
    relations: Tensor
    triples: Tensor
    others: Tensor
    heads: int
    chosen: Tensor | None
    count: int
    divided: bool
    p: int
    pace: Pace | None = None

"""What a kernel on a batch of triples and their negatives is given."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


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
        pace: How fast rows of entities may change, 0 for not at all, [N * K, 1]; None where all
            may. Gradients of the others are not needed.
        asked: Whether what other heads and other tails are compared with wants a gradient: an end,
            the relation or the gates may change, [b, 2]; None where all do.
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
    pace: Tensor | None = None
    asked: Tensor | None = None

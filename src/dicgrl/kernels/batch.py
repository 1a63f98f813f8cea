"""A batch of triples and their negatives, as fast paths and kernels receive it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from torch import Tensor

# How a candidate is compared with a query: by the distance of norm 1 or 2, by the dot product, or
# by the sum of the moduli of complex differences, their real and imaginary parts side by side.
Compare = Literal["l1", "l2", "dot", "modulus"]


class Pace(NamedTuple):
    """How fast rows may change. 0 means frozen; gradients of such rows are not needed.

    Attributes:
        entities: [N * K, 1].
        relations: [R, 1] or [R * K, 1].
        attention: [R, 1]; None if it does not learn from the scores.
    """

    entities: Tensor
    relations: Tensor
    attention: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Says where the vectors of b triples and their negatives are.

    The negatives of a triple use the same components as the triple.

    Attributes:
        entities: Rows of all entities, [N * K, size]; possibly of 16 bits, see `vectors`.
        relations: Rows of all relations, [R, w] for relations of w numbers, or [R * K, w / n].
        triples: Head, relation, tail, [b, 3].
        others: Replacements, heads first, [b, m]; if shared, [b / share, m], rounded up.
        heads: How many of them replace the head.
        chosen: Components of each triple, [b, n]; None for plain vectors.
        count: K; 1 for plain vectors.
        divided: Whether relations have components, too.
        pace: How fast rows may change; None if all may.
        share: How many consecutive triples have the same replacements; more than one only for plain
            vectors, and only if the fast path supports it.
        claims: For each row of entities the place of its gradient plus 1, [N * K], int32; None if
            every row has a gradient. Only in a backward pass, and only if the fast path
            `handles_places`.
    """

    entities: Tensor
    relations: Tensor
    triples: Tensor
    others: Tensor
    heads: int
    chosen: Tensor | None
    count: int
    divided: bool
    pace: Pace | None = None
    share: int = 1
    claims: Tensor | None = None

    def vectors(self, rows: Tensor) -> Tensor:
        """Vectors that rows of entities [k] or [k, n] make up, [k, l]; float32 if of 16 bits."""
        found = vectors_of(self.entities, rows)
        return found.float() if found.dtype.itemsize == 2 else found

    def places(self, rows: Tensor) -> Tensor:
        """Where the gradients of rows of entities [k] are."""
        return rows if self.claims is None else self.claims.index_select(0, rows) - 1

    def entity_rows(self, ids: Tensor) -> Tensor:
        """Rows of entities [b] or [b, m]: [..., n], or the ids themselves if plain."""
        if self.chosen is None:
            return ids
        chosen = self.chosen if ids.dim() == 1 else self.chosen[:, None]
        return ids[..., None] * self.count + chosen

    def relation_rows(self) -> Tensor:
        """Rows of the triples' relations, [b, n], or [b] if relations are not divided."""
        ids = self.triples[:, 1]
        return self.entity_rows(ids) if self.divided else ids

    def sides(self) -> tuple[slice, slice]:
        """Columns of `others` that replace heads, and those that replace tails."""
        return slice(0, self.heads), slice(self.heads, None)


def vectors_of(table: Tensor, rows: Tensor) -> Tensor:
    """Vectors that rows [k] or [k, n] make up, [k, l]; on a CPU much faster than indexing."""
    length = rows.shape[1:].numel() * table.shape[1]
    return table.index_select(0, rows.reshape(-1)).view(len(rows), length)

"""Scoring functions: one class with a `score(head, relation, tail)`, found by name.

A scorer sees vectors, never ids, parts or components; so any scorer works plain and disentangled,
with every strategy. To add one, subclass `Scorer` under a name that no other module has taken (see
examples/distmult.py).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from dicgrl.common.registry import register
from dicgrl.errors import unknown_name


class Scorer(nn.Module):
    """The score of triples given their vectors; higher means more likely.

    Args:
        dim: Length of the vectors that `score` is given.

    Example:
        >>> class Dot(Scorer, name="dot-of-the-docs"):
        ...     def score(self, head, relation, tail):
        ...         return (head * relation * tail).sum(-1)
        >>> ones = torch.ones(2, 3)
        >>> scorer("dot-of-the-docs")(3).score(ones, ones, ones)
        tensor([3., 3.])
    """

    registry: ClassVar[dict[str, type[Scorer]]] = {}
    name: ClassVar[str]

    def __init_subclass__(cls, name: str | None = None) -> None:
        super().__init_subclass__()
        if name is not None:
            register(Scorer.registry, "model", name, cls)
            cls.name = name

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """Scores [...] of vectors [..., dim] whose leading shapes broadcast."""
        raise NotImplementedError

    def score_tails(self, head: Tensor, relation: Tensor, tails: Tensor) -> Tensor:
        """Scores [q, c] of q (head, relation) pairs with each of c tails [c, dim].

        Override it where all pairs can be scored faster than by broadcasting.
        """
        return self.score(head[:, None], relation[:, None], tails[None])

    def score_heads(self, heads: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """Scores [q, c] of q (relation, tail) pairs with each of c heads [c, dim]."""
        return self.score(heads[None], relation[:, None], tail[:, None])

    def place(self, known: Tensor, relation: Tensor, side: str) -> Tensor | None:
        """Where the head or tail of a triple should lie, given its other end; None if not known.

        New entities start there. Vectors are [m, dim]; `side` is the end that is asked for.
        """
        del known, relation, side
        return None

    def between(self, head: Tensor, tail: Tensor) -> Tensor | None:
        """The relation that fits a head and a tail, [m, dim]; None if not known."""
        del head, tail
        return None

    def pair_bytes(self) -> int:
        """Bytes that scoring one pair by broadcasting needs at a time; bounds the block size."""
        return 4 * 3 * self.dim

    def initialise(self, generator: torch.Generator) -> None:
        """Set the start values of the scorer's own parameters, if it has any."""

    def initial(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        """Start values of new rows, on the CPU so that they do not depend on the device."""
        bound = 10 / self.dim
        return torch.empty(count, width).uniform_(-bound, bound, generator=generator)


def scorer(name: str) -> type[Scorer]:
    """The scoring function of that name."""
    if name not in Scorer.registry:
        raise unknown_name("model", name, Scorer.registry)
    return Scorer.registry[name]

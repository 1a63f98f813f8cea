"""Scoring functions: one class with a `score(head, relation, tail)`, found by name.

A scorer sees vectors, never ids, parts or components; so any scorer works plain and disentangled,
with every strategy. To add one, subclass `Scorer` under a name that no other module has taken (see
examples/pairre.py); everything but `score` is optional.

Speed is optional, too. A kernel that works on gathered vectors belongs in `score`, as in ConvKB.
One that gathers the vectors itself is a fast path (`dicgrl.models.fast`), returned by `fast_batch`
or `fast_counts`, as in TransE. Scorers without a fast path take the generic one, through `score`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dicgrl.common.options import Section
from dicgrl.common.registry import register
from dicgrl.errors import UserError, unknown_name
from dicgrl.models.fast import FastBatch, FastCounts, Queries, Side

Regulariser = Callable[[Tensor, Tensor, Tensor], Tensor]

# Each fast path, with the methods that it must agree with.
_STANDS_FOR = {
    "fast_batch": ("score",),
    "fast_counts": ("score", "score_tails", "score_heads"),
    "queries": ("score", "score_tails", "score_heads"),
    "score_relations": ("score",),
}


@dataclass(frozen=True)
class ScorerSettings(Section):
    """Settings of a scoring function: the arguments of its class besides `dim`."""


class Scorer(nn.Module):
    """Scores triples given their vectors; higher means more likely.

    A subclass that changes how triples are scored does not inherit the fast paths of the old score,
    but may define its own.

    Attributes:
        Settings: Its settings, which it takes as arguments besides `dim`.
        defaults: Better defaults for other settings, such as the loss, by name.
        multiple: How many numbers of a vector belong together, such as the two of a complex number.
            The length of a component must be a multiple of this.
        pinpoints: Whether nothing could score higher than `place_entity`, as with a distance.

    Args:
        dim: Length of the entities' vectors that `score` is given.

    Example:
        >>> class Dot(Scorer, name="dot-of-the-docs"):
        ...     def score(self, head, relation, tail):
        ...         return (head * relation * tail).sum(-1)
        >>> ones = torch.ones(2, 3)
        >>> scorer("dot-of-the-docs")(3).score(ones, ones, ones)
        tensor([3., 3.])
    """

    registry: ClassVar[dict[str, type[Scorer]]] = {}
    Settings: ClassVar[type[ScorerSettings]] = ScorerSettings
    defaults: ClassVar[Mapping[str, Any]] = {}
    multiple: ClassVar[int] = 1
    pinpoints: ClassVar[bool] = False
    name: ClassVar[str]

    def __init_subclass__(cls, name: str | None = None) -> None:
        super().__init_subclass__()
        for path, methods in _STANDS_FOR.items():
            if any(depth(cls, method) < depth(cls, path) for method in methods):
                setattr(cls, path, getattr(Scorer, path))
        if name is not None:
            register(Scorer.registry, "model", name, cls)
            cls.name = name

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """Scores [...] of vectors [..., dim] whose leading shapes broadcast.

        Vectors of relations are [..., w] if `relation_width` differs.
        """
        raise NotImplementedError

    def score_tails(self, head: Tensor, relation: Tensor, tails: Tensor) -> Tensor:
        """Scores [q, c] of q (head, relation) pairs with each of c tails [c, dim].

        Override it if all pairs can be scored faster than by broadcasting.
        """
        return self.score(head[:, None], relation[:, None], tails[None])

    def score_heads(self, heads: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """Scores [q, c] of q (relation, tail) pairs with each of c heads [c, dim]."""
        return self.score(heads[None], relation[:, None], tail[:, None])

    def score_relations(self, head: Tensor, relations: Tensor, tail: Tensor) -> Tensor:
        """Scores [q, c] of q (head, tail) pairs with each of c relations [c, w]."""
        return self.score(head[:, None], relations[None], tail[:, None])

    def pair_bytes(self) -> int:
        """Bytes of memory per pair when scoring by broadcasting; bounds the block size."""
        return 4 * 3 * self.dim

    def relation_width(self, width: int) -> int:
        """Length of a relation's vector if an entity's has length `width`.

        Called for whole vectors and for components, and must be the same share of both. A component
        of a relation belongs to the same component of entities.
        """
        return width

    def initialise(self, generator: torch.Generator) -> None:
        """Initialise the scorer's own parameters, if it has any."""

    def initial(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        """Initial values of new rows, on the CPU so that they do not depend on the device.

        Used for entities, and for relations unless `initial_relations` is overridden.
        """
        bound = 10 / self.dim
        return torch.empty(count, width).uniform_(-bound, bound, generator=generator)

    def initial_relations(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        """Initial values of new rows of relations; like those of entities unless overridden."""
        return self.initial(count, width, generator)

    def place_entity(self, given: Tensor, relation: Tensor, side: Side) -> Tensor | None:
        """Where the head or tail of a triple should be, [m, dim]; None if not known.

        New entities start there; m may be 0.

        Args:
            given: Vectors of the other end, [m, dim].
            relation: Vectors of the relations, [m, w].
            side: The end that is asked for.
        """
        del given, relation, side
        return None

    def place_relation(self, head: Tensor, tail: Tensor) -> Tensor | None:
        """The relation that fits a head and a tail, [m, w]; None if not known.

        New relations start at the mean over their triples; m may be 0. The values may also be
        anything whose mean `settle_relation` can turn into a relation.
        """
        del head, tail
        return None

    def settle_relation(self, mean: Tensor) -> Tensor:
        """Relations, or components of them, from the mean of the results of `place_relation`.

        Override it if the mean of what fits is not what fits best, as with angles.
        """
        return mean

    def regulariser(self) -> Regulariser | None:
        """A regularisation term for triples; None for none.

        It is a function of heads [b, dim], relations [b, w] and tails [b, dim] that returns [b].
        Its weighted mean over the triples, without negatives, is added to the loss.
        """
        return None

    def queries(self) -> Queries | None:
        """How to compare all entities with a question at once; None if not supported.

        The scores must agree with those of `score_tails` and `score_heads`.
        """
        return None

    def fast_batch(self, rows: Tensor) -> FastBatch | None:
        """A fast path through a training batch; None if there is none.

        Args:
            rows: Rows of the entities, which tell the device and the type of numbers.
        """
        del rows
        return None

    def fast_counts(self, rows: Tensor) -> FastCounts | None:
        """A fast path to the counts behind ranks; None if there is none.

        Args:
            rows: Rows of the entities, which tell the device and the type of numbers.
        """
        del rows
        return None


def scorer(name: str) -> type[Scorer]:
    """Look up a scoring function by name."""
    if name not in Scorer.registry:
        raise unknown_name("model", name, Scorer.registry)
    return Scorer.registry[name]


def check_multiple(name: str, size: int, used: int) -> None:
    """Refuse vectors that a scorer cannot read.

    Args:
        name: The scoring function.
        size: Length of a component, or of a plain vector.
        used: How many components a triple uses; 1 for a plain vector.

    Raises:
        UserError: Numbers that belong together would be split between components.

    Example:
        >>> check_multiple("complex", 25, 4)
        Traceback (most recent call last):
        dicgrl.errors.UserError: dim=100: complex takes 2 numbers together, and a component \
would have 25; dim=104 suits it
    """
    multiple = scorer(name).multiple
    if size % multiple:
        suits = used * (size + -size % multiple)
        whole = "a component" if used > 1 else "a vector"
        raise UserError(
            f"dim={used * size}: {name} takes {multiple} numbers together, and {whole} would have "
            f"{size}; dim={suits} suits it"
        )


def depth(cls: type, method: str) -> int:
    """How far up in the class hierarchy a method is defined; 0 for the class itself."""
    return next(depth for depth, base in enumerate(cls.__mro__) if method in vars(base))

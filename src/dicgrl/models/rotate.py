"""RotatE: f = -sum_j |h_j e^(i theta_j) - t_j|, of complex numbers (Sun et al. 2019)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.models.fast import Side
from dicgrl.models.queries import Modulus, QueryScorer
from dicgrl.models.queries.numbers import as_complex, as_real


class RotatE(QueryScorer, name="rotate"):
    """A relation rotates every complex number of an entity by an angle theta.

    Args:
        dim: Length of the entities' vectors, two for each complex number; a relation has one angle
            for each of these.

    Example:
        >>> head, tail = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> quarter = torch.tensor([math.pi / 2])
        >>> (RotatE(2).score(head, quarter, tail) > -1e-6).item()
        True
        >>> (RotatE(2).score(tail, quarter, head) < -1.9).item()
        True
    """

    likeness = Modulus()
    multiple = 2
    pinpoints = True
    defaults: ClassVar[Mapping[str, Any]] = {"margin": 4.0}  # sums half as many terms as TransE

    @override
    def query(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        angle = relation if side == "tail" else -relation
        return as_real(as_complex(given) * torch.polar(torch.ones_like(angle), angle))

    @override
    def query_gradients(
        self, given: Tensor, relation: Tensor, side: Side, gradient: Tensor
    ) -> tuple[Tensor, Tensor]:
        other: Side = "head" if side == "tail" else "tail"
        back = self.query(gradient, relation, other)  # rotated back: then x conj(g) is q conj(g)
        along = (as_complex(given).conj() * as_complex(back)).imag
        return back, along if side == "tail" else -along

    @override
    def relation_width(self, width: int) -> int:
        return width // 2

    @override
    def initial_relations(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        return torch.empty(count, width).uniform_(-math.pi, math.pi, generator=generator)

    @override
    def place_entity(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        return self.query(given, relation, side)

    @override
    def place_relation(self, head: Tensor, tail: Tensor) -> Tensor:
        return as_real(as_complex(tail) * as_complex(head).conj())

    @override
    def settle_relation(self, mean: Tensor) -> Tensor:
        """The angles of the sum, which minimise the squared distances among all rotations."""
        return as_complex(mean).angle()

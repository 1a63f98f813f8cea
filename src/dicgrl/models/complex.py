"""ComplEx: f = Re sum_j h_j r_j conj(t_j), of complex numbers (Trouillon et al. 2016)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.models.fast import Side
from dicgrl.models.queries import Dot, Likeness, QueryScorer
from dicgrl.models.queries.numbers import as_complex, as_real

_SPREAD = 0.2  # products of smaller numbers would be too small to start from


class ComplEx(QueryScorer, name="complex"):
    """DistMult of complex numbers: a relation may tell its head from its tail.

    Args:
        dim: Length of the vectors, two for each complex number.

    Example:
        >>> head, relation, tail = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
        >>> ComplEx(2).score(head, relation, tail), ComplEx(2).score(tail, relation, head)
        (tensor(2.), tensor(-2.))
    """

    likeness: ClassVar[Likeness] = Dot()

    @override
    def query(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        r = as_complex(relation)
        return as_real(as_complex(given) * (r if side == "tail" else r.conj()))

    @override
    def initial(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        return torch.empty(count, width).normal_(0, _SPREAD, generator=generator)

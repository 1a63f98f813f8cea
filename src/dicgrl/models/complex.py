"""ComplEx: f = Re sum_j h_j r_j conj(t_j), of complex numbers (Trouillon et al. 2016)."""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.models.fast import Side
from dicgrl.models.queries import ProductScorer
from dicgrl.models.queries.numbers import as_complex, as_real
from dicgrl.models.queries.product import ridge


class ComplEx(ProductScorer, name="complex"):
    """DistMult with complex numbers, so that a relation can be directed.

    Args:
        dim: Length of the vectors, two for each complex number.
        n3: Weight of the regulariser.

    Example:
        >>> head, relation, tail = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
        >>> ComplEx(2).score(head, relation, tail), ComplEx(2).score(tail, relation, head)
        (tensor(2.), tensor(-2.))
    """

    multiple = 2

    @override
    def query(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        r = as_complex(relation)
        return as_real(as_complex(given) * (r if side == "tail" else r.conj()))

    @override
    def query_gradients(
        self, given: Tensor, relation: Tensor, side: Side, gradient: Tensor
    ) -> tuple[Tensor, Tensor]:
        x, r, g = map(as_complex, (given, relation, gradient))
        if side == "tail":
            return as_real(g * r.conj()), as_real(g * x.conj())
        return as_real(g * r), as_real(g.conj() * x)

    @override
    def moduli(self, vectors: Tensor) -> Tensor:
        return as_complex(vectors).abs()

    @override
    def place_relation(self, head: Tensor, tail: Tensor) -> Tensor:
        h, t = as_complex(head), as_complex(tail)
        both, own = t * h.conj(), h * h.conj()
        return torch.stack([both.real, both.imag, own.real], -1).flatten(-2)

    @override
    def settle_relation(self, mean: Tensor) -> Tensor:
        real, imaginary, own = (mean[..., part::3] for part in range(3))
        return torch.stack([real, imaginary], -1).div(ridge(own)[..., None]).flatten(-2)

"""How well a candidate fits a query, both real vectors: their product, or how near they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from typing_extensions import override

from dicgrl.kernels.batch import Compare
from dicgrl.models.queries.numbers import as_complex


class Likeness(ABC):
    """phi(q, x) of queries and candidates; higher is more alike.

    Attributes:
        compare: Its name among the kernels.
    """

    compare: ClassVar[Compare]

    @abstractmethod
    def of(self, queries: Tensor, candidates: Tensor) -> Tensor:
        """Of vectors [..., l] whose leading shapes broadcast, [...]; differentiable."""

    @abstractmethod
    def matrix(self, queries: Tensor, candidates: Tensor) -> Tensor:
        """Of each of q queries [q, l] and each of c candidates [c, l], [q, c]."""


@dataclass(frozen=True, slots=True)
class Dot(Likeness):
    """Sum of q_i x_i."""

    compare: ClassVar[Compare] = "dot"

    @override
    def of(self, queries: Tensor, candidates: Tensor) -> Tensor:
        return (queries * candidates).sum(-1)

    @override
    def matrix(self, queries: Tensor, candidates: Tensor) -> Tensor:
        return queries @ candidates.T


@dataclass(frozen=True, slots=True)
class Modulus(Likeness):
    """-sum of |q_j - x_j| over complex numbers, their two parts side by side."""

    compare: ClassVar[Compare] = "modulus"

    @override
    def of(self, queries: Tensor, candidates: Tensor) -> Tensor:
        # The gradient of a complex modulus is 0 at 0, where that of a square root is no number.
        return as_complex(queries - candidates).abs().sum(-1).neg()

    @override
    def matrix(self, queries: Tensor, candidates: Tensor) -> Tensor:
        return self.of(queries[:, None], candidates[None])

"""How well a candidate fits a query, both real vectors: their dot product, or their nearness.

Each has three forms: a differentiable one, which is the reference for the others; one for all pairs
of queries and candidates; and one for blocks of a training batch, with hand-written gradients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.kernels import available
from dicgrl.kernels.batch import Compare
from dicgrl.models.queries.numbers import as_complex

_BLOCK = 100_000  # numbers in a block for one core, well within its second-level cache
_SLOPES = 20, 28  # powers of two: numbers of differences at a time, on a CPU and on a GPU
_LEAST = 1e-30  # smaller squared moduli count as zero


class Slopes(NamedTuple):
    """Gradients of a block.

    Attributes:
        candidates: Gradients of the candidates' vectors, [k, m, l].
        queries: Gradients of the queries, [k, l]; None if not requested.
        gates: Gradients of the components' gates through both, [k, n]: vector times gradient,
            summed over a component; None if not requested.
    """

    candidates: Tensor
    queries: Tensor | None
    gates: Tensor | None


class Likeness(ABC):
    """phi(q, x) of queries and candidates; higher is a better fit."""

    @property
    def compare(self) -> Compare | None:
        """Its name in kernels; None if they do not support it."""
        return None

    @abstractmethod
    def of(self, queries: Tensor, candidates: Tensor) -> Tensor:
        """Values for vectors [..., l] whose leading shapes broadcast, [...]; differentiable."""

    @abstractmethod
    def matrix(self, queries: Tensor, candidates: Tensor) -> Tensor:
        """Values for all pairs of queries [q, l] and candidates [c, l], [q, c]."""

    @abstractmethod
    def pairs(self, queries: Tensor, candidates: Tensor) -> Tensor:
        """Values for queries [k, l] and candidates [k, l], pair by pair, [k].

        A pair is rounded in the same way wherever it is, so that ties are exact.
        """

    @abstractmethod
    def slack(self, queries: Tensor, longest: Tensor, scores: Tensor) -> Tensor:
        """How far `matrix` may be from `pairs`, [q].

        Args:
            queries: [q, l].
            longest: Length of the longest candidate.
            scores: A score for each query, [q]; only scores near it matter.
        """

    @abstractmethod
    def block_(self, x: Tensor, queries: Tensor) -> Tensor:
        """Values for queries [k, l] and candidates x [k, m, l], which are overwritten; [k, m]."""

    def pull(self, scores: Tensor, upstream: Tensor) -> Tensor:
        """Factors of the slopes of a block, given its scores and their gradient."""
        del scores
        return upstream

    @abstractmethod
    def slopes_(
        self, x: Tensor, queries: Tensor, pull: Tensor, parts: int, asked: bool = True
    ) -> Slopes:
        """Gradients of a block.

        Args:
            x: The candidates, [k, m, l], overwritten.
            queries: [k, l].
            pull: The result of `pull`, [k, m].
            parts: Number of components whose gates need a gradient; 0 if none do.
            asked: Whether queries and gates need a gradient at all.
        """

    def matrix_slopes(
        self, queries: Tensor, candidates: Tensor, scores: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradients of queries [q, l] and candidates [c, l], a block of differences at a time.

        Args:
            queries: [q, l].
            candidates: [c, l].
            scores: The result of `matrix`, [q, c], or minus infinity where the gradient is 0.
            upstream: Gradient of the scores, [q, c].
        """
        pull = self.pull(scores, upstream)
        d_queries, d_candidates = torch.zeros_like(queries), torch.empty_like(candidates)
        tall = max((1 << _SLOPES[queries.is_cuda]) // max(queries.numel(), 1), 1)
        for first in range(0, len(candidates), tall):
            some = slice(first, first + tall)
            x = candidates[some].expand(len(queries), -1, -1).clone()
            slopes = self.slopes_(x, queries, pull[:, some].contiguous(), 0)
            assert slopes.queries is not None
            d_queries += slopes.queries
            d_candidates[some] = slopes.candidates.sum(0)
        return d_queries, d_candidates


@dataclass(frozen=True, slots=True)
class Dot(Likeness):
    """The dot product, sum of q_i x_i."""

    @property
    @override
    def compare(self) -> Compare:
        return "dot"

    @override
    def of(self, queries: Tensor, candidates: Tensor) -> Tensor:
        return (queries * candidates).sum(-1)

    @override
    def matrix(self, queries: Tensor, candidates: Tensor) -> Tensor:
        return queries @ candidates.T

    @override
    def matrix_slopes(
        self, queries: Tensor, candidates: Tensor, scores: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        return upstream @ candidates, upstream.T @ queries

    @override
    def pairs(self, queries: Tensor, candidates: Tensor) -> Tensor:
        return self.of(queries, candidates)

    @override
    def slack(self, queries: Tensor, longest: Tensor, scores: Tensor) -> Tensor:
        # Whatever the order, a sum is off by at most this share of the sum of absolute values.
        lengths: Tensor = torch.linalg.vector_norm(queries, dim=1)
        return _rounding(queries) * lengths * longest

    @override
    def block_(self, x: Tensor, queries: Tensor) -> Tensor:
        # In the other order a CPU takes twenty times as long.
        return torch.bmm(queries[:, None], x.transpose(1, 2))[:, 0]

    @override
    def slopes_(
        self, x: Tensor, queries: Tensor, pull: Tensor, parts: int, asked: bool = True
    ) -> Slopes:
        d_queries = torch.bmm(pull[:, None], x)[:, 0] if asked else None
        gates = None
        if d_queries is not None and parts:  # the same through candidates as through the query
            gates = 2 * by_part(queries * d_queries, parts)
        torch.mul(pull[..., None], queries[:, None], out=x)
        return Slopes(x, d_queries, gates)


class Nearness(Likeness):
    """Minus the size of x - q, which is a sum over coordinates or over their squares."""

    @abstractmethod
    def sizes_(self, difference: Tensor) -> Tensor:
        """Sizes [...] of differences [..., l], which may be overwritten."""

    @abstractmethod
    def _directions_(self, difference: Tensor) -> Tensor:
        """The gradient of the size up to a factor per pair; overwrites the difference."""

    @abstractmethod
    def _each(self, difference: Tensor) -> Tensor:
        """Difference times direction, [..., c], which is to be summed over components."""

    @override
    def matrix(self, queries: Tensor, candidates: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return self.of(queries[:, None], candidates[None])
        compare = self.compare
        if compare is None or not available(queries, candidates):
            return self._without_kernel(queries, candidates).neg_()
        from dicgrl.kernels.query_ranks import distances  # needs Triton

        return self._rooted_(distances(queries, candidates, compare)).neg_()

    def _without_kernel(self, queries: Tensor, candidates: Tensor) -> Tensor:
        """Sizes of all differences of queries [q, l] and candidates [c, l], [q, c]."""
        return _sizes(queries, candidates, self.sizes_)

    def _rooted_(self, distances: Tensor) -> Tensor:
        """Turn what kernels call a distance into sizes, possibly in place."""
        return distances

    @override
    def pairs(self, queries: Tensor, candidates: Tensor) -> Tensor:
        return self.sizes_(candidates - queries).neg_()

    @override
    def slack(self, queries: Tensor, longest: Tensor, scores: Tensor) -> Tensor:
        return _rounding(queries) * scores.abs()

    @override
    def block_(self, x: Tensor, queries: Tensor) -> Tensor:
        return self.sizes_(x.sub_(queries[:, None])).neg_()

    @override
    def pull(self, scores: Tensor, upstream: Tensor) -> Tensor:
        return -upstream

    @override
    def slopes_(
        self, x: Tensor, queries: Tensor, pull: Tensor, parts: int, asked: bool = True
    ) -> Slopes:
        difference = x.sub_(queries[:, None])
        gates = None
        if asked and parts:  # both sides contribute to the size
            gates = torch.einsum("bm,bmn->bn", pull, by_part(self._each(difference), parts))
        slope = self._directions_(difference)
        d_queries = torch.bmm(pull[:, None], slope)[:, 0].neg_() if asked else None
        return Slopes(slope.mul_(pull[..., None]), d_queries, gates)


@dataclass(frozen=True, slots=True)
class Norm(Nearness):
    """-||q - x||_p.

    Attributes:
        p: 1 or 2.
    """

    p: int

    @property
    @override
    def compare(self) -> Compare:
        return "l1" if self.p == 1 else "l2"

    @override
    def of(self, queries: Tensor, candidates: Tensor) -> Tensor:
        difference = queries - candidates
        if self.p == 1:
            return difference.abs().sum(-1).neg()
        # Its gradient at distance 0 is 0, where that of a square root is NaN.
        distance: Tensor = torch.linalg.vector_norm(difference, dim=-1)
        return distance.neg()

    @override
    def matrix(self, queries: Tensor, candidates: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return Nearness.matrix(self, queries, candidates)
        # The matrix-product form of the Euclidean distance loses the digits that decide ties.
        mode = "donot_use_mm_for_euclid_dist"
        distances: Tensor = torch.cdist(queries, candidates, float(self.p), compute_mode=mode)
        return distances.neg_()

    @override
    def _rooted_(self, distances: Tensor) -> Tensor:
        return distances if self.p == 1 else distances.sqrt_()

    @override
    def sizes_(self, difference: Tensor) -> Tensor:
        # On a CPU many times as fast as `vector_norm`.
        if self.p == 1:
            return difference.abs_().sum(-1)
        return difference.square_().sum(-1).sqrt_()

    @override
    def pull(self, scores: Tensor, upstream: Tensor) -> Tensor:
        return -upstream if self.p == 1 else torch.where(scores < 0, upstream / scores, 0.0)

    @override
    def _directions_(self, difference: Tensor) -> Tensor:
        return difference.sign_() if self.p == 1 else difference

    @override
    def _each(self, difference: Tensor) -> Tensor:
        return difference.abs() if self.p == 1 else difference.square()


@dataclass(frozen=True, slots=True)
class Modulus(Nearness):
    """-sum of |q_j - x_j| over complex numbers, whose two parts are adjacent."""

    @property
    @override
    def compare(self) -> Compare:
        return "modulus"

    @override
    def of(self, queries: Tensor, candidates: Tensor) -> Tensor:
        # The gradient of a complex modulus at 0 is 0, where that of a square root is NaN.
        return as_complex(queries - candidates).abs().sum(-1).neg()

    @override
    def _without_kernel(self, queries: Tensor, candidates: Tensor) -> Tensor:
        # Reading every second number of a vector is several times as slow as reading half of it.
        return _sizes(_halves(queries), _halves(candidates), _moduli_)

    @override
    def sizes_(self, difference: Tensor) -> Tensor:
        return self._each(difference).sum(-1)

    @override
    def _directions_(self, difference: Tensor) -> Tensor:
        as_complex(difference).mul_(_squares(difference).clamp_(min=_LEAST).rsqrt_())
        return difference

    @override
    def _each(self, difference: Tensor) -> Tensor:
        return _squares(difference).sqrt_()


def by_part(values: Tensor, parts: int) -> Tensor:
    """Sums over components, [..., l] to [..., parts]."""
    return values.view(*values.shape[:-1], parts, values.shape[-1] // parts).sum(-1)


def _sizes(queries: Tensor, candidates: Tensor, of: Callable[[Tensor], Tensor]) -> Tensor:
    """Sizes of all differences of queries [q, l] and candidates [c, l], [q, c].

    Many times as fast as broadcasting, with a few passes over a block that stays in the cache.
    """
    found = queries.new_empty(len(queries), len(candidates))
    cores = 1024 if queries.is_cuda else torch.get_num_threads()
    height = max(_BLOCK * cores // max(queries.shape[1], 1), 1)
    scratch = queries.new_empty(min(height, len(candidates)), queries.shape[1])
    for first in range(0, len(candidates), height):
        block = candidates[first : first + height]
        difference = scratch[: len(block)]
        for query, sizes in zip(queries, found[:, first : first + height], strict=True):
            torch.sub(block, query, out=difference)
            sizes.copy_(of(difference))
    return found


def _halves(vectors: Tensor) -> Tensor:
    """The same numbers, [k, l], with all real parts before all imaginary parts."""
    return torch.cat([vectors[:, 0::2], vectors[:, 1::2]], 1)


def _moduli_(differences: Tensor) -> Tensor:
    """Sums of moduli, [k], of vectors [k, l] from `_halves`, which are overwritten."""
    real, imaginary = differences.chunk(2, 1)
    return real.square_().addcmul_(imaginary, imaginary).sqrt_().sum(1)


def _squares(numbers: Tensor) -> Tensor:
    """Squared moduli of complex numbers; on a CPU several times as fast as `abs`."""
    real, imaginary = numbers[..., 0::2], numbers[..., 1::2]
    return torch.addcmul(real * real, imaginary, imaginary)


def _rounding(vectors: Tensor) -> float:
    """Twice the relative error of a sum over vectors [..., l], and a little more for roots."""
    return float(torch.finfo(vectors.dtype).eps) * (vectors.shape[-1] + 8)

"""ConvKB: f = W1 . ReLU(Conv([h; r; t])) (Nguyen et al. 2018; equation 3 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from dicgrl.common.devices import check_memory
from dicgrl.common.options import option
from dicgrl.kernels import available
from dicgrl.models.fast import Side
from dicgrl.models.scorer import Scorer, ScorerSettings

# Initial filters: weights of h, r and t, then of their output in each kind of coordinate:
# translation, symmetric distance, reflection.
_START = (
    (1.0, 1.0, -1.0, -1.0, 0.0, 0.0),
    (-1.0, -1.0, 1.0, -1.0, -2.0, 0.0),
    (1.0, -1.0, -1.0, 0.0, -2.0, 0.0),
    (1.0, 0.0, -1.0, 0.0, 1.0, 0.0),
    (-1.0, 0.0, 1.0, 0.0, 1.0, 0.0),
    (0.0, 1.0, 0.0, 0.0, -1.0, 0.0),
    (1.0, -1.0, 1.0, 0.0, 0.0, -1.0),
    (-1.0, 1.0, -1.0, 0.0, 0.0, -1.0),
)
_KINDS = (0, 1, 0, 2)  # kinds of the coordinates in turn: every second one is a translation
_NOISE = 0.03  # so that filters of the same pattern differ


class ConvKB(Scorer, name="convkb"):
    """Filters of shape 1 x 3 slide over the rows of [h; r; t]; a linear layer combines the outputs.

    Args:
        dim: Length of the vectors.
        filters: Number of filters, M in the paper.
        dropout: Share of the filters' outputs that is dropped in training.
        filters_start: How filters are initialised: distance or random.
    """

    @dataclass(frozen=True)
    class Settings(ScorerSettings):
        """Settings of ConvKB."""

        filters: int = option(50, "Number of ConvKB's filters.", least=1)
        dropout: float = option(
            0.0, "Share of the filters' outputs dropped in training.", least=0, below=1
        )
        filters_start: str = option(
            "distance",
            "How ConvKB's filters start: distance (as a translation and two similar distances) or "
            "random.",
            choices=("distance", "random"),
        )

    def __init__(
        self, dim: int, filters: int = 50, dropout: float = 0.0, filters_start: str = "distance"
    ) -> None:
        super().__init__(dim)
        settings = self.Settings(filters, dropout, filters_start)
        self.dropout, filters = settings.dropout, settings.filters
        self.filters_start = settings.filters_start
        size = 4 * filters * (dim + 4)
        check_memory(size, torch.device("cpu"), f"convkb with dim={dim} and filters={filters}")
        self.kernel = nn.Parameter(torch.empty(3, filters))
        self.bias = nn.Parameter(torch.zeros(filters))
        self.weight = nn.Parameter(torch.empty(dim, filters))

    @override
    def initialise(self, generator: torch.Generator) -> None:
        """Initialise the filters as distances, plus some noise, which training can then reshape.

        Half of the coordinates start as TransE, -|h + r - t|, which can express directions. But a
        translation alone cannot express that a relation is symmetric and that nothing is related
        to itself. So a quarter starts as the symmetric distance -||h - t| - |r||: for r > 0 it is
        -r + |x| - 2 relu(x - r) - 2 relu(-x - r) with x = h - t. The last quarter starts as the
        reflection -|h + t - r|, which is symmetric, too. If there are too few filters, all are
        translations. The kind depends on the position in the vectors that are scored. So if the
        length of components is not a multiple of four, the kinds of a component's coordinates
        differ between relations that have it in different positions.

        With `filters_start="random"` it is Glorot's initialisation.
        """
        dim, filters = self.weight.shape
        if self.filters_start == "random":
            with torch.no_grad():
                for weight, ends in ((self.kernel, 3 + filters), (self.weight, dim * filters + 1)):
                    bound = (6 / ends) ** 0.5
                    weight.uniform_(-bound, bound, generator=generator)
            return
        whole = filters >= len(_START)
        pattern = torch.tensor(_START if whole else _START[:2])
        turn = torch.arange(filters) % len(pattern)
        kind = torch.tensor(_KINDS if whole else _KINDS[:1]).repeat(dim)[:dim]
        share = 1 / torch.bincount(turn)[turn]  # filters of the same pattern share its weight
        with torch.no_grad():
            noise = torch.empty_like(self.kernel).normal_(0, _NOISE, generator=generator)
            self.kernel.copy_(pattern[turn, :3].T + noise)
            self.weight.normal_(1, _NOISE, generator=generator)
            self.weight.mul_(pattern[turn, 3:].T[kind] * share)

    @override
    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        drops = self.training and self.dropout > 0
        if not drops and available(head, relation, tail):
            from dicgrl.kernels.convkb import conv_score  # needs Triton

            return conv_score(head, relation, tail, self.kernel, self.bias, self.weight)
        # The same order of summation for all shapes, as different rounding would break ties.
        total = self.bias + relation[..., None] * self.kernel[1]  # [..., dim, M]
        total = total + head[..., None] * self.kernel[0] + tail[..., None] * self.kernel[2]
        seen = F.dropout(total.relu(), self.dropout, drops)
        return (seen * self.weight).sum((-1, -2))

    @override
    def place_entity(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        """As in TransE, since the filters start as its distance."""
        return given + relation if side == "tail" else given - relation

    @override
    def place_relation(self, head: Tensor, tail: Tensor) -> Tensor:
        return tail - head

    @override
    def pair_bytes(self) -> int:
        """The kernel stores nothing but the score."""
        if available(self.weight):
            return 4
        return 4 * 3 * self.dim * self.kernel.shape[1]

"""A scoring function of your own: one class with a `score`, found by its name.

DistMult (Yang et al. 2015) scores a triple by sum_i h_i r_i t_i. Nothing else is needed: it trains,
is ranked, grows and is disentangled like the built-in ones. Its setting is known to `--set`, to
recipes and to `Learner(...)`.

    python examples/distmult.py
    dicgrl --plugin examples/distmult.py run films --model distmult --set spread=0.2
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

import dicgrl
from dicgrl.common.options import option
from dicgrl.jobs.merged import run_merged
from dicgrl.models import Scorer
from dicgrl.models.scorer import ScorerSettings
from dicgrl.recipes import Recipe
from dicgrl.settings import Settings


class DistMult(Scorer, name="distmult"):
    """A relation weighs the coordinates in which its head and tail agree."""

    @dataclass(frozen=True)
    class Settings(ScorerSettings):
        """Settings of DistMult: arguments of the class, of the same names."""

        spread: float = option(0.3, "Standard deviation of the start values.", above=0)

    def __init__(self, dim: int, spread: float = 0.3) -> None:
        super().__init__(dim)
        self.spread = self.Settings(spread).spread

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """See `Scorer`: vectors [..., dim] in, scores [...] out."""
        return (head * relation * tail).sum(-1)

    def score_tails(self, head: Tensor, relation: Tensor, tails: Tensor) -> Tensor:
        """Optional: all tails at once are one matrix product."""
        return (head * relation) @ tails.T

    def score_heads(self, heads: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """Optional, likewise."""
        return (relation * tail) @ heads.T

    def initial(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        """Optional: products of small numbers would be too small to start from."""
        return torch.empty(count, width).normal_(0, self.spread, generator=generator)


def main(epochs: int = 20) -> dict[str, float]:
    """Learn the films stream with it, plain and divided into components."""
    stream = dicgrl.load_stream("films")
    assert isinstance(stream, dicgrl.KnowledgeStream)
    found = {}
    for components in (0, 8):
        settings = Settings(
            "distmult",
            dim=64,
            spread=0.2,
            components=components,
            margin=0.0,
            epochs=epochs,
            negatives=32,
            lr=5e-3,
        )
        results = run_merged(stream, Recipe("example", settings))
        form = f"{components} components" if components else "plain"
        found[form] = results["test"]["hits@10"]
        print(f"distmult, {form}: test H@10 {found[form]:.3f}")
    return found


if __name__ == "__main__":
    main()

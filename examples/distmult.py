"""A scoring function of your own: one class with a `score`, found by its name.

DistMult (Yang et al. 2015) scores a triple by sum_i h_i r_i t_i. Nothing else is needed: it trains,
is ranked, grows and is disentangled like the built-in ones.

    python examples/distmult.py
"""

from __future__ import annotations

import torch
from torch import Tensor

import dicgrl
from dicgrl.jobs.merged import run_merged
from dicgrl.models import Scorer
from dicgrl.recipes import Recipe
from dicgrl.settings import LinkSettings


class DistMult(Scorer, name="distmult"):
    """A relation weighs the coordinates in which its head and tail agree."""

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
        return torch.empty(count, width).normal_(0, 0.3, generator=generator)


def main(epochs: int = 20) -> dict[str, float]:
    """Learn the films stream with it, plain and divided into components."""
    stream = dicgrl.load_stream("films")
    assert isinstance(stream, dicgrl.KnowledgeStream)
    found = {}
    for components in (0, 8):
        settings = LinkSettings(
            model="distmult",
            dim=64,
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

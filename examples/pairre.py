"""A scoring function of your own: one class with a `score`, found by its name.

PairRE (Chao et al. 2021) scores a triple by -||h * a - t * b||_1, where a and b are the two vectors
of the relation. Nothing else is needed: it trains, is ranked, grows and is disentangled like the
built-in ones. Its setting is known to `--set`, to recipes and to `Learner(...)`.

    python examples/pairre.py
    dicgrl --plugin examples/pairre.py run films --model pairre --set spread=0.2
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


class PairRE(Scorer, name="pairre"):
    """A relation scales its heads and its tails until they meet."""

    @dataclass(frozen=True)
    class Settings(ScorerSettings):
        """Settings of PairRE: arguments of the class, of the same names."""

        spread: float = option(0.1, "Largest of the entities' start values.", above=0)

    def __init__(self, dim: int, spread: float = 0.1) -> None:
        super().__init__(dim)
        self.spread = self.Settings(spread).spread

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """See `Scorer`: vectors [..., dim] in, of relations twice as long, scores [...] out."""
        # The two numbers of a coordinate side by side: so they stay together in a component.
        of_head, of_tail = relation[..., 0::2], relation[..., 1::2]
        return (head * of_head - tail * of_tail).abs().sum(-1).neg()

    def relation_width(self, width: int) -> int:
        """Optional: relations have two numbers for each of an entity's."""
        return 2 * width

    def initial(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        """Optional: where new entities start."""
        return torch.empty(count, width).uniform_(-self.spread, self.spread, generator=generator)

    def initial_relations(self, count: int, width: int, generator: torch.Generator) -> Tensor:
        """Optional: relations start near 1, where heads and tails are compared as they are."""
        return torch.empty(count, width).normal_(1, self.spread, generator=generator)


def main(epochs: int = 20) -> dict[str, float]:
    """Learn the films stream with it, plain and divided into components."""
    stream = dicgrl.load_stream("films")
    assert isinstance(stream, dicgrl.KnowledgeStream)
    found = {}
    for components in (0, 8):
        settings = Settings(
            "pairre",
            dim=64,
            spread=0.2,
            components=components,
            epochs=epochs,
            negatives=32,
            lr=5e-3,
        )
        results = run_merged(stream, Recipe("example", settings))
        form = f"{components} components" if components else "plain"
        found[form] = results["test"]["hits@10"]
        print(f"pairre, {form}: test H@10 {found[form]:.3f}")
    return found


if __name__ == "__main__":
    main()

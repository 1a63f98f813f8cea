"""Link prediction on one part: train with early stopping, measure filtered ranks."""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.errors import UserError
from dicgrl.evaluation import Ranker, ranking_metrics
from dicgrl.graph import KnowledgePart
from dicgrl.models import KnowledgeModel
from dicgrl.recipes import Recipe
from dicgrl.settings import LinkSettings
from dicgrl.training import FitReport, Lesson, LinkObjective, NegativeSampler, fit, make_loss
from dicgrl.training.loop import Monitor

PROTOCOL = {
    "ranking": "filtered, head and tail side, realistic ties",
    "candidates": "all entities",
    "negatives": "entities seen so far, no known training triple",
    "selection": "best validation MRR",
}


class LinkRun:
    """Trains and measures one model on one part.

    Args:
        part: The data.
        recipe: The settings.
        seed: Seed of every random choice.
        device: Where to compute.
    """

    def __init__(
        self, part: KnowledgePart, recipe: Recipe, seed: int, device: torch.device
    ) -> None:
        if not isinstance(recipe.settings, LinkSettings):
            raise UserError(f"{recipe.settings.model} classifies nodes; this is a knowledge graph")
        self.settings = settings = recipe.settings
        self.candidates = range(part.num_entities)
        self.train, self.valid, self.test = (
            torch.from_numpy(rows.copy()).to(device) for rows in (part.train, part.valid, part.test)
        )
        self.generator = torch.Generator(device).manual_seed(seed)
        self.model = KnowledgeModel(
            settings.model,
            settings.dim,
            settings.division(),
            dict(settings.options),
            seed,
            device,
        )
        self.model.grow(part.num_entities, part.num_relations)
        known = torch.cat([self.train, self.valid, self.test])
        self.ranker = Ranker(known, part.num_relations)

    def learn(self, monitor: Monitor | None = None) -> FitReport:
        """Train, with early stopping on the validation triples."""
        settings, model = self.settings, self.model
        sampler = NegativeSampler(
            self.train, model.num_entities, model.num_relations, self.generator
        )
        loss = make_loss(settings.loss, settings.margin, settings.temperature)
        objective = LinkObjective(sampler, loss, settings.negatives, settings.beta)
        watched = self.valid
        if settings.validate_at_most and len(watched) > settings.validate_at_most:
            chosen = torch.randperm(len(watched), generator=torch.Generator().manual_seed(0))
            watched = watched[chosen[: settings.validate_at_most].to(watched.device)]
        return fit(
            model,
            Lesson(lambda triples, weight: objective(model, triples, weight), self.train),
            settings.schedule(),
            self.generator,
            validate=(lambda: self.measure(watched)["mrr"]) if len(watched) else None,
            monitor=monitor,
        )

    def measure(self, triples: Tensor) -> dict[str, float]:
        """Metrics of triples among all entities, filtered."""
        return ranking_metrics(self.ranker.rank(self.model, triples, self.candidates))

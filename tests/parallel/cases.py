"""Small models and triples that the tests and the two processes beside them both make."""

from __future__ import annotations

from typing import Any

import torch

from dicgrl.models import Components, KnowledgeModel
from dicgrl.training import LOSSES, LinkObjective, NegativeSampler

ENTITIES, RELATIONS = 37, 3
MODELS: dict[str, dict[str, Any]] = {
    "transe": {"name": "transe", "length": 8, "options": {"p": 1}},
    "distmult": {"name": "distmult", "length": 8},
    "complex inverses": {"name": "complex", "length": 8, "inverses": True},
    "rotate": {"name": "rotate", "length": 8},
    "bfloat16": {"name": "transe", "length": 8, "precision": "bfloat16"},
    "divided": {"name": "transe", "length": 16, "components": Components(4, 2)},
}
SHARES = (1, 3)
RETIRED = torch.tensor([6, 21])


def model_of(case: str) -> KnowledgeModel:
    """A model in which some entities are alike, so that scores tie."""
    model = KnowledgeModel(**MODELS[case], seed=5)
    model.grow(ENTITIES, RELATIONS)
    rows = model.entities.rows.view(ENTITIES, -1)
    rows[20:30] = rows[5:15]
    return model


def triples_of(seed: int, count: int) -> torch.Tensor:
    """Triples between entities that are not retired; some are loops."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(ENTITIES, (count, 2), generator=generator)
    ends[::7, 1] = ends[::7, 0]
    ends[torch.isin(ends, RETIRED)] = 30
    relations = torch.randint(RELATIONS, (count, 1), generator=generator)
    return torch.cat([ends[:, :1], relations, ends[:, 1:]], 1)


KNOWN = triples_of(0, 150)
BATCH, WEIGHT = KNOWN[:25], torch.arange(1, 26) / 8
ASKED = torch.cat([KNOWN[100:], triples_of(3, 10)])
RANGES = (range(ENTITIES), range(14), range(9, 30))


def objective_of(share: int) -> LinkObjective:
    """A loss whose negatives nobody draws here."""
    sampler = NegativeSampler(KNOWN, ENTITIES, RELATIONS, torch.Generator())
    return LinkObjective(sampler, LOSSES["selfadversarial"](2.0, 1.0), 6, share=share)

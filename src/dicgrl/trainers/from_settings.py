"""The model and the loss that settings of link prediction name."""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.common.options import Sections
from dicgrl.models import KnowledgeModel
from dicgrl.models.all_entities import check_all_entities
from dicgrl.models.division import VectorSettings
from dicgrl.models.scorer import ScorerSettings
from dicgrl.training import LOSSES, LinkObjective, NegativeSampler
from dicgrl.training.all_entities import AllEntitiesObjective, Competitors
from dicgrl.training.losses import LossSettings
from dicgrl.training.settings import LinkTraining


def model_of(
    name: str, settings: Sections, seed: int = 0, device: torch.device | str = "cpu"
) -> KnowledgeModel:
    """An empty model.

    Args:
        name: The scoring function.
        settings: The settings.
        seed: Seed of its start values.
        device: Where it lives.

    Raises:
        UserError: It cannot be trained as the settings say.
    """
    vectors = settings.of(VectorSettings)
    model = KnowledgeModel(
        name,
        vectors.length,
        vectors.division(),
        settings.of(ScorerSettings).as_dict(),
        seed,
        device,
        vectors.precision,
        **vectors.form(),
    )
    if not settings.of(LinkTraining).negatives:
        check_all_entities(model)
    return model


def objective_of(
    settings: Sections,
    entities: range,
    num_relations: int,
    known: Tensor,
    generator: torch.Generator,
    retired: Tensor | None = None,
    share: int = 1,
) -> LinkObjective | AllEntitiesObjective:
    """The loss of triples against entities that make no known triple.

    Args:
        settings: The settings.
        entities: The entities.
        num_relations: Relations seen so far.
        known: The triples, [n, 3].
        generator: Source of randomness, on their device.
        retired: Entities that are no answers, rising.
        share: How many triples of a batch have the same negatives, where no setting says.
    """
    own = settings.of(LinkTraining)
    never = known[:0] if own.known_negatives else known
    if not own.negatives:
        competitors = Competitors(never, entities, num_relations, retired)
        return AllEntitiesObjective(competitors, own.beta, tf32=own.tf32)
    loss = LOSSES[own.loss](**settings.of(LossSettings).as_dict())
    sampler = NegativeSampler(never, entities, num_relations, generator, retired)
    return LinkObjective(sampler, loss, own.negatives, own.beta, own.share or share)

"""Create the model and the loss that settings of link prediction describe."""

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
    """Create an empty model.

    Args:
        name: The scoring function.
        settings: The settings.
        seed: Seed of its initial values.
        device: Device of the model.

    Raises:
        UserError: It cannot be trained with these settings.
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
    """The loss of triples against entities that do not form known triples.

    Args:
        settings: The settings.
        entities: The entities.
        num_relations: Number of relations seen so far.
        known: The known triples, [n, 3].
        generator: Source of randomness, on their device.
        retired: Entities that are not answers, sorted.
        share: How many triples of a batch share their negatives, unless a setting says.
    """
    own = settings.of(LinkTraining)
    never = known[:0] if own.known_negatives else known
    if not own.negatives:
        competitors = Competitors(never, entities, num_relations, retired)
        return AllEntitiesObjective(competitors, own.beta, tf32=own.tf32)
    loss = LOSSES[own.loss](**settings.of(LossSettings).as_dict())
    sampler = NegativeSampler(never, entities, num_relations, generator, retired)
    return LinkObjective(sampler, loss, own.negatives, own.beta, own.share or share)

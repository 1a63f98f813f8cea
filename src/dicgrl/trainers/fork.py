"""A trainer that goes its own way for a while: what would the model say if these facts came?"""

from __future__ import annotations

from copy import copy

import torch

from dicgrl.graph import KnowledgePart
from dicgrl.graph.knowledge.fork import fork_graph
from dicgrl.models import KnowledgeModel
from dicgrl.trainers.links import LinkTrainer


def fork_links(trainer: LinkTrainer, part: KnowledgePart | None = None) -> LinkTrainer:
    """The same graph and model, to be changed on their own and not to be trained.

    While the fork is used, the trainer must rest: room for more rows is shared.

    Args:
        trainer: The trainer.
        part: What will be added; the trainer's tables get room for it, so that the next fork need
            not copy them.
    """
    made = copy(trainer)
    new = (0, 0) if part is None else (len(part.new_entities), len(part.new_relations))
    made.graph, made.model = fork_graph(trainer.graph), _fork_model(trainer.model, *new)
    made.history, made._ranker = list(trainer.history), None
    return made


def _fork_model(model: KnowledgeModel, entities: int, relations: int) -> KnowledgeModel:
    made = copy(model)
    made.entities = model.entities.fork(entities * model.count)
    made.relations = model.relations.fork(relations * model.relation_count)
    if model.attention is not None:
        made.attention = model.attention.fork(relations)
    made.generator = torch.Generator().manual_seed(model.generator.initial_seed())
    return made

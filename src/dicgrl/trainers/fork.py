"""A temporary copy of a trainer, to ask what the model would say if some facts arrived."""

from __future__ import annotations

from copy import copy

import torch

from dicgrl.graph import KnowledgePart
from dicgrl.graph.knowledge.fork import fork_graph
from dicgrl.models import KnowledgeModel
from dicgrl.models.fork import fork_table
from dicgrl.trainers.links import LinkTrainer


def fork_links(trainer: LinkTrainer, part: KnowledgePart | None = None) -> LinkTrainer:
    """A copy of graph and model that can be changed independently, but not trained.

    While the fork is in use, the trainer must not be changed, as they share memory.

    Args:
        trainer: The trainer.
        part: What will be added. The trainer's tables get room for it, so that the next fork need
            not copy them.
    """
    made = copy(trainer)
    new = (0, 0) if part is None else (len(part.new_entities), len(part.new_relations))
    made.graph, made.model = fork_graph(trainer.graph), _fork_model(trainer.model, *new)
    made.history, made._ranker = list(trainer.history), None
    return made


def _fork_model(model: KnowledgeModel, entities: int, relations: int) -> KnowledgeModel:
    made = copy(model)
    made.entities = fork_table(model.entities, entities * model.count)
    made.relations = fork_table(model.relations, relations * model.relation_count)
    if model.attention is not None:
        made.attention = fork_table(model.attention, relations)
    made.generator = torch.Generator().manual_seed(model.generator.initial_seed())
    return made

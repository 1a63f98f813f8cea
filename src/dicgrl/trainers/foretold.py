"""How well a model predicts facts before it learns them, as in test-then-learn.

The newest part has been taken in but not learned. Its facts about known entities are questions that
the model can answer already; facts that mention a newcomer are not.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from dicgrl.evaluation import accuracy_metrics, ranking_metrics
from dicgrl.evaluation.sample import sample_of
from dicgrl.graph.arrays import IntArray
from dicgrl.trainers.links import LinkTrainer
from dicgrl.trainers.nodes import NodeTrainer
from dicgrl.trainers.trainer import Trainer


@singledispatch
def foretold(trainer: Trainer, at_most: int = 0) -> dict[str, Any]:
    """Measure a model on the newest part's training examples before it learns them.

    `foretold.register` adds another kind of trainer.

    Args:
        trainer: The trainer, which has taken in the part; new rows are not used.
        at_most: How many examples to ask about, as a sample; 0 for all.

    Returns:
        `facts`, how many there are; `answerable`, how many only mention what was known; `asked`,
        how many of these were asked about; and their `metrics`, if any were asked. Triples are
        ranked among the entities known before, filtered by everything known now.
    """
    del trainer, at_most
    return {}


@foretold.register
def _(trainer: LinkTrainer, at_most: int = 0) -> dict[str, Any]:
    part = trainer.part
    assert part is not None
    entities, relations = part.new_entities.start, part.new_relations.start
    triples = part.train
    known = (triples[:, [0, 2]] < entities).all(axis=1) & (triples[:, 1] < relations)
    asked = _some(triples[known], trainer.newest, at_most)
    found = {"facts": len(triples), "answerable": int(known.sum()), "asked": len(asked)}
    if not len(asked):
        return found | {"metrics": {}}
    questions = trainer.on_device(asked)
    ranks = trainer.ranks(questions, among=range(entities))
    metrics = ranking_metrics(ranks, trainer.leads_elsewhere(questions))
    return found | {"metrics": metrics}


@foretold.register
def _(trainer: NodeTrainer, at_most: int = 0) -> dict[str, Any]:
    """New nodes can be classified with their edges to known nodes."""
    del at_most  # one pass through the network answers for all nodes
    part, before = trainer.part, trainer.model_before
    assert part is not None
    nodes = trainer.examples("train", trainer.newest)
    known = trainer.labels[nodes] < part.new_classes.start
    asked = nodes[known] if before is not None else nodes[:0]
    found = {"facts": len(nodes), "answerable": int(known.sum()), "asked": len(asked)}
    if before is None or not len(asked):
        return found | {"metrics": {}}
    metrics = accuracy_metrics(trainer.scores_by(before)[asked], trainer.labels[asked])
    return found | {"metrics": {name: v for name, v in metrics.items() if name != "loss"}}


def _some(rows: IntArray, part: int, at_most: int) -> IntArray:
    if not at_most or len(rows) <= at_most:
        return rows
    return rows[sample_of(part, len(rows), at_most)]

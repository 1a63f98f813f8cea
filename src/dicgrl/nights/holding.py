"""Holds out a share of tonight's facts for testing, so that new facts are measured, too."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from dicgrl.errors import UserError
from dicgrl.graph import Graph, KnowledgeGraph, KnowledgePart, NetworkPart, Part
from dicgrl.graph.arrays import BoolArray, IntArray
from dicgrl.graph.holdout import check_shares
from dicgrl.intake import Intake
from dicgrl.learner import Learner


def held_back(intake: Intake, learner: Learner, share: float) -> Intake:
    """What a night learns and what it is measured with, where its facts do not say.

    What is the first to mention something new is learned, so that nothing is asked about that was
    never taught; fewer are held out where too little is left. The choice is the same whenever the
    night is done again.

    Args:
        intake: Tonight's facts.
        learner: Has not learned them.
        share: How many of those that are new to hold out for testing.

    Raises:
        UserError: It is no share.
    """
    try:
        check_shares(0.0, share)
    except UserError:
        raise UserError(f"--test {share}: a share is at least 0 and below 1") from None
    part = intake.part
    if not share or not len(part.train) or len(part.test) or not learner.num_parts:
        return intake
    generator = np.random.default_rng((learner.seed, learner.num_parts))
    order = generator.permutation(len(part.train))
    free = _free(part, learner.trainer.graph, order)
    chosen = order[free][: round(share * len(part.train))]
    kept = np.ones(len(part.train), np.bool_)
    kept[chosen] = False
    split: dict[str, Any] = {"train": part.train[kept], "test": part.train[~kept]}
    if isinstance(part, KnowledgePart) and len(part.times):
        split["times"] = part.times[kept]
    return replace(intake, part=replace(part, **split))


@singledispatch
def _free(part: Part, graph: Graph, order: IntArray) -> BoolArray:
    """Which of the training examples, in some order, need not be learned, [n]."""
    del part, graph
    return np.zeros(len(order), np.bool_)


@_free.register
def _(part: KnowledgePart, graph: Graph, order: IntArray) -> BoolArray:
    assert isinstance(graph, KnowledgeGraph)
    rows = part.train[order]
    ends, relations = rows[:, [0, 2]], rows[:, 1]
    taught = (graph.entities.found(part.entities, ends) >= 0) | _again(ends)
    return taught.all(axis=1) & (
        (graph.relations.found(part.relations, relations) >= 0) | _again(relations)
    )


@_free.register
def _(part: NetworkPart, graph: Graph, order: IntArray) -> BoolArray:
    """Nodes of a class that is known, or that another node of it teaches."""
    nodes = part.train[order]
    new = (nodes >= part.new_nodes.start) & (nodes < part.new_nodes.stop)
    classes = np.full(len(nodes), -1)
    classes[new] = part.labels[nodes[new] - part.new_nodes.start]
    known = graph.vocabularies()["classes"].found(part.classes, np.maximum(classes, 0)) >= 0
    return new & (known | _again(classes))


def _again(ids: IntArray) -> BoolArray:
    """Which ids an earlier row has mentioned."""
    rows = ids.reshape(len(ids), -1)
    _, first = np.unique(rows.ravel(), return_index=True)
    found = np.ones(rows.size, np.bool_)
    found[first] = False
    # Both ends of a row that is the first to mention something are mentioned by it, not before.
    return found.reshape(ids.shape)

"""Why a triple matters: the components it uses and the old triples that it would activate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dicgrl.ask.answers import scores_of
from dicgrl.ask.names import Names
from dicgrl.graph.arrays import IntArray
from dicgrl.tasks import LinkTrainer


@dataclass(frozen=True, slots=True)
class Activated:
    """An old triple that a new one would activate.

    Attributes:
        triple: Its labels, readable where there are names.
        order: 1 for a neighbour of the new triple, 2 for a neighbour of those.
        shared: Components that both use.
        merit: How much the new triple says about it; higher is more.
    """

    triple: tuple[str, str, str]
    order: int
    shared: list[int]
    merit: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a triple uses and concerns.

    Attributes:
        triple: Its labels, readable where there are names.
        score: The model's score.
        known: Whether it is a training fact already.
        aside: Whether it is known, and set aside to measure with.
        components: Components that it uses, with their attention weights.
        candidates: Old triples in the neighbourhood.
        activated: How many of them share a component, by order.
        best: Those of highest merit.
    """

    triple: tuple[str, str, str]
    score: float
    known: bool
    aside: bool
    components: dict[int, float]
    candidates: int
    activated: dict[int, int]
    best: list[Activated]


def explain(run: LinkTrainer, names: Names, row: IntArray, k: int = 10) -> Explanation:
    """Explain a triple of known entities, as if it arrived now.

    Args:
        run: A knowledge graph with a disentangled model.
        names: Readable names.
        row: The triple by ids, [3].
        k: How many old triples to list.

    Raises:
        UserError: The model is plain.
    """
    graph = run.graph
    found, chosen, alpha = run.concerned(row)
    itself = (graph.train[found.rows] == row).all(1)  # where it is known already
    found = found.at(~itself)
    best = np.argsort(-found.merit, kind="stable")[:k]
    listed = [
        Activated(
            names.triple(graph, graph.train[found.rows[i]]),
            int(found.order[i]),
            [c for c in range(run.model.count) if found.common[i] >> c & 1],
            float(found.merit[i]),
        )
        for i in best
    ]
    return Explanation(
        names.triple(graph, row),
        scores_of(run, row[None]).item(),
        bool(graph.contains(row[None])[0]),
        bool(graph.sets_aside(row[None])[0]),
        dict(zip(chosen.tolist(), alpha, strict=True)),
        found.candidates - int(itself.sum()),
        {order: int((found.order == order).sum()) for order in range(1, run.settings.orders + 1)},
        listed,
    )

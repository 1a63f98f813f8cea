"""Why a triple is likely, the components it uses, and the old triples that it would activate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dicgrl.ask.answers import scores_of
from dicgrl.ask.names import Names
from dicgrl.ask.support import Support, support_for
from dicgrl.common.html import html_table
from dicgrl.graph.arrays import IntArray
from dicgrl.strategies.activator_links import would_activate
from dicgrl.strategies.dicgrl import DiCGRLSettings
from dicgrl.trainers import LinkTrainer

DEFAULT_ORDERS: int = DiCGRLSettings.options()["orders"].default


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
        known: Whether it is a training fact.
        held_out: Whether it is a validation or test fact.
        probability: How likely it is as an answer to (head, relation, ?); None if not known.
        support: Known facts that speak for it, the strongest first.
        components: Components that it uses, with their attention weights. This and all that follows
            is empty for a plain model.
        candidates: Old triples in the neighbourhood.
        activated: How many of them share a component, by order.
        best: Those of highest merit.
    """

    triple: tuple[str, str, str]
    score: float
    known: bool
    held_out: bool
    probability: float | None
    support: list[Support]
    components: dict[int, float]
    candidates: int
    activated: dict[int, int]
    best: list[Activated]

    def _repr_html_(self) -> str:
        said = [
            ("; ".join(" -- ".join(fact) for fact in each.facts), each.kind, each.contribution)
            for each in self.support
        ]
        title = f"{' -- '.join(self.triple)}: score {self.score:.4g}"
        return html_table(title, ("what speaks for it", "kind", "contribution"), said)


def explain(
    trainer: LinkTrainer,
    names: Names,
    row: IntArray,
    k: int = 10,
    probability: float | None = None,
) -> Explanation:
    """Explain a triple of known entities, as if it arrived now.

    Args:
        trainer: Holds the graph and the model.
        names: Readable names.
        row: The triple by ids, [3].
        k: How many facts of each kind, and old triples, to list.
        probability: How likely it is.
    """
    graph = trainer.graph
    about = (
        names.triple(graph, row),
        scores_of(trainer, row[None]).item(),
        bool(graph.contains(row[None])[0]),
        bool(graph.holds_out(row[None])[0]),
        probability,
        support_for(trainer, names, row, k),
    )
    if trainer.model.components is None:
        return Explanation(*about, {}, 0, {}, [])
    orders = trainer.settings.orders if "orders" in trainer.settings else DEFAULT_ORDERS
    found, chosen, alpha = would_activate(trainer, row, orders)
    itself = (graph.train[found.rows] == row).all(1)  # where it is known already
    found = found.at(~itself)
    best = np.argsort(-found.merit, kind="stable")[:k]
    listed = [
        Activated(
            names.triple(graph, graph.train[found.rows[i]]),
            int(found.order[i]),
            [c for c in range(trainer.model.count) if found.common[i] >> c & 1],
            float(found.merit[i]),
        )
        for i in best
    ]
    return Explanation(
        *about,
        dict(zip(chosen.tolist(), alpha, strict=True)),
        found.candidates - int(itself.sum()),
        {order: int((found.order == order).sum()) for order in range(1, orders + 1)},
        listed,
    )

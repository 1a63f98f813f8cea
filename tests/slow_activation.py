"""Neighbour activation with Python's sets: the definition, link by link."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import torch

from dicgrl.models import KnowledgeModel, NetworkModel
from tests.slow import slow_chosen, slow_top


@dataclass
class Link:
    """Two ends and the components in use."""

    ends: tuple[int, int]
    components: set[int]


@dataclass
class Active:
    order: int
    common: set[int]
    merit: float


def slow_activation(
    old: list[Link], new: list[Link], orders: int
) -> tuple[dict[int, Active], set[int]]:
    """Activated old links by number, and all old links that were looked at.

    A node hears from its new links which components they use; an old link at it is activated if it
    uses one of them. What a node hears about is shared out among its old links.
    """
    degree: dict[int, int] = defaultdict(int)
    for link in old:
        for node in set(link.ends):
            degree[node] += 1
    found: dict[int, Active] = {}
    looked: set[int] = set()
    speakers = [(link.ends, link.components, 1.0) for link in new]
    for order in range(1, orders + 1):
        said: dict[int, set[int]] = defaultdict(set)
        evidence: dict[int, float] = defaultdict(float)
        for ends, components, strength in speakers:
            for node in set(ends):
                said[node] |= components
                evidence[node] += strength
        step: dict[int, Active] = {}
        for number, link in enumerate(old):
            common: set[int] = set()
            merit = 0.0
            for node in set(link.ends) & said.keys():
                looked.add(number)
                shared = link.components & said[node]
                common |= shared
                merit += len(shared) / len(link.components) * evidence[node] / degree[node]
            if common and number not in found:
                step[number] = Active(order, common, merit)
        found |= step
        speakers = [(old[i].ends, one.common, one.merit) for i, one in step.items()]
    return found, looked


def triple_link(model: KnowledgeModel, triple: list[int]) -> Link:
    h, r, t = triple
    chosen = slow_chosen(model, (h, r, t))
    if model.attention is None:  # a ReLU often ends in ties at 0, which are the model's to break
        with torch.no_grad():
            route = model.route(*torch.tensor([triple]).unbind(1))
        assert route is not None
        chosen = route.chosen.flatten().tolist()
    return Link((h, t), set(chosen))


def edge_link(model: NetworkModel, x: list[list[float]], edge: list[int]) -> Link:
    """An undirected edge uses what either of its directions chooses in the first layer."""
    assert model.projection is not None and model.components is not None
    weight, bias = model.projection.weight.tolist(), model.projection.bias.tolist()
    router = next(iter(model.routers.parameters())).tolist()

    def parts(node: int) -> list[list[float]]:
        flat = [
            b + sum(w * v for w, v in zip(row, x[node], strict=True))
            for row, b in zip(weight, bias, strict=True)
        ]
        size = model.hidden
        return [flat[k * size : (k + 1) * size] for k in range(len(flat) // size)]

    chosen: set[int] = set()
    for own, other in (edge, edge[::-1]):
        logits = [
            max(
                0.0,
                sum(w * v for w, v in zip(router[0], u, strict=True))
                + sum(w * v for w, v in zip(router[1], v_k, strict=True)),
            )
            for u, v_k in zip(parts(own), parts(other), strict=True)
        ]
        chosen |= set(slow_top(logits, model.components.top))
    return Link((edge[0], edge[1]), chosen)

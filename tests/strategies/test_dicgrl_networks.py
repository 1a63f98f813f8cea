"""DiCGRL on networks: activated nodes, open components, and where their gradients may flow."""

from __future__ import annotations

import copy
from collections import defaultdict
from typing import Any

import pytest
import torch
from torch import Tensor

from dicgrl.strategies import strategy
from dicgrl.strategies.dicgrl import DiCGRL
from dicgrl.tasks import NodeRun
from tests.growing import break_ties, network_stream, run_of, settings_of, weights
from tests.slow_activation import Active, Link, edge_link, slow_activation

every_form = pytest.mark.parametrize("form", ["gat-divided", "sage-divided"])


def begun(form: str, **changes: Any) -> NodeRun:
    """A run that has learned a part and taken in the next."""
    settings = settings_of(form, "dicgrl", **({"dropout": 0.0} | changes))
    run = run_of(settings)
    assert isinstance(run, NodeRun)
    stream = network_stream()
    run.take(stream[0])
    strategy(settings).learn(run)
    break_ties(run.model)
    run.take(stream[1])
    return run


def slow_links(run: NodeRun, before: Any) -> tuple[list[Link], list[Link]]:
    assert run.graph is not None and run.part is not None
    x, edges, count = run.x.tolist(), run.graph.edges.tolist(), len(run.part.edges)
    old = [edge_link(before, x, edge) for edge in edges[: len(edges) - count]]
    return old, [edge_link(run.model, x, edge) for edge in edges[len(edges) - count :]]


@every_form
@pytest.mark.parametrize("orders", [1, 2])
def test_activated_nodes_and_open_components_are_those_of_the_definition(
    form: str, orders: int
) -> None:
    run = begun(form, orders=orders)
    before = copy.deepcopy(run.model)
    with torch.no_grad():  # new edges are routed by the model of now, old ones by that of before
        for parameter in run.model.routers.parameters():
            parameter.copy_(parameter.flip(-1))
    old, new = slow_links(run, before)
    expected, looked = slow_activation(old, new, orders)
    nodes: dict[int, list[Active]] = defaultdict(list)
    for number, one in expected.items():
        for end in old[number].ends:
            nodes[end].append(one)
    train = set(run.examples("train", 0, 1).tolist())

    replay = run.activate(10**6)
    run.open_concerned(replay)
    assert (replay.candidates, replay.activated) == (len(looked), len(expected))
    assert replay.examples.tolist() == replay.positions.tolist() == sorted(train & nodes.keys())
    heavy = {1: run.settings.weight1, 2: run.settings.weight2}
    assert replay.weight.tolist() == [
        heavy[min(one.order for one in nodes[node])] for node in replay.examples.tolist()
    ]
    merit = {node: sum(one.merit for one in nodes[node]) for node in train & nodes.keys()}
    few = run.activate(2).examples.tolist()
    assert len(few) == 2
    assert min(merit[n] for n in few) >= max(merit[n] for n in merit if n not in few) - 1e-9

    assert run._open is not None and run.part is not None
    spoken: dict[int, set[int]] = defaultdict(set)
    for link in new:
        for end in link.ends:
            spoken[end] |= link.components
    for number, one in expected.items():
        for end in old[number].ends:
            spoken[end] |= one.common
    for node, row in enumerate(run._open.tolist()):
        fresh = node >= run.part.new_nodes.start
        assert {k for k, is_open in enumerate(row) if is_open} == (
            set(range(4)) if fresh else spoken[node]
        )


def gradients_of(run: NodeRun, nodes: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """What the loss of old nodes sends to the components before the class layer, and to weights."""
    seen: list[Tensor] = []

    def keep(module: Any, inputs: Any, output: tuple[Tensor, Tensor]) -> None:
        output[0].retain_grad()
        seen.append(output[0])

    handle = run.model.stack[-1].register_forward_hook(keep)
    run.model.train(False)
    run.model.zero_grad()
    run.objective(nodes, old=True)(nodes, torch.ones(len(nodes))).backward()
    handle.remove()
    (parts,) = seen
    found = torch.zeros_like(parts) if parts.grad is None else parts.grad
    return found, {n: p.grad for n, p in run.model.named_parameters() if p.grad is not None}


@every_form
def test_gradients_of_old_nodes_reach_open_components_alone(form: str) -> None:
    run = begun(form)
    old = run.examples("train", 0, 1)
    replay = run.activate(10**6)
    run.open_concerned(replay)
    assert run._open is not None
    run._open[:, 2] = False  # nobody's third component
    found, dense = gradients_of(run, replay.examples)
    reached = found.any(-1)  # [N, K]
    closed = ~run._open
    assert reached.any() and closed[old].any()
    assert not reached[closed].any()
    # Components never mix before the class layer: weights of the closed one get nothing either.
    for name, gradient in dense.items():
        if gradient.dim() == 3:  # of every component, [K, inside, outside]
            assert not gradient[2].any() and gradient.any(), name
    assert not dense["projection.weight"].view(4, 4, -1)[2].any()
    assert dense["projection.weight"].any()
    # The attention of old nodes is that of before and does not learn.
    assert not any(name.startswith("routers") for name in dense)


@every_form
def test_scores_do_not_depend_on_what_is_open(form: str) -> None:
    run = begun(form, beta=0.0)
    old = run.examples("train", 0, 1)
    run.model.train(False)
    losses = []
    for _ in range(2):
        losses.append(run.objective(old, old=True)(old, torch.ones(len(old))).item())
        run.open_concerned(run.activate(1))
    run._open = torch.zeros(len(run.x), 4, dtype=torch.bool)
    losses.append(run.objective(old, old=True)(old, torch.ones(len(old))).item())
    assert losses[0] == pytest.approx(losses[1]) == pytest.approx(losses[2])


@every_form
def test_old_nodes_are_scored_by_the_attention_of_before(form: str) -> None:
    run = begun(form, beta=0.0)
    old = run.examples("train", 0, 1)
    run.model.train(False)
    ones = torch.ones(len(old))
    before = run.objective(old, old=True)(old, ones).item()
    with torch.no_grad():
        for parameter in run.model.routers.parameters():
            parameter.copy_(parameter.flip(-1))
    assert run.objective(old, old=True)(old, ones).item() == pytest.approx(before)
    assert run.objective(old)(old, ones).item() != pytest.approx(before)


@every_form
def test_weights_are_averaged_by_training_nodes_and_new_classes_keep_theirs(form: str) -> None:
    plain, mean = (begun(form, later_epochs=3, average=a) for a in (False, True))
    before = weights(mean)
    for run in (plain, mean):
        DiCGRL(run.settings).learn(run)
    learned, averaged = weights(plain), weights(mean)
    share = 8 / (8 + 4)  # training nodes of the two parts
    assert share == mean.count("train", 0, 1) / mean.count("train")
    for name, values in before.items():
        expected = share * values + (1 - share) * learned[name]
        if name in ("class_weight", "class_bias"):
            expected[2:] = learned[name][2:]
        assert torch.allclose(averaged[name], expected, atol=1e-6), name
    assert mean.model.num_classes == 3

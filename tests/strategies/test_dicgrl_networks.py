"""DiCGRL on networks: activated nodes, open components, and where their gradients may flow."""

from __future__ import annotations

import copy
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from dicgrl.strategies.activator import Activator
from dicgrl.strategies.activator_nodes import NodeActivator
from dicgrl.strategies.mixed import MixedSet
from dicgrl.trainers import NodeTrainer
from tests.growing import (
    activator,
    break_ties,
    network_stream,
    settings_of,
    strategy_of,
    trainer_of,
    watch_fit,
    weights,
)
from tests.slow_activation import Active, Link, edge_link, slow_activation

every_form = pytest.mark.parametrize("form", ["gat-divided", "sage-divided"])


def begun(form: str, labelled: bool = True, **changes: Any) -> NodeTrainer:
    """A trainer of one part that has taken in the next, which may have nothing to learn from."""
    settings = settings_of(form, "dicgrl", **({"dropout": 0.0} | changes))
    trainer = trainer_of(settings)
    assert isinstance(trainer, NodeTrainer)
    stream = network_stream()
    trainer.take(stream[0])
    learner = strategy_of(settings)
    learner.learn(trainer)
    break_ties(trainer.model)
    part = stream[1]
    trainer.take(part if labelled else replace(part, train=part.train[:0]))
    learner.prepare(trainer)
    return trainer


def slow_links(trainer: NodeTrainer, before: Any) -> tuple[list[Link], list[Link]]:
    assert trainer.graph is not None and trainer.part is not None
    x, edges, count = trainer.x.tolist(), trainer.graph.edges.tolist(), len(trainer.part.edges)
    old = [edge_link(before, x, edge) for edge in edges[: len(edges) - count]]
    return old, [edge_link(trainer.model, x, edge) for edge in edges[len(edges) - count :]]


@every_form
@pytest.mark.parametrize("orders", [1, 2])
def test_activated_nodes_and_open_components_are_those_of_the_definition(
    form: str, orders: int
) -> None:
    trainer = begun(form, orders=orders)
    before = copy.deepcopy(trainer.model)
    with torch.no_grad():  # new edges are routed by the model, old ones by the previous one
        for parameter in trainer.model.routers.parameters():
            parameter.copy_(parameter.flip(-1))
    old, new = slow_links(trainer, before)
    expected, looked = slow_activation(old, new, orders)
    nodes: dict[int, list[Active]] = defaultdict(list)
    for number, one in expected.items():
        for end in old[number].ends:
            nodes[end].append(one)
    train = set(trainer.examples("train", 0, 1).tolist())

    concerns = activator(trainer)
    replay = concerns.activate(10**6)
    concerns.unfreeze_concerned(replay)
    assert (replay.candidates, replay.activated) == (len(looked), len(expected))
    assert replay.examples.tolist() == replay.positions.tolist() == sorted(train & nodes.keys())
    heavy = {1: trainer.settings.weight1, 2: trainer.settings.weight2}
    assert replay.weight.tolist() == [
        heavy[min(one.order for one in nodes[node])] for node in replay.examples.tolist()
    ]
    merit = {node: sum(one.merit for one in nodes[node]) for node in train & nodes.keys()}
    few = concerns.activate(2).examples.tolist()
    assert len(few) == 2
    assert min(merit[n] for n in few) >= max(merit[n] for n in merit if n not in few) - 1e-9

    movable = movable_of(concerns)
    assert trainer.part is not None
    spoken: dict[int, set[int]] = defaultdict(set)
    for link in new:
        for end in link.ends:
            spoken[end] |= link.components
    for number, one in expected.items():
        for end in old[number].ends:
            spoken[end] |= one.common
    for node, row in enumerate(movable.tolist()):
        fresh = node >= trainer.part.new_nodes.start
        assert {k for k, may_move in enumerate(row) if may_move} == (
            set(range(4)) if fresh else spoken[node]
        )


def movable_of(concerns: Activator) -> Tensor:
    """Which components of which nodes gradients reach, [N, K]."""
    assert isinstance(concerns, NodeActivator) and concerns._movable is not None
    return concerns._movable


def gradients_of(
    trainer: NodeTrainer, concerns: Activator, nodes: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """What the loss of old nodes sends to the components before the class layer, and to weights."""
    seen: list[Tensor] = []

    def keep(module: Any, inputs: Any, output: tuple[Tensor, Tensor]) -> None:
        output[0].retain_grad()
        seen.append(output[0])

    handle = trainer.model.stack[-1].register_forward_hook(keep)
    trainer.model.train(False)
    trainer.model.zero_grad()
    concerns.objective(nodes)(nodes, torch.ones(len(nodes))).backward()
    handle.remove()
    (parts,) = seen
    found = torch.zeros_like(parts) if parts.grad is None else parts.grad
    return found, {n: p.grad for n, p in trainer.model.named_parameters() if p.grad is not None}


@every_form
def test_gradients_of_old_nodes_reach_open_components_alone(form: str) -> None:
    trainer = begun(form)
    old = trainer.examples("train", 0, 1)
    concerns = activator(trainer)
    replay = concerns.activate(10**6)
    concerns.unfreeze_concerned(replay)
    movable = movable_of(concerns)
    movable[:, 2] = False  # nobody's third component
    found, dense = gradients_of(trainer, concerns, replay.examples)
    reached = found.any(-1)  # [N, K]
    closed = ~movable
    assert reached.any() and closed[old].any()
    assert not reached[closed].any()
    # Components never mix before the class layer: weights of the closed one get nothing either.
    for name, gradient in dense.items():
        if gradient.dim() == 3:  # of every component, [K, inside, outside]
            assert not gradient[2].any() and gradient.any(), name
    assert not dense["projection.weight"].view(4, 4, -1)[2].any()
    assert dense["projection.weight"].any()
    # The attention of old nodes is that before the part and does not learn.
    assert not any(name.startswith("routers") for name in dense)


@every_form
def test_scores_do_not_depend_on_what_is_open(form: str) -> None:
    trainer = begun(form, beta=0.0)
    old = trainer.examples("train", 0, 1)
    trainer.model.train(False)
    losses, concerns = [], activator(trainer)
    for _ in range(2):
        losses.append(concerns.objective(old)(old, torch.ones(len(old))).item())
        concerns.unfreeze_concerned(concerns.activate(1))
    movable_of(concerns).zero_()
    losses.append(concerns.objective(old)(old, torch.ones(len(old))).item())
    assert losses[0] == pytest.approx(losses[1]) == pytest.approx(losses[2])


@every_form
def test_old_nodes_are_scored_by_the_attention_of_before(form: str) -> None:
    trainer = begun(form, beta=0.0)
    old = trainer.examples("train", 0, 1)
    trainer.model.train(False)
    ones = torch.ones(len(old))
    before = activator(trainer).objective(old)(old, ones).item()
    with torch.no_grad():
        for parameter in trainer.model.routers.parameters():
            parameter.copy_(parameter.flip(-1))
    assert activator(trainer).objective(old)(old, ones).item() == pytest.approx(before)
    assert trainer.objective(old)(old, ones).item() != pytest.approx(before)


@every_form
def test_weights_are_averaged_by_training_nodes_and_new_classes_keep_theirs(form: str) -> None:
    plain, mean = (begun(form, later_epochs=3, average=a) for a in (False, True))
    before = weights(mean)
    for trainer in (plain, mean):
        strategy_of(trainer.settings).learn(trainer)
    learned, averaged = weights(plain), weights(mean)
    share = 8 / (8 + 4)  # training nodes of the two parts
    assert share == mean.count("train", 0, 1) / mean.count("train")
    for name, values in before.items():
        expected = share * values + (1 - share) * learned[name]
        if name in ("class_weight", "class_bias"):
            expected[2:] = learned[name][2:]
        assert torch.allclose(averaged[name], expected, atol=1e-6), name
    assert mean.model.num_classes == 3


def test_a_network_has_no_rows_that_could_bring_news_alone() -> None:
    trainer = begun("gat-divided", arrive_epochs=2)
    assert not trainer.has_rows and not trainer.old_rows()
    assert not activator(trainer).is_about_newcomers_only()


@every_form
def test_a_new_class_starts_where_its_nodes_are(form: str) -> None:
    """It scores at its nodes like the best old class, at old nodes like the others, on average."""
    random, placed = (begun(form, start=start) for start in ("random", "auto"))
    assert torch.equal(random.model.class_weight[:2], placed.model.class_weight[:2])
    assert not torch.equal(random.model.class_weight[2], placed.model.class_weight[2])
    trainer, old = placed, placed.examples("train", 0, 1)
    new = trainer.examples("train", 1)
    own = new[trainer.labels[new] == 2]
    assert len(own) > 0
    scores = trainer.scores(torch.arange(len(trainer.x)))
    assert scores[own, 2].mean().item() == pytest.approx(scores[own, :2].amax(1).mean().item())
    assert scores[old, 2].mean().item() == pytest.approx(scores[old, :2].mean().item(), abs=1e-5)


@pytest.mark.parametrize("batch", [0, 4])
def test_where_there_is_nothing_to_learn_nothing_moves(batch: int) -> None:
    changes: dict[str, Any] = {"shield": "all", "budget": "0", "weight_decay": 0.1}
    trainer = begun("gat-divided", labelled=False, later_epochs=5, batch=batch, **changes)
    before = weights(trainer)
    learned = strategy_of(trainer.settings).learn(trainer)
    assert learned.fits == [] and learned.replayed == 0
    assert all(torch.equal(values, before[name]) for name, values in weights(trainer).items())


@pytest.mark.parametrize("batch", [0, 4])
def test_a_part_without_examples_of_its_own_replays_what_it_activates(batch: int) -> None:
    trainer = begun("gat-divided", labelled=False, shield="all", later_epochs=2, batch=batch)
    before = weights(trainer)
    learned = strategy_of(trainer.settings).learn(trainer)
    assert learned.replayed > 0 and len(learned.fits) == 1
    assert not all(torch.equal(values, before[name]) for name, values in weights(trainer).items())


def test_examples_that_count_nothing_are_no_failure() -> None:
    changes: dict[str, Any] = {"budget": "all", "weight1": 0.0, "weight2": 0.0}
    trainer = begun("gat-divided", labelled=False, later_epochs=2, **changes)
    learned = strategy_of(trainer.settings).learn(trainer)
    assert learned.replayed > 0 and len(learned.fits) == 1


def test_a_step_of_a_whole_network_takes_the_mean_over_examples_of_all_kinds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainer = begun("gat-divided", shield="7", budget="4", weight1=0.5, later_epochs=1, beta=0.0)
    training_sets = watch_fit(trainer, monkeypatch)
    strategy_of(trainer.settings).learn(trainer)
    (training_set,) = training_sets
    assert isinstance(training_set, MixedSet)
    ((objective, examples, weight),) = training_set.batches(2, 3, torch.Generator())
    new = trainer.examples("train", 1)
    assert torch.equal(examples[: len(new)], new)
    replayed, shielded = torch.split(examples[len(new) :], [4, 7])
    assert weight.tolist() == pytest.approx([1.0] * len(new) + [0.5] * 4 + [1.0] * 7)
    trainer.model.train(False)
    group = activator(trainer).shield(shielded)
    assert group is not None
    losses = (
        trainer.objective(new)(new, torch.ones(len(new))).item() * len(new)
        + activator(trainer).objective(replayed)(replayed, torch.ones(4)).item() * 4 * 0.5
        + group.objective(shielded, group.weight).item() * 7
    )
    expected = losses / (len(new) + 2 + 7)
    assert objective(examples, weight).item() == pytest.approx(expected, rel=1e-5)


def test_a_later_part_may_be_learned_to_the_end() -> None:
    trainer = begun("gat-divided", validate_on="none", later_epochs=5, patience=1)
    learned = strategy_of(trainer.settings).learn(trainer)
    assert [(fit.epochs, fit.best_epoch, fit.best) for fit in learned.fits] == [(5, 5, None)]
    assert trainer.validator("none") is None
    assert trainer.validator("none", from_scratch=True) is not None

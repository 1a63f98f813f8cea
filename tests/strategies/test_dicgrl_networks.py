"""DiCGRL on networks: activated nodes, open components, and where their gradients may flow."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from dicgrl.strategies import strategy
from dicgrl.strategies.dicgrl import DiCGRL, _Mixed
from dicgrl.trainers import NodeTrainer
from dicgrl.training import TrainingSet
from tests.growing import break_ties, network_stream, run_of, settings_of, weights
from tests.slow_activation import Active, Link, edge_link, slow_activation

every_form = pytest.mark.parametrize("form", ["gat-divided", "sage-divided"])


def begun(form: str, labelled: bool = True, **changes: Any) -> NodeTrainer:
    """A run that has learned a part and taken in the next, which may have nothing to learn from."""
    settings = settings_of(form, "dicgrl", **({"dropout": 0.0} | changes))
    run = run_of(settings)
    assert isinstance(run, NodeTrainer)
    stream = network_stream()
    run.take(stream[0])
    strategy(settings).learn(run)
    break_ties(run.model)
    part = stream[1]
    run.take(part if labelled else replace(part, train=part.train[:0]))
    return run


def slow_links(run: NodeTrainer, before: Any) -> tuple[list[Link], list[Link]]:
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


def gradients_of(run: NodeTrainer, nodes: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
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


def probabilities(run: NodeTrainer, model: Any) -> list[list[float]]:
    """Class probabilities of all nodes; nothing dropped."""
    model.train(False)
    with torch.no_grad():
        found: list[list[float]] = model(run.inputs, run.edges).double().softmax(1).tolist()
    return found


def slow_divergence(before: list[float], now: list[float]) -> float:
    return sum(p * math.log(p / q) for p, q in zip(before, now, strict=False))  # new classes: p = 0


@every_form
@pytest.mark.parametrize("beta", [0.0, 0.7])
def test_a_shield_measures_how_far_old_nodes_are_from_what_they_were(
    form: str, beta: float
) -> None:
    run = begun(form, dropout=0.5, beta=beta)
    before = probabilities(run, copy.deepcopy(run._before))
    nodes = torch.tensor([0, 3, 9, 11])
    course = run.shield(nodes)
    assert course is not None and course.examples is nodes
    with torch.no_grad():
        for parameter in run.model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=torch.manual_seed(1)))
    now = probabilities(run, run.model)
    assert len(now[0]) == len(before[0]) + 1  # a class came with the part
    each = [slow_divergence(before[node], now[node]) for node in nodes.tolist()]
    assert min(each) > 0
    weight = torch.tensor([1.0, 2.0, 0.0, 1.0])
    expected = sum(e * w for e, w in zip(each, weight.tolist(), strict=True)) / 4
    expected += beta * run.model.take_concentration().item()  # of the pass that `now` comes from
    run.model.train()  # nothing is dropped in training, either
    assert course.objective(nodes, weight).item() == pytest.approx(expected, rel=1e-4)
    # Together they count no more than the eight nodes that were learned from before.
    for count, each in ((4, 1.0), (14, 8 / 14)):
        course = run.shield(torch.arange(count))
        assert course is not None and course.weight.tolist() == pytest.approx([each] * count)


@every_form
@pytest.mark.parametrize("batch", [0, 4])
def test_a_shield_pulls_nowhere_as_long_as_nothing_has_changed(form: str, batch: int) -> None:
    """In batches both models see the same few neighbours."""
    run = begun(form, dropout=0.5, beta=0.0, batch=batch, neighbours=1)
    assert run._before is not None
    with torch.no_grad():  # a new class that nobody is near
        run.model.class_bias[2] = -50.0
    nodes = torch.arange(14)
    course = run.shield(nodes)
    assert course is not None
    loss = course.objective(nodes, course.weight)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-6)
    assert all(p.grad is None or p.grad.abs().max() < 1e-6 for p in run.model.parameters())
    assert all(p.grad is None for p in run._before.parameters())


def test_a_network_has_no_rows_that_could_bring_news_alone() -> None:
    run = begun("gat-divided", arrive_epochs=2)
    assert not run.has_rows and not run.old_rows()
    assert not run.brings_news_only()


def without_new_classes(run: NodeTrainer) -> NodeTrainer:
    """The same run, as if its newest part had brought none."""
    assert run.part is not None
    end = run.part.new_classes.stop
    run.part = replace(run.part, new_classes=range(end, end))
    return run


@pytest.mark.parametrize(
    ("shield", "count"), [("0", 0), ("50%", 7), ("0.5x", 4), ("3", 3), ("all", 14)]
)
def test_a_shield_is_drawn_from_all_old_nodes(shield: str, count: int) -> None:
    run = without_new_classes(begun("gat-divided", shield=shield))
    drawn: set[int] = set()
    for _ in range(30):
        nodes, learned_from = run.draw_shield()
        assert len(set(nodes.tolist())) == len(nodes) == count
        assert len(learned_from) == 0
        drawn |= set(nodes.tolist())
    assert drawn == (set(range(14)) if count else set())  # the second part begins there
    assert (run.shield(nodes) is None) == (count == 0)


def test_where_classes_arrive_nodes_of_unknown_class_are_free_to_be_of_one() -> None:
    run = begun("gat-divided", shield="all")
    assert run.part is not None and len(run.part.new_classes) == 1
    assert run.draw_shield()[0].tolist() == run.examples("train", 0, 1).tolist()


def test_in_batches_an_epoch_takes_some_old_nodes_for_each_new_one_that_is_learned_from() -> None:
    run = begun("gat-divided", batch=4)
    course = run.shield(torch.arange(14))
    assert course is not None and run.part is not None
    assert course.most == 10 * len(run.part.train) == 40


@every_form
def test_a_new_class_starts_where_its_nodes_are(form: str) -> None:
    """It scores at its nodes like the best old class, at old nodes like the others, on average."""
    random, placed = (begun(form, start=start) for start in ("random", "auto"))
    assert torch.equal(random.model.class_weight[:2], placed.model.class_weight[:2])
    assert not torch.equal(random.model.class_weight[2], placed.model.class_weight[2])
    run, old = placed, placed.examples("train", 0, 1)
    new = run.examples("train", 1)
    own = new[run.labels[new] == 2]
    assert len(own) > 0
    scores = run.scores(torch.arange(len(run.x)))
    assert scores[own, 2].mean().item() == pytest.approx(scores[own, :2].amax(1).mean().item())
    assert scores[old, 2].mean().item() == pytest.approx(scores[old, :2].mean().item(), abs=1e-5)


@pytest.mark.parametrize("batch", [0, 4])
def test_where_there_is_nothing_to_learn_nothing_moves(batch: int) -> None:
    changes: dict[str, Any] = {"shield": "all", "budget": "0", "weight_decay": 0.1}
    run = begun("gat-divided", labelled=False, later_epochs=5, batch=batch, **changes)
    before = weights(run)
    learned = DiCGRL(run.settings).learn(run)
    assert learned.fits == [] and learned.replayed == 0
    assert all(torch.equal(values, before[name]) for name, values in weights(run).items())


@pytest.mark.parametrize("batch", [0, 4])
def test_a_part_without_examples_of_its_own_replays_what_it_activates(batch: int) -> None:
    run = begun("gat-divided", labelled=False, shield="all", later_epochs=2, batch=batch)
    before = weights(run)
    learned = DiCGRL(run.settings).learn(run)
    assert learned.replayed > 0 and len(learned.fits) == 1
    assert not all(torch.equal(values, before[name]) for name, values in weights(run).items())


def test_examples_that_count_nothing_are_no_failure() -> None:
    changes: dict[str, Any] = {"budget": "all", "weight1": 0.0, "weight2": 0.0}
    run = begun("gat-divided", labelled=False, later_epochs=2, **changes)
    learned = DiCGRL(run.settings).learn(run)
    assert learned.replayed > 0 and len(learned.fits) == 1


def test_in_batches_drift_is_not_known() -> None:
    run = begun("gat-divided", batch=4, later_epochs=1)
    assert "drift" not in DiCGRL(run.settings).learn(run).details


@every_form
def test_drift_is_how_far_old_nodes_moved_and_how_many_changed_class(form: str) -> None:
    run = begun(form, later_epochs=20, later_rate=5.0, validate_on="none")
    drift = DiCGRL(run.settings).learn(run).details["drift"]
    before, now = probabilities(run, run._before), probabilities(run, run.model)
    far = [
        sum(abs(p - q) for p, q in zip([*old, 0.0], new, strict=True)) / 2
        for old, new in zip(before[:14], now[:14], strict=True)
    ]
    changed = [
        old.index(max(old)) != new.index(max(new))
        for old, new in zip(before[:14], now[:14], strict=True)
    ]
    assert drift["mean"] == pytest.approx(sum(far) / 14, rel=1e-4)
    assert drift["largest"] == pytest.approx(max(far), rel=1e-4)
    assert drift["nodes"] == sum(changed) > 0


def divergence(run: NodeTrainer) -> float:
    """How far old nodes are on average from what the model of before says."""
    before, now = probabilities(run, run._before), probabilities(run, run.model)
    return sum(map(slow_divergence, before[:14], now[:14])) / 14


@pytest.mark.parametrize("batch", [0, 4])
def test_old_nodes_stay_nearer_to_what_they_were_behind_a_shield(batch: int) -> None:
    far = []
    for shield in ("0", "all"):
        run = begun("gat-divided", shield=shield, later_epochs=20, batch=batch, validate_on="none")
        learned = DiCGRL(run.settings).learn(run)
        assert learned.replayed == len(run.activate(DiCGRL(run.settings).budget(run)).positions)
        far.append(divergence(run))
    assert far[1] < 0.5 * far[0]


def test_a_step_of_a_whole_network_takes_the_mean_over_examples_of_all_kinds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = begun("gat-divided", shield="7", budget="4", weight1=0.5, later_epochs=1, beta=0.0)
    lessons: list[TrainingSet] = []
    fit = run.fit
    monkeypatch.setattr(
        run, "fit", lambda lesson, *rest: (lessons.append(lesson), fit(lesson, *rest))[1]
    )
    DiCGRL(run.settings).learn(run)
    (lesson,) = lessons
    assert isinstance(lesson, _Mixed)
    ((objective, examples, weight),) = lesson.batches(2, 3, torch.Generator())
    new = run.examples("train", 1)
    assert torch.equal(examples[: len(new)], new)
    replayed, shielded = torch.split(examples[len(new) :], [4, 7])
    assert weight.tolist() == pytest.approx([1.0] * len(new) + [0.5] * 4 + [1.0] * 7)
    run.model.train(False)
    course = run.shield(shielded)
    assert course is not None
    losses = (
        run.objective(new)(new, torch.ones(len(new))).item() * len(new)
        + run.objective(replayed, old=True)(replayed, torch.ones(4)).item() * 4 * 0.5
        + course.objective(shielded, course.weight).item() * 7
    )
    expected = losses / (len(new) + 2 + 7)
    assert objective(examples, weight).item() == pytest.approx(expected, rel=1e-5)


def test_a_later_part_may_be_learned_to_the_end() -> None:
    run = begun("gat-divided", validate_on="none", later_epochs=5, patience=1)
    learned = DiCGRL(run.settings).learn(run)
    assert [(fit.epochs, fit.best_epoch, fit.best) for fit in learned.fits] == [(5, 5, None)]
    assert run.validator() is None and run.validator(anew=True) is not None

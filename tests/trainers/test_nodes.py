from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from dicgrl import Learner, UserError
from dicgrl.graph import KnowledgeStream, NetworkPart, NetworkStream, NetworkStreamBuilder
from dicgrl.jobs.merged import run_merged
from dicgrl.models import NetworkModel
from dicgrl.recipes import Recipe
from dicgrl.settings import Settings
from dicgrl.strategies.bounds import Lower
from dicgrl.tasks import task_named
from dicgrl.trainers import LinkTrainer, NodeTrainer
from dicgrl.training import EpochReport, FitReport
from dicgrl.training.loop import Monitor
from tests.stores import FILES

CPU = torch.device("cpu")
SMALL: dict[str, Any] = {"hidden": 4, "heads": 2, "epochs": 30, "lr": 0.02, "dropout": 0.2}
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "disentangled": {"components": 4, "top": 2},
    "published": {"components": 4, "top": 2, "routing": "published"},
}
BATCHES: dict[str, dict[str, Any]] = {"full": {}, "mini": {"batch": 8, "neighbours": 4}}
every_kind = pytest.mark.parametrize(
    "changes",
    [
        {"model": model, **form, **batch}
        for model in ("gat", "sage")
        for form in FORMS.values()
        for batch in BATCHES.values()
    ],
    ids=[f"{m}-{f}-{b}" for m in ("gat", "sage") for f in FORMS for b in BATCHES],
)


def recipe_of(**changes: Any) -> Recipe:
    return Recipe("best", Settings("gat").changed(SMALL | changes), {"accuracy": 80.0})


def clusters(each: int = 20, parts: int = 1, extra: int = 0, seed: int = 0) -> NetworkStream:
    """Two clusters, linked inside, with noisy features that tell them apart.

    Args:
        each: Nodes of a cluster and part; half of them to train on, a quarter to test.
        parts: Parts of the stream.
        extra: Nodes of each part without class, features and edges.
        seed: Seed of the features.
    """
    builder = NetworkStreamBuilder("clusters", num_features=6)
    random = np.random.default_rng(seed)
    for part in range(parts):
        labels = np.concatenate([np.repeat([0, 1], each), np.full(extra, -1)])
        names = [f"part {part} node {i}" for i in range(len(labels))]
        ids = builder.nodes.add(names)
        builder.classes.add(["red", "blue"])
        features = random.normal(0, 1, (len(labels), 6)) + 1.5 * labels[:, None]
        features[2 * each :] = 0
        edges = [
            (ids[start + i], ids[start + (i + step) % each])
            for start in (0, each)
            for i in range(each)
            for step in (1, 3)
        ]
        role = np.concatenate([np.arange(2 * each) % 4, np.full(extra, -1)])
        builder.add(
            np.array(edges),
            features.astype(np.float32),
            labels,
            ids[(role == 0) | (role == 2)],
            ids[role == 1],
            ids[role == 3],
        )
    return builder.build()


def rebuilt(
    stream: NetworkStream,
    edges: npt.NDArray[np.int64],
    features: npt.NDArray[np.float32] | None = None,
) -> NetworkStream:
    """The first part with other edges and features."""
    part = stream[0]
    builder = NetworkStreamBuilder("rebuilt", stream.num_features)
    builder.nodes.add(list(stream.nodes))
    builder.classes.add(list(stream.classes))
    chosen = part.features if features is None else features
    builder.add(edges, chosen, part.labels, part.train, part.valid, part.test)
    return builder.build()


def part_run(part: NetworkPart, seed: int = 0, **changes: Any) -> NodeTrainer:
    trainer = NodeTrainer(recipe_of(**changes).settings, seed, CPU)
    trainer.take(part)
    return trainer


def node_run(stream: NetworkStream, seed: int = 0, **changes: Any) -> NodeTrainer:
    return part_run(stream.merged()[0], seed, **changes)


def learn(trainer: NodeTrainer, monitor: Monitor | None = None) -> FitReport:
    (report,) = Lower(Lower.Settings()).learn(trainer, monitor).fits
    return report


def scores_of(model: NetworkModel, trainer: NodeTrainer) -> Tensor:
    model.eval()
    with torch.no_grad():
        scores: Tensor = model(trainer.x, trainer.edges)
    return scores


# Learning.


@every_kind
def test_two_clusters_are_told_apart(changes: dict[str, Any]) -> None:
    epochs = 10 if "batch" in changes else 30  # of five steps or of one
    trainer = node_run(clusters(each=40), hidden=8, epochs=epochs, **changes)
    before = trainer.measure(trainer.examples("test"))
    learn(trainer)
    after = trainer.measure(trainer.examples("test"))
    assert after["accuracy"] >= 0.9
    assert after["loss"] < before["loss"]


def test_the_network_helps() -> None:
    """Features that are nearly noise: only the neighbours' mean tells the clusters apart."""
    stream = clusters(each=40, seed=3)
    part = stream[0]
    noisy = part.features - 1.1 * part.labels[:, None].astype(np.float32)
    results = []
    for edges in (part.edges, part.edges[:0]):
        trainer = node_run(rebuilt(stream, edges, noisy), model="sage", features="none")
        learn(trainer)
        results.append(trainer.measure(trainer.examples("test"))["accuracy"])
    assert results[0] > results[1] + 0.1


@every_kind
def test_the_same_seed_gives_the_same_result(changes: dict[str, Any]) -> None:
    stream = clusters(each=8)
    found = []
    for seed, outside in ((1, 10), (1, 20), (2, 10)):
        torch.manual_seed(outside)
        trainer = node_run(stream, seed, epochs=4, **changes)
        history = learn(trainer).history
        found.append(([entry.loss for entry in history], scores_of(trainer.model, trainer)))
    assert found[0][0] == found[1][0] and torch.equal(found[0][1], found[1][1])
    assert found[0][0] != found[2][0] and not torch.equal(found[0][1], found[2][1])


@pytest.mark.parametrize("batch", [0, 8])
def test_learning_leaves_the_global_generator_as_it_was(batch: int) -> None:
    trainer = node_run(clusters(each=8), batch=batch, epochs=2)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    learn(trainer)
    trainer.measure(trainer.examples("test"))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("batch", [0, 8])
def test_the_weights_of_the_smallest_validation_loss_are_kept(batch: int) -> None:
    # So large a learning rate goes up and down; training ends 3 validations after the best one.
    trainer = node_run(clusters(), lr=0.3, epochs=60, patience=3, batch=batch, features="none")
    heard: list[EpochReport] = []
    report = learn(trainer, heard.append)
    losses = [-entry.validation for entry in heard if entry.validation is not None]
    assert len(losses) == report.epochs == report.best_epoch + 3 < 60
    assert min(losses) == losses[report.best_epoch - 1]
    assert trainer.measure(trainer.examples("valid"))["loss"] == pytest.approx(min(losses))
    assert report.best == pytest.approx(-min(losses))


def test_validation_does_not_look_at_the_test_nodes() -> None:
    """Other classes at the test nodes: the same weights."""
    stream = clusters(each=8)
    first, second = (node_run(stream, epochs=5) for _ in range(2))
    second.labels[second.examples("test")] = 1 - second.labels[second.examples("test")]
    learn(first)
    learn(second)
    assert torch.equal(scores_of(first.model, first), scores_of(second.model, second))


def test_without_validation_nodes_training_goes_to_the_end() -> None:
    part = clusters(each=8)[0]
    trainer = part_run(replace(part, valid=part.valid[:0]), epochs=6, patience=1)
    report = learn(trainer)
    assert report.epochs == report.best_epoch == 6 and report.best is None


@pytest.mark.parametrize(("batch", "steps"), [(0, 1), (8, 3)])
def test_a_full_batch_is_one_step_and_a_mini_batch_several(batch: int, steps: int) -> None:
    part = clusters(each=40)[0]
    part = replace(part, train=part.train[:20])
    trainer = part_run(part, batch=batch, neighbours=1, epochs=1)
    seen: list[int] = []
    trainer.model.register_forward_pre_hook(
        lambda model, inputs: seen.append(len(inputs[0])) if model.training else None
    )
    learn(trainer)
    assert len(seen) == steps
    if batch:
        # Eight nodes, a neighbour of each, and a neighbour of each of those.
        assert all(size <= 8 * 3 for size in seen)
    else:
        assert seen == [80]


def test_nodes_without_class_are_never_trained_on_or_measured() -> None:
    trainer = node_run(clusters(extra=4), batch=8, epochs=2)
    assert (trainer.labels < 0).sum() == 4
    for nodes in (trainer.examples("train"), trainer.examples("valid"), trainer.examples("test")):
        assert (trainer.labels[nodes] >= 0).all()
    # What stands in place of the missing class makes no difference.
    other = node_run(clusters(extra=4), batch=8, epochs=2)
    other.labels[other.labels < 0] = 10**6
    learn(trainer)
    learn(other)
    assert torch.equal(scores_of(trainer.model, trainer), scores_of(other.model, other))


@every_kind
@pytest.mark.parametrize("how", ["l2", "row"])
def test_isolated_and_featureless_nodes_give_numbers(changes: dict[str, Any], how: str) -> None:
    part = clusters(each=8, extra=3)[0]
    train = np.concatenate([part.train, [16, 18]])
    part = replace(part, train=train, labels=np.maximum(part.labels, 0))
    trainer = part_run(part, features=how, epochs=3, **changes)
    learn(trainer)
    assert scores_of(trainer.model, trainer).isfinite().all()
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())


@every_kind
def test_a_network_without_any_edge(changes: dict[str, Any]) -> None:
    stream = clusters(each=8)
    trainer = node_run(rebuilt(stream, stream[0].edges[:0]), epochs=3, **changes)
    assert trainer.edges.index.shape == (2, 16)  # the self loops
    learn(trainer)
    assert scores_of(trainer.model, trainer).isfinite().all()


def test_self_loops_and_repeated_edges_are_one_self_loop_and_one_edge() -> None:
    stream = clusters(each=8)
    edges = stream[0].edges
    untidy = rebuilt(stream, np.concatenate([edges, edges[:, ::-1], [[3, 3], [3, 3]]]))
    assert torch.equal(node_run(untidy).edges.index, node_run(stream).edges.index)


def test_measuring_does_not_train() -> None:
    trainer = node_run(clusters(each=8))
    before = scores_of(trainer.model, trainer)
    assert trainer.measure(trainer.examples("test")) == trainer.measure(trainer.examples("test"))
    expected = (
        (before[trainer.examples("test")].argmax(1) == trainer.labels[trainer.examples("test")])
        .double()
        .mean()
        .item()
    )
    assert trainer.measure(trainer.examples("test"))["accuracy"] == expected
    assert torch.equal(scores_of(trainer.model, trainer), before)
    assert all(parameter.grad is None for parameter in trainer.model.parameters())


@every_kind
def test_a_network_without_training_nodes(changes: dict[str, Any]) -> None:
    part = clusters(each=8)[0]
    trainer = part_run(replace(part, train=part.train[:0]), epochs=2, **changes)
    learn(trainer)
    assert scores_of(trainer.model, trainer).isfinite().all()


@pytest.mark.parametrize("model", ["gat", "sage"])
def test_a_network_without_features_is_refused(model: str) -> None:
    builder = NetworkStreamBuilder("bare", num_features=0)
    ids = builder.nodes.add("ab")
    builder.classes.add(["red"])
    builder.add([(0, 1)], np.zeros((2, 0), np.float32), np.zeros(2, np.int64), ids, ids[:0], ids)
    with pytest.raises(UserError, match=f"nodes have no features; {model} needs them"):
        node_run(builder.build(), model=model)


@pytest.mark.parametrize("model", ["transe", "convkb"])
def test_a_model_of_links_is_refused_for_a_network(model: str) -> None:
    with pytest.raises(UserError, match=f"{model} predicts links, but clusters.*use gat or sage"):
        task_named("node-classification").check_model(model, "clusters")


@pytest.mark.parametrize("model", ["gat", "sage"])
def test_a_model_of_nodes_is_refused_for_a_knowledge_graph(model: str) -> None:
    with pytest.raises(UserError, match=f"{model} classifies nodes.*knowledge graph"):
        task_named("link-prediction").check_model(model, "films")


def test_parts_of_the_other_kind_are_refused() -> None:
    links = KnowledgeStream.from_labels("tiny", [[("a", "r", "b")]])
    with pytest.raises(
        UserError, match="gat classifies nodes, but this part is of a knowledge graph"
    ):
        NodeTrainer(Settings("gat"), 0, CPU).take(links[0])
    with pytest.raises(UserError, match="transe predicts links, but this part is of a network"):
        LinkTrainer(Settings(), 0, CPU).take(clusters()[0])


# The whole setting.


@pytest.mark.parametrize("graph", ["accumulated", "part"])
def test_results_say_what_was_done(graph: str) -> None:
    stream = clusters(each=8, parts=2)
    recipe = recipe_of(graph=graph, epochs=3)
    results = run_merged(stream, recipe, seed=4, device="cpu")
    assert results["protocol"]["graph"] == results["settings"]["graph"] == graph
    assert set(results["protocol"]) == {"metric", "selection", "edges", "graph"}
    assert (results["dataset"], results["task"]) == ("clusters", "node-classification")
    assert (results["model"], results["seed"], results["setting"]) == ("gat", 4, "whole")
    assert results["count"] == {"train": 16, "valid": 8, "test": 8}  # both parts
    assert Settings.from_dict(results["settings"]) == recipe.settings
    assert set(results["validation"]) == {"accuracy", "loss"}
    assert set(results["test"]) == {"accuracy"}
    for split in ("validation", "test"):
        assert 0 <= results[split]["accuracy"] <= 1
    assert json.loads(json.dumps(results)) == results


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", ["gat", "sage"])
def test_the_saved_model_is_the_one_that_was_measured(
    tmp_path: Path, model: str, form: str
) -> None:
    stream = clusters(each=8)
    recipe = recipe_of(model=model, epochs=5, **FORMS[form])
    results = run_merged(stream, recipe, seed=3, device="cpu", out=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == FILES
    assert json.loads((tmp_path / "results.json").read_text()) == results
    loaded = Learner.load(tmp_path, device="cpu").trainer.model
    assert isinstance(loaded, NetworkModel)
    trained = node_run(stream, 3, model=model, epochs=5, **FORMS[form])
    learn(trained)
    assert torch.equal(scores_of(loaded, trained), scores_of(trained.model, trained))
    other = node_run(stream, 0, model=model, epochs=5, **FORMS[form])
    other.model = loaded
    assert other.measure(other.examples("test"))["accuracy"] == results["test"]["accuracy"]
    assert other.measure(other.examples("valid")) == results["validation"]
    # It grows as the one that was saved would have grown.
    loaded.grow(1)
    trained.model.grow(1)
    assert torch.equal(loaded.class_weight, trained.model.class_weight)

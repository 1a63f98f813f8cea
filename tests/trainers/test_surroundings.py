"""What a few nodes of a network see, and what a part makes the trainer prepare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dicgrl.datasets.synthetic_network import class_network
from dicgrl.graph import NetworkStream, NetworkStreamBuilder
from dicgrl.settings import Settings
from dicgrl.trainers import NodeTrainer
from dicgrl.trainers.nodes import scaled
from dicgrl.training.neighbours import WholeNetwork

CPU = torch.device("cpu")
FORMS: dict[str, dict[str, Any]] = {"plain": {}, "divided": {"components": 4, "top": 2}}
every_form = pytest.mark.parametrize("form", FORMS)
every_scope = pytest.mark.parametrize("graph", ["accumulated", "part"])


def trainer_of(stream: NetworkStream, model: str = "gat", **changes: Any) -> NodeTrainer:
    settings = Settings(model, "lower", hidden=4, heads=2, **changes)
    trainer = NodeTrainer(settings, 0, CPU)
    for part in stream:
        trainer.take(part)
    return trainer


def ring(nodes: int = 400) -> NetworkStream:
    """A ring in two parts: two steps from a node lie four others, however long it is."""
    builder = NetworkStreamBuilder("ring", num_features=3)
    random = np.random.default_rng(0)
    for part in range(2):
        ids = builder.nodes.add(f"{part} {i}" for i in range(nodes // 2))
        builder.classes.add(["a", "b"])
        edges = np.stack([ids, np.roll(ids, 1)], 1) if part else np.stack([ids[1:], ids[:-1]], 1)
        features = random.normal(size=(len(ids), 3)).astype(np.float32)
        builder.add(edges, features, ids % 2, ids[::4], ids[1::4], ids[2::4])
    return builder.build()


@every_form
@every_scope
@pytest.mark.parametrize("model", ["gat", "sage"])
def test_a_node_is_seen_by_what_lies_around_it_as_in_the_whole_network(
    model: str, form: str, graph: str
) -> None:
    trainer = trainer_of(ring(), model, graph=graph, **FORMS[form])
    nodes = torch.tensor([7, 250, 7, 399])
    assert torch.allclose(trainer.vectors_of(nodes), trainer.vectors()[nodes], atol=1e-6)


@every_scope
def test_only_what_lies_around_is_passed_unless_it_is_nearly_all(graph: str) -> None:
    trainer = trainer_of(ring(), graph=graph)
    few, many = torch.tensor([3, 300]), torch.arange(0, 400, 2)
    seen = trainer.surroundings(few, 10)(few)
    assert isinstance(seen.x, Tensor) and len(seen.x) <= 2 * 5
    assert isinstance(trainer.surroundings(many, 10), WholeNetwork) == (graph == "accumulated")
    assert not isinstance(trainer.surroundings(many[:0], 10), WholeNetwork)


def test_a_hub_is_seen_by_some_of_its_neighbours() -> None:
    builder = NetworkStreamBuilder("star", num_features=1)
    ids = builder.nodes.add(map(str, range(200)))
    builder.classes.add(["a"])
    none = ids[:0]
    edges = np.stack([ids[1:], np.zeros(199, np.int64)], 1)
    builder.add(edges, np.ones((200, 1), np.float32), ids * 0, ids[:1], none, none)
    trainer = trainer_of(builder.build())
    hub = torch.tensor([0])
    assert len(trainer.surroundings(hub, 5)(hub).x) == 1 + 5


@pytest.mark.parametrize("features", ["l2", "row", "none"])
def test_what_grows_is_what_would_be_made_anew(features: str) -> None:
    stream = class_network(60, 3, arrival=(0, 0, 2))
    trainer = trainer_of(stream, features=features)
    every = torch.from_numpy(np.concatenate([part.features for part in stream]))
    assert torch.equal(trainer.x, scaled(every, features))
    assert trainer.labels.tolist() == [int(c) for part in stream for c in part.labels]
    recalled = NodeTrainer(trainer.settings, 0, CPU)
    recalled.recall(trainer.history, trainer.model)
    assert torch.equal(recalled.x, trainer.x)
    assert torch.equal(recalled.edges.index, trainer.edges.index)


def test_a_new_part_forgets_the_edges_and_features_that_were_prepared_for_the_last() -> None:
    stream = class_network(60, 3)
    trainer = trainer_of(stream[:1], components=4, top=2)
    first = trainer.vectors()
    for part in list(stream)[1:]:
        trainer.take(part)
    assert len(first) < len(trainer.vectors()) == len(trainer.inputs) == 60
    assert trainer.edges.num_nodes == 60


def test_classes_that_arrive_tell_how_many_of_their_own_nodes_are_right() -> None:
    stream = class_network(80, 3, shares=(0.6, 0.4), arrival=(0, 0, 1))
    trainer = trainer_of(stream)
    part = list(stream)[1]
    own = [node for node in part.train.tolist() if trainer.labels[node] == 2]
    guesses = trainer.scores(torch.arange(80)).argmax(1)
    right = sum(int(guesses[node]) == 2 for node in own)
    told = trainer.describe_part()["new_classes"]
    assert told == {"class 2": {"right": right, "of": len(own)}}
    for stream_of_old_classes in (
        stream[:1],
        class_network(80, 3),
    ):  # metrics say it of a first part
        assert "new_classes" not in trainer_of(stream_of_old_classes).describe_part()

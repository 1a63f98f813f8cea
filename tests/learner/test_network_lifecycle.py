"""Edges and classes that a network takes back, nodes that are revised, renamed and merged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from dicgrl import Learner
from dicgrl.errors import UserError
from dicgrl.readers import NetworkFacts
from tests.tiny import STRATEGIES, circles, learner_of


def network(strategy: str = "lower") -> Learner:
    learner = learner_of("nodes", strategy)
    learner.learn(circles()[0])
    return learner


def first_edge(learner: Learner) -> tuple[str, str]:
    graph = learner.trainer.graph
    one, other = graph.nodes.labels(graph.edges[0])
    return one, other


def test_an_edge_is_taken_back_in_every_form(tmp_path: Path) -> None:
    models = []
    edge = first_edge(network())
    path = tmp_path / "edges.tsv"
    path.write_text("\t".join(edge) + "\n", encoding="utf-8")
    for facts in ([edge], [edge[::-1]], np.array([edge]), path, NetworkFacts(edges=[edge])):
        learner = network()
        count = len(learner.trainer.graph.edges)
        report = learner.forget(facts)
        assert (report.kind, report.details["forgotten"]) == ("forget", 1)
        assert len(learner.trainer.graph.edges) == count - 1
        models.append(learner.trainer.model.class_weight.detach().clone())
    assert all(torch.equal(weights, models[0]) for weights in models)


def test_a_class_that_is_taken_back_is_learned_no_more() -> None:
    learner = network()
    graph = learner.trainer.graph
    node = int(graph.part_nodes("train", 0)[0])
    label, cls = graph.nodes.labels([node])[0], graph.classes.labels([graph.labels[node]])[0]
    with pytest.raises(UserError, match="not known"):
        learner.forget([(label, "nobody")])
    learner.forget([(label, cls)])
    assert graph.labels[node] == -1
    assert node not in learner.trainer.examples("train").tolist()
    assert learner.predict(node=label)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_learns_on_after_it_forgot(strategy: str) -> None:
    learner = network(strategy)
    learner.forget([first_edge(learner)])
    learner.learn(circles()[1])
    learner.evaluate()
    assert [report.kind for report in learner.reports] == ["learn", "forget", "learn"]


def test_a_class_that_changes_is_learned_anew() -> None:
    learner = network()
    graph = learner.trainer.graph
    node = int(graph.part_nodes("train", 0)[0])
    label = graph.nodes.labels([node])[0]
    report = learner.revise(NetworkFacts([label], classes=["purple"]))
    assert (report.kind, report.part, report.new_examples) == ("revise", 1, 1)
    assert graph.classes.labels([graph.labels[node]]) == ["purple"]
    assert learner.trainer.model.num_classes == len(graph.classes)
    assert learner.trainer.examples("train", 1).tolist() == [node]
    assert node not in learner.trainer.examples("train", 0, 1).tolist()
    with pytest.raises(UserError, match="nothing to revise"):
        learner.revise(NetworkFacts([label], classes=["purple"]))
    with pytest.raises(UserError, match="unknown node 'nobody'"):
        learner.revise(NetworkFacts(["nobody"], classes=["purple"]))


def test_features_that_change_are_seen() -> None:
    learner = network()
    graph = learner.trainer.graph
    label = graph.nodes.labels([3])[0]
    learner.revise(NetworkFacts([label], features=[[7.0, 1.0]]))
    assert graph.features[3].tolist() == [7.0, 1.0]
    other = Learner(settings=learner.settings, seed=learner.seed, device="cpu")
    other.trainer.recall(learner.trainer.history, learner.trainer.model)
    assert torch.equal(other.trainer.x, learner.trainer.x)
    learner.learn(circles()[1])


def test_nodes_and_classes_become_one() -> None:
    learner = network()
    graph = learner.trainer.graph
    kept, gone = graph.nodes.labels([0, 1])
    degree = len(
        {int(n) for n in graph.edges[graph.edges_of(np.array([0, 1]))[1]].ravel()} - {0, 1}
    )
    learner.merge(kept, gone)
    assert int(graph.degree(np.array([0]))[0]) == degree
    assert gone not in {a.label for a in learner.similar(kept, k=99)}
    classes = graph.classes.labels([0, 1])
    learner.merge(*classes)
    assert set(graph.labels.tolist()) <= {-1, 0}
    assert [a.label for a in learner.predict(node=kept, k=9)] == [classes[0]]
    learner.rename(classes[0], "all")
    learner.learn(circles()[1])


@pytest.mark.parametrize("model", ["gat", "sage"])
def test_merged_classes_do_not_take_over_the_others(model: str) -> None:
    classes, draw = 5, np.random.default_rng(0)
    of_node = np.arange(300) % classes
    features = draw.normal(size=(300, classes), scale=0.4) + np.eye(classes)[of_node]
    labels = [f"n{node}" for node in range(300)]
    ends = draw.integers(300, size=(900, 2))
    alike = of_node[ends[:, 0]] == of_node[ends[:, 1]]
    edges = [(labels[a], labels[b]) for a, b in ends[alike] if a != b]
    known = [f"c{cls}" if node < 200 else None for node, cls in enumerate(of_node.tolist())]
    learner = Learner(model, device="cpu", epochs=60)
    learner.learn(NetworkFacts(labels, features=features, classes=known, edges=edges))

    def right() -> float:
        """Share of right answers for nodes of unknown class that are in none of the merged."""
        asked = [node for node in range(200, 300) if of_node[node] > 1]
        answers = [learner.predict(node=labels[node], k=1)[0].label for node in asked]
        return float(np.mean([a == f"c{of_node[n]}" for a, n in zip(answers, asked, strict=True)]))

    before = right()
    learner.merge("c0", "c1")
    assert before > 0.7 and right() > before - 0.15


def test_a_knowledge_graph_has_no_nodes_to_revise() -> None:
    learner = learner_of("links")
    learner.learn([("a", "r", "b")])
    with pytest.raises(UserError, match="no nodes to revise"):
        learner.revise(NetworkFacts(["a"], classes=["x"]))

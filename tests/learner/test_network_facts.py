"""Facts of a network: nodes and edges by their labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dicgrl import Learner, NetworkFacts, NetworkGraph
from dicgrl.errors import UserError
from dicgrl.graph import SPLITS, NetworkPart
from tests.learner.helpers import assert_same
from tests.tiny import (
    STRATEGIES,
    circles,
    learner_of,
    stream_of,
    taught,
)


def facts_of(number: int) -> NetworkFacts:
    """A part of the circles by its labels."""
    part = circles()[number]
    role = np.full(part.num_nodes, "", dtype="<U5")
    for split in SPLITS:
        role[getattr(part, split)] = split
    return NetworkFacts(
        part.nodes.labels(part.new_nodes),
        part.features,
        [part.classes.labels([label])[0] for label in part.labels],
        [tuple(part.nodes.labels(edge)) for edge in part.edges],
        role[part.new_nodes.start :],
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_facts_of_a_network_teach_what_the_parts_of_a_stream_do(
    strategy: str, tmp_path: Path
) -> None:
    expected = taught(learner_of("nodes", strategy))
    learner = learner_of("nodes", strategy)
    for number in range(3):
        learner.learn(facts_of(number), probe=True)
        learner.evaluate()
        learner.save(tmp_path / "run")
        learner = Learner.load(tmp_path / "run", device="cpu")
    assert_same(learner, expected)
    graph, wanted = learner.trainer.graph, expected.trainer.graph
    assert isinstance(graph, NetworkGraph) and isinstance(wanted, NetworkGraph)
    assert graph.nodes == wanted.nodes and graph.classes == wanted.classes
    assert np.array_equal(graph.edges, wanted.edges)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_edges_between_old_nodes_are_learned_from(strategy: str) -> None:
    learner = taught(learner_of("nodes", strategy), 2)
    assert learner.learn(NetworkFacts(edges=[("n0", "n31"), ("n0", "n2")])).new_examples == 0
    learner.evaluate()
    graph = learner.trainer.graph
    assert isinstance(graph, NetworkGraph) and graph.edges[-1].tolist() == [0, 31]
    assert learner.learn(facts_of(2)).new_examples == len(circles()[2].train)
    assert len(learner.predict(node="n39")) == 3


def test_facts_of_a_network_that_do_not_fit_are_refused_and_nothing_is_learned() -> None:
    learner = taught(learner_of("nodes"), 2)
    before = learner.predict(node="n3")
    for wrong, message in (
        (NetworkFacts(["z"], [[1, 2]], edges=[("z", "n99")]), "unknown node 'n99'"),
        (NetworkFacts(["n3"], [[1, 2]]), "node 'n3' is already in this run"),
        (NetworkFacts(["z"], [[1, 2, 3]]), "3 features per node; this run has 2"),
    ):
        with pytest.raises(UserError, match=message):
            learner.learn(wrong)
    assert learner.num_parts == 2 and learner.predict(node="n3") == before
    with pytest.raises(UserError, match="network"):
        taught(learner_of("links"), 1).learn(NetworkFacts(["z"], [[1, 2]]))
    taught(learner)


def test_a_first_part_that_is_refused_leaves_no_network_behind() -> None:
    learner, (first, later, _) = learner_of("nodes"), stream_of("nodes")
    assert isinstance(later, NetworkPart)
    wide = replace(later, features=np.concatenate([later.features] * 2, axis=1))
    with pytest.raises(UserError, match="has not arrived"):
        learner.learn(wide)
    assert learner.learn(first).part == 0

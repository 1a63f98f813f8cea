"""The learner as a program meets it: learn, evaluate, predict, save, load, go on."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dicgrl import KnowledgeStream, Learner, NetworkFacts, NetworkGraph
from dicgrl.ask.names import Names
from dicgrl.errors import UserError
from dicgrl.graph import SPLITS, KnowledgeGraph, NetworkPart, Vocabulary
from dicgrl.learner import PartReport
from dicgrl.models import NetworkModel
from dicgrl.recipes import load_recipe
from dicgrl.strategies import Strategy
from dicgrl.training import DivergedError
from tests.tiny import (
    DIVIDED,
    STRATEGIES,
    circles,
    learner_of,
    ring,
    stream_of,
    taught,
    write_ring,
)

FILMS = [
    ("Alien", "genre", "horror"),
    ("Alien", "director", "Scott"),
    ("Blade Runner", "director", "Scott"),
    ("Brazil", "genre", "satire"),
]
MORE = [("Brazil", "director", "Gilliam"), ("Gilliam", "born in", "Minneapolis")]


def reported(learner: Learner) -> list[dict[str, Any]]:
    """What the reports say, times left out."""
    return [
        {k: v for k, v in asdict(report).items() if not k.endswith("seconds")}
        for report in learner.reports
    ]


def assert_same(one: Learner, other: Learner) -> None:
    """Bit for bit: weights, optimiser, strategy, history."""
    mine, theirs = one.run.model, other.run.model
    assert mine.configuration() == theirs.configuration()
    assert mine.tables().keys() == theirs.tables().keys()
    for name, table in mine.tables().items():
        left, right = table.snapshot(), theirs.tables()[name].snapshot()
        for key in left.keys() | right.keys():  # what is not there yet counts as zero
            mine_, theirs_ = (side.get(key, torch.zeros(1, 1)) for side in (left, right))
            assert (mine_ == theirs_).all(), (name, key)
    for (name, a), (_, b) in zip(mine.named_parameters(), theirs.named_parameters(), strict=True):
        assert torch.equal(a, b), name
    state, again = one.strategy.state(), other.strategy.state()
    assert state.keys() == again.keys()
    assert all(torch.equal(state[name], again[name]) for name in state)
    assert reported(one) == reported(other)
    assert (one.tests, one.before, one.retention) == (other.tests, other.before, other.retention)


def fresh(kind: str, strategy: str) -> Learner:
    """A learner whose penalty, where it has one, is felt within a few epochs."""
    return learner_of(kind, strategy, **({"strength": 100.0} if strategy == "ewc" else {}))


@cache
def straight(kind: str, strategy: str) -> Learner:
    """One that learned its stream and was never saved; shared, so only to be compared with."""
    return taught(fresh(kind, strategy))


def test_raw_triples_bring_entities_and_relations_never_seen_before() -> None:
    learner = learner_of("links")
    first = learner.learn(FILMS)
    assert isinstance(first, PartReport)
    assert (first.part, first.new_examples) == (0, 4)
    assert first.learn_seconds > 0 and first.validation is None
    with pytest.raises(UserError, match="unknown entity 'Gilliam'"):
        learner.score([("Brazil", "director", "Gilliam")])
    assert learner.learn(MORE).new_examples == 2
    assert len(learner.score(FILMS + MORE)) == 6
    answers = {a.label for a in learner.predict(head="Gilliam", relation="born in", k=99)}
    assert answers == {label for h, _, t in FILMS + MORE for label in (h, t)} - {"Gilliam"}


def test_a_list_an_array_and_a_file_teach_the_same(tmp_path: Path) -> None:
    path = tmp_path / "more.tsv"
    path.write_text("".join("\t".join(triple) + "\n" for triple in MORE), encoding="utf-8")
    learners = []
    for more in (MORE, np.array(MORE), path, str(path)):
        learner = learner_of("divided", "dicgrl")
        learner.learn(FILMS)
        learner.learn(more)
        learners.append(learner)
    for other in learners[1:]:
        assert_same(learners[0], other)


@pytest.mark.parametrize(
    "wrong",
    [
        ["abc", "def"],
        [("a", "b")],
        [("a", "b", "c", "d")],
        [("a", "", "c")],
        [3],
        np.array([["a", "b"]]),
    ],
    ids=["strings", "pairs", "quadruples", "empty label", "numbers", "array of pairs"],
)
def test_what_is_no_triple_is_refused_and_nothing_is_learned(wrong: Any) -> None:
    learner = learner_of("links")
    learner.learn(FILMS)
    before = learner.score(FILMS)
    with pytest.raises(UserError, match=r"\(head, relation, tail\)"):
        learner.learn(wrong)
    assert learner.num_parts == 1 and learner.score(FILMS) == before


@pytest.mark.parametrize(
    "value", [None, float("nan"), 1.5, True, b"a", np.float64(2), np.bool_(True), ("a",)], ids=repr
)
def test_only_text_and_whole_numbers_are_labels(value: Any) -> None:
    learner = learner_of("links")
    with pytest.raises(UserError, match=rf"triples\[1\]: .*{re.escape(str(value))}.* is no label"):
        learner.learn([("a", "likes", "b"), ("a", "likes", value)])
    with pytest.raises(UserError, match=r"triples\[1\]: .* is no label"):
        KnowledgeStream.from_labels("mine", [[("a", "likes", "b"), (value, "likes", "b")]])
    assert learner.num_parts == 0
    learner.learn([(1, "likes", np.int64(2)), (np.str_("3"), "likes", "1")])
    assert list(learner.run.graph.entities) == ["1", "2", "3"]


def test_a_data_frame_teaches_what_its_rows_say() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FILMS, columns=["film", "relation", "what"])
    learners = [learner_of("links") for _ in range(2)]
    for learner, facts in zip(learners, (frame, FILMS), strict=True):
        learner.learn(facts)
    assert_same(*learners)
    with pytest.raises(UserError, match=r"triples\[0\]: expected \(head, relation, tail\)"):
        learners[0].learn(frame[["film", "what"]])
    frame.loc[2, "what"] = None
    with pytest.raises(UserError, match=r"triples\[2\]: .* is no label"):
        learners[0].learn(frame)


@pytest.mark.parametrize("sign", ["\t", "\n", "\r", "\x00", "\x1b", "\x85", "\u2028", "\ud800"])
def test_labels_with_control_characters_are_refused(sign: str) -> None:
    learner = learner_of("links")
    with pytest.raises(UserError, match=r"triples\[1\]: 'a.*b': a label cannot contain a TAB"):
        learner.learn([("a", "likes", "b"), ("a", "likes", f"a{sign}b")])
    with pytest.raises(UserError, match="cannot contain"):
        Learner(names={"a": f"A{sign}B"})
    learner.learn([("a", "likes", "b\xa0ü \u200d \U0001f600")])


def test_parts_of_the_other_task_and_streams_are_refused(tmp_path: Path) -> None:
    links, nodes = taught(learner_of("links"), 1), taught(learner_of("nodes"), 1)
    with pytest.raises(UserError, match="network"):
        links.learn(circles()[1])
    with pytest.raises(UserError, match="knowledge graph"):
        nodes.learn(ring()[1])
    with pytest.raises(UserError, match="3 parts"):
        links.learn(write_ring(tmp_path / "ring"))
    with pytest.raises(UserError, match="missing"):
        links.learn(tmp_path / "missing.tsv")
    taught(links, 2)
    taught(nodes, 2)


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


@pytest.mark.parametrize("strategy", ["ewc", "emr", "dicgrl"])  # weights, examples, both
def test_facts_of_a_network_teach_what_the_parts_of_a_stream_do(
    strategy: str, tmp_path: Path
) -> None:
    expected = straight("nodes", strategy)
    learner = fresh("nodes", strategy)
    for number in range(3):
        learner.learn(facts_of(number), probe=True)
        learner.evaluate()
        learner.save(tmp_path / "run")
        learner = Learner.load(tmp_path / "run", device="cpu")
    assert_same(learner, expected)
    graph, wanted = learner.run.graph, expected.run.graph
    assert isinstance(graph, NetworkGraph) and isinstance(wanted, NetworkGraph)
    assert graph.nodes == wanted.nodes and graph.classes == wanted.classes
    assert np.array_equal(graph.edges, wanted.edges)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_edges_between_old_nodes_are_learned_from(strategy: str) -> None:
    learner = taught(learner_of("nodes", strategy), 2)
    assert learner.learn(NetworkFacts(edges=[("n0", "n31"), ("n0", "n2")])).new_examples == 0
    learner.evaluate()
    graph = learner.run.graph
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


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_part_without_anything_new_is_learned(strategy: str) -> None:
    learner = taught(learner_of("links", strategy), 2)
    entities = learner.run.model.num_entities
    assert learner.learn([]).new_examples == 0
    learner.evaluate()
    assert learner.learn([("e0", "plus 1", "e3")]).new_examples == 1
    assert learner.learn([("e0", "plus 1", "e3")]).new_examples == 0  # known by now
    assert learner.run.model.num_entities == entities
    assert np.isfinite(learner.score([("e0", "plus 1", "e3")])).all()
    assert len(learner.evaluate().tests) == 2


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_an_empty_first_part_is_refused_and_uses_nothing_up(kind: str) -> None:
    learner, part = learner_of(kind), stream_of(kind)[0]
    with pytest.raises(UserError, match="the first part holds no training examples"):
        learner.learn([] if kind == "links" else replace(part, train=part.train[:0]))
    assert learner.num_parts == 0
    assert_same(taught(learner, 1), taught(learner_of(kind), 1))


def test_an_empty_part_moves_nothing() -> None:
    for strategy in ("lower", "ewc", "gem", "dicgrl"):
        learner = taught(learner_of("links", strategy), 2)
        before = learner.run.model.entities.rows.clone()
        learner.learn([])
        if strategy in ("lower", "ewc", "gem"):
            assert torch.equal(before, learner.run.model.entities.rows), strategy


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_a_seed_gives_the_same_learner_again(kind: str) -> None:
    first, again = (taught(learner_of(kind, "emr", seed=5)) for _ in range(2))
    assert_same(first, again)
    assert reported(taught(learner_of(kind, "emr", seed=6))) != reported(first)


@pytest.mark.parametrize("seed", [-1, 1 << 32, "a", 1.5, None, True])
def test_a_seed_out_of_range(seed: Any) -> None:
    with pytest.raises(UserError, match=f"seed={seed!r}: expected a whole number, 0 to 4294967295"):
        learner_of("links", seed=seed)


def test_a_seed_of_numpy_is_a_seed(tmp_path: Path) -> None:
    learner = taught(learner_of("links", seed=np.int64(5)), 1)  # type: ignore[arg-type]
    learner.save(tmp_path)
    assert_same(Learner.load(tmp_path, device="cpu"), taught(learner_of("links", seed=5), 1))


def test_settings_of_numpy_are_saved(tmp_path: Path) -> None:
    changes = {"lr": np.float32(0.5), "p": np.int64(1)}
    settings = learner_of("links").settings.changed(changes)
    learner = taught(Learner(settings=settings, device="cpu"), 1)
    learner.save(tmp_path)
    assert Learner.load(tmp_path, device="cpu").settings == settings


def test_what_makes_no_sense_in_a_question() -> None:
    learner = taught(learner_of("links"), 1)
    for k in (2.5, "3", 0, None):
        with pytest.raises(UserError, match=f"k={k!r}: expected a whole number, at least 1"):
            learner.predict(head="e1", relation="plus 1", k=k)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"'1\.5' is no label"):
        learner.predict(head=1.5, relation="plus 1")  # type: ignore[arg-type]
    for wrong in ([("e1", "plus 1")], ["abc"], [None], 3, [("e1", "plus 1", None)]):
        with pytest.raises(UserError, match=r"label|head, relation, tail"):
            learner.score(wrong)  # type: ignore[arg-type]
    assert len(learner.score(np.array([("e1", "plus 1", "e2")]))) == 1


def test_a_file_is_no_place_for_a_learner(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for place in (tmp_path / "notes.txt", tmp_path / "notes.txt" / "run"):
        with pytest.raises(UserError, match=r"notes\.txt: is a file; expected a folder"):
            taught(learner_of("links"), 1).save(place)
    assert (tmp_path / "notes.txt").read_text() == "mine"


# Evaluate.


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_evaluation_sums_up_the_tests_of_every_part(kind: str) -> None:
    learner = learner_of(kind, lr=0.2)
    metric = learner.run.metric
    matrix: list[list[float]] = []
    for part in stream_of(kind):
        learner.learn(part, probe=True)
        matrix.append([test[metric] for test in learner.evaluate().tests])
    found = learner.evaluation()
    counts = [test["count"] for test in found.tests]
    assert counts == [len(part.test) for part in stream_of(kind)]
    last = matrix[-1]
    assert found.average[metric] == pytest.approx(sum(last) / 3)
    pooled = sum(value * count for value, count in zip(last, counts, strict=True)) / sum(counts)
    assert found.whole[metric] == pytest.approx(pooled)
    best = [max(matrix[0][0], matrix[1][0]), matrix[1][1]]
    lost = (best[0] - last[0] + best[1] - last[1]) / 2
    assert found.forgetting == pytest.approx(lost)
    moved = (last[0] - matrix[0][0] + last[1] - matrix[1][1]) / 2
    assert found.backward_transfer == pytest.approx(moved)
    assert found.forward_transfer is not None
    text = str(found)
    for words in ("part 0", "part 1", "part 2", "whole", "average", "forgetting", metric):
        assert words in text
    assert f"{found.whole[metric]:.3f}" in text


def test_evaluating_twice_changes_nothing() -> None:
    learner = taught(learner_of("links", "emr"), 2)
    first = learner.evaluation()
    assert learner.evaluate() == first
    other = taught(learner_of("links", "emr"), 2, evaluate=False)
    other.evaluate()
    assert other.tests[-1] == learner.tests[-1]


def test_without_test_sets_nothing_is_claimed() -> None:
    learner = learner_of("links")
    learner.learn(FILMS)
    found = learner.evaluate()
    assert (found.tests, found.whole, found.average, found.forgetting) == ([], {}, {}, None)
    assert "no test set" in str(found) and "0.0" not in str(found)


def test_nothing_can_be_asked_before_anything_was_learned(tmp_path: Path) -> None:
    learner = learner_of("links")
    for ask in (learner.evaluate, lambda: learner.predict(head="a", relation="b")):
        with pytest.raises(UserError, match="nothing was learned yet"):
            ask()


def test_a_dataset_brings_its_recipe() -> None:
    films = Learner("transe", "dicgrl", dataset="films", epochs=7, device="cpu").settings
    expected = load_recipe("best", "films", "transe", disentangled=True, strategy="dicgrl").settings
    assert films == expected.changed({"epochs": 7})
    assert films != Learner("transe", "dicgrl", epochs=7, device="cpu").settings
    with pytest.raises(UserError, match=r"dataset 'filsm'.*films"):
        Learner(dataset="filsm", device="cpu")
    with pytest.raises(UserError, match=r"settings are complete; .* dataset, dim"):
        Learner(settings=films, dataset="films", dim=3, device="cpu")


# Predict.


@pytest.mark.parametrize(
    "question",
    [
        {"head": "e1", "relation": "plus 2"},
        {"relation": "plus 1", "tail": "e9"},
        {"head": "e3", "tail": "e4"},
    ],
)
@pytest.mark.parametrize("kind", ["links", "divided"])
def test_answers_are_those_of_the_highest_scores(kind: str, question: dict[str, str]) -> None:
    learner = taught(learner_of(kind))
    graph = learner.run.graph
    asked = ({"head", "relation", "tail"} - question.keys()).pop()
    labels = list(graph.relations if asked == "relation" else graph.entities)
    if asked != "relation":  # nothing in the ring leads to itself
        labels.remove(question["tail" if asked == "head" else "head"])
    rows = [question | {asked: label} for label in labels]
    triples = [(row["head"], row["relation"], row["tail"]) for row in rows]
    scores = dict(zip(labels, learner.score(triples), strict=True))
    known = {
        tuple(graph.entities.labels([h, t]) + graph.relations.labels([r]))
        for h, r, t in graph.train.tolist()
    }
    answers = learner.predict(**question, k=len(labels) + 5)
    assert [a.label for a in answers] == sorted(labels, key=lambda label: -scores[label])
    for answer in answers:
        row = question | {asked: answer.label}
        assert answer.score == pytest.approx(scores[answer.label])
        assert answer.known == ((row["head"], row["tail"], row["relation"]) in known)
    assert learner.predict(**question, k=2) == answers[:2]


def test_an_entity_answers_its_own_question_only_if_the_relation_is_known_to_lead_back() -> None:
    learner = learner_of("links")
    learner.learn([*FILMS, ("Alien", "likes", "Alien"), ("Brazil", "likes", "Alien")])
    answers = {
        relation: {a.label for a in learner.predict(head="Brazil", relation=relation, k=99)}
        for relation in ("likes", "genre")
    }
    assert answers["likes"] - answers["genre"] == {"Brazil"}
    heads = {a.label for a in learner.predict(relation="genre", tail="horror", k=99)}
    assert "horror" not in heads and "Alien" in heads


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"head": "e1"},
        {"head": "e1", "relation": "plus 1", "tail": "e2"},
    ],
)
def test_exactly_one_is_left_out(question: dict[str, str]) -> None:
    with pytest.raises(UserError, match="exactly one of head, relation and tail"):
        taught(learner_of("links"), 1).predict(**question)


@pytest.mark.parametrize("others", [{}, {"head": "e1", "relation": "plus 1"}])
def test_a_knowledge_graph_has_no_nodes_to_ask_for(others: dict[str, str]) -> None:
    with pytest.raises(UserError, match="node is for networks"):
        taught(learner_of("links"), 1).predict(node="e1", **others)


def test_new_answers_are_neither_learned_nor_set_aside() -> None:
    learner = taught(learner_of("links"), 3)
    graph = learner.run.graph
    assert isinstance(graph, KnowledgeGraph)
    held = graph.test[0]
    head, tail = graph.entities.labels([int(held[0]), int(held[2])])
    (relation,) = graph.relations.labels([int(held[1])])
    every = learner.predict(head, relation, k=99)
    assert {a.label for a in every if a.aside} >= {tail}
    assert not any(a.known and a.aside for a in every)
    fresh = learner.predict(head, relation, k=99, new=True)
    assert fresh == [a for a in every if not (a.known or a.aside)]


def test_a_half_learned_model_does_not_answer() -> None:
    learner = taught(learner_of("links"), 1)
    with pytest.raises(ZeroDivisionError):
        learner.learn(stream_of("links")[1], monitor=lambda _: 1 // 0)
    with pytest.raises(UserError, match="not learned to its end"):
        learner.predict("e1", "plus 1")
    with pytest.raises(UserError, match="not learned to its end"):
        learner.score([("e1", "plus 1", "e2")])


def test_what_ewc_remembers_is_the_same_after_a_first_part_from_disk(tmp_path: Path) -> None:
    whole = taught(learner_of("links", "ewc"), 1, evaluate=False)
    taught(learner_of("links"), 1, evaluate=False).save(tmp_path / "first")
    shared = Learner.load(tmp_path / "first", device="cpu").fork(whole.settings)
    for name, table in whole.run.model.tables().items():
        fisher = shared.run.model.tables()[name].state("fisher")
        assert torch.equal(table.state("fisher"), fisher) and fisher.any()


def test_a_first_part_that_is_refused_leaves_no_network_behind() -> None:
    learner, (first, later, _) = learner_of("nodes"), stream_of("nodes")
    assert isinstance(later, NetworkPart)
    wide = replace(later, features=np.concatenate([later.features] * 2, axis=1))
    with pytest.raises(UserError, match="has not arrived"):
        learner.learn(wide)
    assert learner.learn(first).part == 0


def test_the_classes_of_a_node_share_one() -> None:
    learner = taught(learner_of("nodes"))
    answers = learner.predict(node="n0", k=9)
    assert {answer.label for answer in answers} == {"red", "blue", "green"}
    assert sum(answer.score for answer in answers) == pytest.approx(1)
    assert [answer.known for answer in answers] == [answer.label == "red" for answer in answers]
    valid = learner.run.graph.nodes.labels(learner.run.examples("valid").tolist())
    assert not any(answer.known for answer in learner.predict(node=valid[0], k=9))
    with pytest.raises(UserError, match="node alone"):
        learner.predict(head="n0", relation="plus 1")
    with pytest.raises(UserError, match="classifies nodes"):
        learner.score([("n0", "plus 1", "n1")])


def test_readable_names_are_understood_unless_they_are_ambiguous() -> None:
    names = {"q1": "Alien", "q2": "horror", "q3": "Brazil", "q4": "Brazil", "p": "genre"}
    learner = Learner("transe", "lower", device="cpu", names=names, dim=4, epochs=2)
    learner.learn([("q1", "p", "q2"), ("q3", "p", "q2"), ("q4", "p", "q2")])
    by_name = learner.predict(head="Alien", relation="genre", k=4)
    assert by_name == learner.predict(head="q1", relation="p", k=4)
    assert {(a.label, a.name) for a in by_name} == {(q, names[q]) for q in ("q2", "q3", "q4")}
    with pytest.raises(UserError, match="'Brazil' is the name of 2 labels: 'q3', 'q4'"):
        learner.predict(head="Brazil", relation="genre")


# Save and load.


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [
        *((kind, strategy) for kind in ("links", "nodes") for strategy in STRATEGIES),
        # Tables of components; what others keep of them is in tests/strategies/test_contract.py.
        ("divided", "ewc"),
        ("divided", "gem"),
    ],
)
def test_a_learner_that_is_loaded_after_every_part_goes_on_like_one_that_was_never_saved(
    kind: str, strategy: str, tmp_path: Path
) -> None:
    learner = fresh(kind, strategy)
    learner.save(tmp_path / "run")
    for parts in (1, 2, 3):
        learner = taught(Learner.load(tmp_path / "run", device="cpu"), parts)
        learner.save(tmp_path / "run")
        loaded = Learner.load(tmp_path / "run", device="cpu")
        assert_same(learner, loaded)
        assert loaded.evaluation() == learner.evaluation()
        if kind == "nodes":
            assert loaded.predict(node="n3") == learner.predict(node="n3")
        else:
            question = [("e1", "plus 1", "e5"), ("e0", "plus 2", "e9")]
            assert loaded.score(question) == learner.score(question)
    assert_same(straight(kind, strategy), learner)
    learner.save(tmp_path / "copy")
    assert_same(straight(kind, strategy), Learner.load(tmp_path / "copy", device="cpu"))


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_a_loaded_learner_goes_on_for_several_parts(kind: str, tmp_path: Path) -> None:
    learner = taught(fresh(kind, "dicgrl"), 1)
    learner.save(tmp_path / "run")
    loaded = taught(Learner.load(tmp_path / "run", device="cpu"))
    assert_same(loaded, straight(kind, "dicgrl"))
    assert_same(taught(learner), loaded)  # saving leaves it as it was


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_the_strategy_that_is_loaded_remembers(kind: str, tmp_path: Path) -> None:
    """Otherwise the test above would not notice if it did not."""
    # Looked at when all is over: in the first step there is nothing yet to be pulled back from.
    held = taught(learner_of(kind, "ewc", strength=100.0, validate_every=3), 1)
    held.save(tmp_path / "run")
    forgetful = Learner.load(tmp_path / "run", device="cpu")
    forgetful.strategy.restore({})
    for table in forgetful.run.model.tables().values():
        table.state("fisher").zero_()
    taught(held, 2)
    taught(forgetful, 2)
    if kind == "links":
        assert not torch.equal(held.run.model.entities.rows, forgetful.run.model.entities.rows)
    else:
        mine, theirs = (dict(x.run.model.named_parameters()) for x in (held, forgetful))
        assert any(not torch.equal(mine[name], theirs[name]) for name in mine)


def test_what_is_measured_after_saving_is_kept_when_saved_again(tmp_path: Path) -> None:
    steady = straight("links", "emr")
    learner = taught(learner_of("links", "emr"), 1, evaluate=False)
    learner.save(tmp_path)
    learner.evaluate()
    learner.save(tmp_path)
    assert_same(taught(Learner.load(tmp_path, device="cpu")), steady)

    late = taught(learner_of("links", "emr"), 1, evaluate=False)
    late.save(tmp_path / "late")
    late.evaluate()
    taught(late, 2)
    late.save(tmp_path / "late")
    assert_same(taught(Learner.load(tmp_path / "late", device="cpu")), steady)


def test_names_and_unlearned_learners_are_saved(tmp_path: Path) -> None:
    learner = Learner("transe", "lower", device="cpu", names={"q1": "Älien"}, dim=4, epochs=2)
    learner.save(tmp_path)
    again = Learner.load(tmp_path, device="cpu")
    assert again.num_parts == 0 and again.names == {"q1": "Älien"}
    assert_same(taught(again, 1), taught(learner, 1))


def test_a_learner_that_failed_goes_no_further_and_the_saved_one_does(tmp_path: Path) -> None:
    learner = taught(learner_of("links", lr=0.05), 1)
    learner.save(tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.learn(ring()[1], monitor=stop)
    for act in (
        lambda: learner.learn(ring()[1]),
        learner.evaluate,
        lambda: learner.save(tmp_path),
    ):
        with pytest.raises(UserError, match="part 1 was not learned to its end"):
            act()
    assert files == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    taught(Learner.load(tmp_path, device="cpu"))

    wild = learner_of("links", lr=1e30, p=2)
    with pytest.raises(DivergedError):
        wild.learn(ring()[0])
    with pytest.raises(UserError, match="part 0"):
        wild.evaluate()


@pytest.mark.parametrize("strategy", STRATEGIES[1:])
@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_a_part_that_nothing_validates_is_learned_to_the_end(kind: str, strategy: str) -> None:
    """Older validation data would choose the epoch that learned least of it."""
    later = {} if strategy == "upper" else {"later_epochs": 3}
    learner = taught(learner_of(kind, strategy, epochs=4, patience=1, **later), 1)
    part = stream_of(kind)[1]
    report = learner.learn(replace(part, valid=part.valid[:0]))
    if strategy == "upper":  # all that it learns is new to it
        assert report.validation is not None
    else:
        assert report.validation is None and report.best_epoch == 3


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_what_was_learned_is_looked_at_as_it_is(kind: str) -> None:
    """In training mode it would drop neurons for threads that ask at the same time."""
    assert not taught(learner_of(kind), 2).run.model.training


def test_entities_that_share_a_name_are_told_apart() -> None:
    names = {"Q1": "Solaris", "Q2": "Solaris", "Q3": "Tarkovsky", "P1": "director"}
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu", names=names)
    learner.learn([("Q1", "P1", "Q3"), ("Q2", "P1", "Q4")])
    rows = learner.run.examples("train").numpy()
    assert learner.readable(rows[0]) == ("Solaris (Q1)", "director", "Tarkovsky")
    assert learner.readable(rows[1]) == ("Solaris (Q2)", "director", "Q4")


def test_a_part_that_is_learned_again_is_mentioned() -> None:
    learner = taught(learner_of("links"), 1)
    with pytest.warns(UserWarning, match="part 1: learned before"):
        learner.learn(ring()[0])


def test_names_may_change_after_they_were_asked_for() -> None:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu", names={"Q1": "Alien"})
    learner.learn([("Q1", "P1", "Q3"), ("Q2", "P1", "Q4")])
    assert learner.predict(head="Alien", relation="P1")
    learner.names["Q3"] = "Horror"
    assert learner.predict(relation="P1", tail="Horror")
    del learner.names["Q1"]
    with pytest.raises(UserError, match="unknown entity 'Alien'"):
        learner.predict(head="Alien", relation="P1")


def test_names_like_an_unknown_one_are_searched_for_when_the_message_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names, vocabulary = Names({"Q1": "Alien", "Q9": "Aliens"}), Vocabulary(["Q1"], kind="film")
    assert not names.called("Aliem")  # from now on only the message needs all names
    with monkeypatch.context() as patch:
        patch.setattr(Names, "__iter__", None)
        with pytest.raises(UserError) as caught:
            names.find("Aliem", vocabulary)
    for _ in range(2):  # it can be read again
        assert str(caught.value) == "unknown film 'Aliem'; did you mean 'Alien'?"


def test_names_come_with_facts_and_are_saved(tmp_path: Path) -> None:
    learner = Learner(
        "transe", "lower", dim=4, epochs=1, device="cpu", names={"Q1": "Alien", "Q2": "old"}
    )
    learner.learn([("Q1", "P1", "Q3"), ("Q2", "P1", "Q4")])
    learner.save(tmp_path / "run")
    (tmp_path / "day").mkdir()
    (tmp_path / "day/0.tsv").write_text("Q9\tP1\tQ3\n", encoding="utf-8")
    (tmp_path / "day/labels.tsv").write_text("Q9\tJane Roe\nQ2\tBrazil\n", encoding="utf-8")
    learner.learn(tmp_path / "day")
    learner.learn([("Q5", "P1", "Q3")], names={"Q5": "Stalker"})
    learner.save(tmp_path / "run")
    again = Learner.load(tmp_path / "run", device="cpu")
    expected = {"Q1": "Alien", "Q2": "Brazil", "Q5": "Stalker", "Q9": "Jane Roe"}
    assert dict(again.names) == dict(learner.names) == expected
    assert again.predict(head="Jane Roe", relation="P1", k=1)
    again.names["Q1"] = "Aliens"
    again.save(tmp_path / "run")  # nothing else is new
    assert Learner.load(tmp_path / "run", device="cpu").names["Q1"] == "Aliens"
    assert len(list((tmp_path / "run").glob("names-*.json"))) == 2  # and the one before
    again.names.clear()
    again.save(tmp_path / "run")
    assert not Learner.load(tmp_path / "run", device="cpu").names


def test_names_are_labels_however_they_are_given(tmp_path: Path) -> None:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu")
    learner.learn([(1, "r", 2), (2, "r", 3)])  # type: ignore[list-item]
    learner.names[1] = "Alien"  # type: ignore[index]
    assert learner.names.of("1") == "Alien" and learner.predict(head="Alien", relation="r")
    for _ in range(2):
        learner.save(tmp_path / "run")
    assert dict(Learner.load(tmp_path / "run", device="cpu").names) == {"1": "Alien"}
    names = learner.names
    names |= {"2": "Brazil"}
    assert learner.predict(head="Brazil", relation="r")
    for wrong in ("x\ty", "a\nb", "\ud800"):
        with pytest.raises(UserError):
            learner.names["2"] = wrong


def test_names_of_an_earlier_version_and_of_a_reader_are_found(tmp_path: Path) -> None:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu", names={"a": "A"})
    learner.learn([("a", "r", "b")])
    learner.save(tmp_path)
    (first,) = tmp_path.glob("names-*.json")
    learner.names["a"] = "B"
    learner.save(tmp_path)
    assert first.exists()  # for who has read config.json a moment ago
    learner.names["a"] = "C"
    learner.save(tmp_path)
    assert not first.exists()
    (newest,) = (p for p in tmp_path.glob("names-*.json") if '"C"' in p.read_text("utf-8"))
    newest.rename(tmp_path / "names.json")
    assert Learner.load(tmp_path, device="cpu").names["a"] == "C"


def test_what_is_no_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learner_of("links")
    with pytest.raises(UserError, match="for part in stream"):
        learner.learn(ring())  # type: ignore[arg-type]

    class Foreign:
        pass

    monkeypatch.setattr(Foreign, "__module__", "torch_geometric.data.data")
    with pytest.raises(UserError, match=r"interop\.from_pyg"):
        learner.learn(Foreign())  # type: ignore[arg-type]


def test_facts_that_are_known_are_no_part() -> None:
    learner = learner_of("links", "emr")
    learner.learn(FILMS)
    before = learner.run.model.entities.rows.clone()
    assert learner.learn([*FILMS, FILMS[0]]) == PartReport(0, 0.0, 0)
    assert learner.num_parts == len(learner.reports) == 1
    assert torch.equal(before, learner.run.model.entities.rows)


def test_a_new_label_that_is_a_name_is_told() -> None:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu", names={"Q1": "Alien"})
    learner.learn([("Q1", "genre", "horror")])
    with pytest.warns(UserWarning, match="names of others: 'Alien'"):
        learner.learn([("Alien", "director", "Scott")])
    assert len(learner.run.graph.entities) == 4
    learner.learn([("Alien", "genre", "horror")])  # known by now: no warning


def test_settings_leave_nothing_to_name() -> None:
    settings = learner_of("links").settings
    with pytest.raises(UserError, match="instead of giving model, strategy"):
        Learner("gat", "gem", settings=settings)


def test_parts_that_were_not_learned_have_no_evaluation() -> None:
    for parts in (None, 0, 1):
        with pytest.raises(UserError, match=r"^nothing was learned yet: call learn first"):
            learner_of("links").evaluation(parts)
    learner = taught(learner_of("links"), 2)
    for wrong in (0, 3, "1", 1.0):
        with pytest.raises(UserError, match=f"^parts={wrong!r}: expected a whole number, 1 to 2"):
            learner.evaluation(wrong)  # type: ignore[arg-type]
    assert len(learner.evaluation(1).tests) == 1


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"model": 5}, "model=5: expected a name"),
        ({"strategy": ["lower"]}, r"strategy=\['lower'\]: expected a name"),
        ({"dataset": 0}, "dataset=0: expected a name"),
        ({"names": [1]}, r"names=\[1\]: expected a dictionary"),
        ({"names": ""}, "names='': expected a dictionary"),
        ({"settings": 3}, "settings=3: expected LinkSettings or NodeSettings"),
        ({"settings": {"dim": 3}}, "settings={'dim': 3}: expected LinkSettings"),
    ],
)
def test_arguments_of_another_kind_are_named(argument: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        Learner(**argument, device="cpu")


def test_the_class_of_a_test_node_was_set_aside() -> None:
    learner = taught(learner_of("nodes"), 1)
    part = circles()[0]
    for split, state in (("train", (True, False)), ("test", (False, True))):
        number = int(getattr(part, split)[0])
        answers = learner.predict(node=part.nodes.labels([number])[0])
        true = part.classes.labels([int(part.labels[number - part.new_nodes.start])])[0]
        for answer in answers:
            expected = state if answer.label == true else (False, False)
            assert (answer.known, answer.aside) == expected


def test_a_kind_of_dicgrl_has_its_recipe() -> None:
    class Mine(Strategy.registry["dicgrl"], name="mine"):  # type: ignore[misc]
        """Another one."""

    try:
        mine, theirs = (
            Learner("transe", name, device="cpu").settings for name in ("mine", "dicgrl")
        )
        assert mine == replace(theirs, strategy="mine")
        assert replace(theirs, start="auto").starts_from_neighbours
        assert replace(mine, start="auto").starts_from_neighbours
        assert not replace(mine, start="random").starts_from_neighbours
        taught(learner_of("links", "mine", **DIVIDED), 2)
    finally:
        del Strategy.registry["mine"]


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_a_part_that_does_not_hold_together_is_refused_before_anything_changes(kind: str) -> None:
    learner = learner_of(kind)
    part = stream_of(kind)[0]
    beyond = part.train.copy()
    beyond[0] = 10_000
    news = "new_entities" if kind == "links" else "new_nodes"
    for wrong in (replace(part, train=beyond), replace(part, **{news: range(10_000)})):
        with pytest.raises(UserError, match="expected 0 <= id"):
            learner.learn(wrong)
    taught(learner, 1)
    later = stream_of(kind)[1]
    with pytest.raises(UserError, match="expected 0 <= id"):
        learner.learn(replace(later, train=beyond))
    learner.learn(later)
    assert learner.num_parts == 2


def test_models_that_are_made_meanwhile_do_not_disturb_a_training() -> None:
    """Dropout and start values draw from a generator that all threads share."""

    def weights(beside: Callable[[], None]) -> list[torch.Tensor]:
        learner = learner_of("nodes", epochs=30, dropout=0.5)
        busy, done = threading.Event(), threading.Event()

        def make_models() -> None:
            busy.set()
            while not done.is_set():
                beside()

        thread = threading.Thread(target=make_models)
        thread.start()
        busy.wait()
        taught(learner, 1)
        done.set()
        thread.join()
        return [p.detach().clone() for p in learner.run.model.parameters()]

    alone = weights(lambda: time.sleep(0.01))
    crowded = weights(lambda: NetworkModel("gat", num_features=3) and None)
    assert all(map(torch.equal, alone, crowded))

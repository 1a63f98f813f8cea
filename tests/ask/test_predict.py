"""Answers to single questions, about links and about nodes."""

from __future__ import annotations

import numpy as np
import pytest

from dicgrl.errors import UserError
from dicgrl.graph import KnowledgeGraph
from tests.learner.helpers import FILMS
from tests.tiny import (
    circles,
    learner_of,
    taught,
)


def test_what_makes_no_sense_in_a_question() -> None:
    learner = taught(learner_of("links"), 1)
    for k in (2.5, "3", 0, None):
        with pytest.raises(UserError, match=f"k={k!r}: expected a whole number, at least 1"):
            learner.predict(head="e1", relation="plus 1", k=k)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"'1\.5' is not a label"):
        learner.predict(head=1.5, relation="plus 1")  # type: ignore[arg-type]
    for wrong in ([("e1", "plus 1")], ["abc"], [None], 3, [("e1", "plus 1", None)]):
        with pytest.raises(UserError, match=r"label|head, relation, tail"):
            learner.score(wrong)  # type: ignore[arg-type]
    assert len(learner.score(np.array([("e1", "plus 1", "e2")]))) == 1


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
    graph = learner.trainer.graph
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
    fewer = learner.predict(**question, k=2)
    assert [a.label for a in fewer] == [a.label for a in answers[:2]]
    assert [a.probability for a in fewer] == pytest.approx([a.probability for a in answers[:2]])


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


def test_nothing_is_given_twice() -> None:
    learner = taught(learner_of("links"), 1)
    for ask in (learner.predict, learner.ask.predict):
        with pytest.raises(UserError, match="head is given twice: 'e1' and 'e2'"):
            ask("e1", "plus 1", head="e2")
        with pytest.raises(UserError, match="relation is given twice: 'plus 1' and 'plus 1'"):
            ask("e1", "plus 1", relation="plus 1", among=["e3"])
        with pytest.raises(UserError, match="head is given twice: 1 and 'e2'"):
            ask(1, "plus 1", head="e2")
        with pytest.raises(UserError, match="by head, relation, tail"):
            ask("e1", "plus 1", None, "e2")
        by_name = ask(head="e1", relation="plus 1", k=3)
        assert ask("e1", "plus 1", head=None, k=3) == ask("e1", relation="plus 1", k=3) == by_name
        assert ask(None, "plus 1", "e9", k=3) == ask(relation="plus 1", tail="e9", k=3)
    with pytest.raises(UserError, match="node is given twice: 'n0' and 'n1'"):
        taught(learner_of("nodes"), 1).predict("n0", node="n1")


def test_answers_know_the_question_however_it_was_given() -> None:
    learner = taught(learner_of("links"), 1)
    asked = {"head": "e1", "relation": "plus 1", "tail": None}
    assert learner.predict("e1", "plus 1").question == asked
    assert learner.predict("e1", "plus 1", head=None).question == asked
    assert learner.predict("e1", relation="plus 1", tail=None).question == asked


@pytest.mark.parametrize("others", [{}, {"head": "e1", "relation": "plus 1"}])
def test_a_knowledge_graph_has_no_nodes_to_ask_for(others: dict[str, str]) -> None:
    with pytest.raises(UserError, match="node is for networks"):
        taught(learner_of("links"), 1).predict(node="e1", **others)


def test_new_answers_are_neither_learned_nor_held_out() -> None:
    learner = taught(learner_of("links"), 3)
    graph = learner.trainer.graph
    assert isinstance(graph, KnowledgeGraph)
    held = graph.test[0]
    head, tail = graph.entities.labels([int(held[0]), int(held[2])])
    (relation,) = graph.relations.labels([int(held[1])])
    every = learner.predict(head, relation, k=99)
    assert {a.label for a in every if a.held_out} >= {tail}
    assert not any(a.known and a.held_out for a in every)
    fresh = learner.predict(head, relation, k=99, new=True)
    assert fresh == [a for a in every if not (a.known or a.held_out)]


def test_the_classes_of_a_node_share_one() -> None:
    learner = taught(learner_of("nodes"))
    answers = learner.predict(node="n0", k=9)
    assert {answer.label for answer in answers} == {"red", "blue", "green"}
    assert sum(answer.score for answer in answers) == pytest.approx(1)
    assert [answer.known for answer in answers] == [answer.label == "red" for answer in answers]
    valid = learner.trainer.graph.nodes.labels(learner.trainer.examples("valid").tolist())
    assert not any(answer.known for answer in learner.predict(node=valid[0], k=9))
    with pytest.raises(UserError, match="node alone"):
        learner.predict(head="n0", relation="plus 1")
    with pytest.raises(UserError, match="classifies nodes"):
        learner.score([("n0", "plus 1", "n1")])


def test_the_class_of_a_test_node_is_held_out() -> None:
    learner = taught(learner_of("nodes"), 1)
    part = circles()[0]
    for split, state in (("train", (True, False)), ("test", (False, True))):
        number = int(getattr(part, split)[0])
        answers = learner.predict(node=part.nodes.labels([number])[0])
        true = part.classes.labels([int(part.labels[number - part.new_nodes.start])])[0]
        for answer in answers:
            expected = state if answer.label == true else (False, False)
            assert (answer.known, answer.held_out) == expected

"""Many answers at a time, against one triple after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from dicgrl import KnowledgeGraph, Learner, Prediction, UserError
from dicgrl.ask import answers
from dicgrl.models import KnowledgeModel
from tests.tiny import DIVIDED, LINKS, ring

FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "divided": DIVIDED,
    "by nodes": DIVIDED | {"attention": "nodes"},
    "by triple": DIVIDED | {"attention": "triple"},
}
LOOPS = "plus 1"


def taught(model: str, **changes: Any) -> Learner:
    """A learner of the ring, whose first relation has many loops and its second a stray one."""
    learner = Learner(model, "lower", device="cpu", **(LINKS | changes))
    learner.learn(ring()[0])
    learner.learn([("e3", "plus 2", "e3"), *((f"e{i}", LOOPS, f"e{i}") for i in range(1, 5))])
    return learner


def one_by_one(learner: Learner, question: tuple[str | None, ...], new: bool) -> list[Prediction]:
    """All answers to a question, by the score of each triple."""
    graph = learner.trainer.graph
    asked = question.index(None)
    entities, relations = list(graph.entities), list(graph.relations)
    train = {tuple(row) for row in graph.train.tolist()}
    held_out = {tuple(row) for row in [*graph.valid.tolist(), *graph.test.tolist()]} - train
    found = []
    for number, label in enumerate(relations if asked == 1 else entities):
        triple = [label if text is None else text for text in question]
        ids = (
            entities.index(triple[0]),
            relations.index(triple[1]),
            entities.index(triple[2]),
        )
        own = asked != 1 and ids[0] == ids[2] and triple[1] != LOOPS
        if own or (new and (ids in train or ids in held_out)):
            continue
        (score,) = learner.score([tuple(triple)])
        found.append(
            (-score, number, Prediction(label, label, score, ids in train, ids in held_out))
        )
    return [prediction for *_, prediction in sorted(found, key=lambda each: each[:2])]


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", ["transe", "convkb"])
def test_many_questions_are_answered_as_one_triple_after_the_other_says(
    model: str, form: str, new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = taught(model, **FORMS[form])
    monkeypatch.setattr(answers, "MEMORY_BOUND", 1 << 12)  # few questions fit at a time
    questions: list[tuple[str | None, ...]] = [
        ("e3", "plus 1", None),
        (None, "plus 2", "e7"),
        ("e1", None, "e2"),
        ("e4", "plus 5", None),
        ("e3", "plus 1", None),
        (None, "plus 1", "e1"),
        ("e9", None, "e3"),
    ]
    found = learner.predict_links(questions, k=1000, new=new)
    assert len(found) == len(questions)
    for question, answered in zip(questions, found, strict=True):
        expected = {each.label: each for each in one_by_one(learner, question, new)}
        assert {each.label for each in answered} == set(expected)
        scores = [each.score for each in answered]
        assert scores == sorted(scores, reverse=True)
        for each in answered:
            right = expected[each.label]
            assert (each.known, each.held_out) == (right.known, right.held_out)
            assert each.score == pytest.approx(right.score, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("asked", ["relation", "tail"])
def test_scores_stay_under_the_memory_bound(
    form: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = taught("transe", **FORMS[form])
    model = learner.trainer.model
    assert isinstance(model, KnowledgeModel)
    name = "relation_scores" if asked == "relation" else "candidate_scores"
    original, pairs = getattr(KnowledgeModel, name), list[int]()

    def watched(self: KnowledgeModel, *arguments: object) -> torch.Tensor:
        scores: torch.Tensor = original(self, *arguments)
        pairs.append(scores.numel())
        return scores

    questions = [
        (f"e{i}", None, "e9") if asked == "relation" else (f"e{i}", f"plus {1 + i % 2}", None)
        for i in range(8)
    ]
    expected = learner.predict_links(questions, k=3)
    monkeypatch.setattr(KnowledgeModel, name, watched)
    each = model.relation_bytes() if asked == "relation" else model.pair_bytes()
    monkeypatch.setattr(answers, "MEMORY_BOUND", 2 * (each + answers._CHOOSING))
    found = learner.predict_links(questions, k=3)
    for answered, right in zip(found, expected, strict=True):
        assert [replace(one, probability=0.0) for one in answered] == [
            replace(one, probability=0.0) for one in right
        ]
        said = [one.probability for one in right]  # sums of blocks are rounded otherwise
        assert [one.probability for one in answered] == pytest.approx(said, rel=1e-4)
    assert max(pairs) == 2 and sum(pairs) == 8 * (3 if asked == "relation" else 15)


def test_the_relations_of_pairs_are_those_of_single_questions() -> None:
    learner = taught("transe")
    pairs = [("e1", "e2"), ("e9", "e3"), ("e1", "e2")]
    found = learner.predict_relations(pairs, k=2, new=True)
    assert found == [learner.predict(head=h, tail=t, k=2, new=True) for h, t in pairs]
    assert learner.predict_relations([]) == []
    for wrong in ("e1", ("e1",), ("e1", "plus 1", "e2"), 3):
        with pytest.raises(UserError, match="expected a head and a tail"):
            learner.predict_relations([wrong])  # type: ignore[list-item]


def test_one_question_is_answered_like_many() -> None:
    learner = taught("transe")
    many = learner.predict_links([("e3", "plus 1", None), (None, "plus 2", "e7")], k=3)
    assert [len(each) for each in many] == [3, 3]
    assert many[0] == learner.predict("e3", "plus 1", k=3)
    assert many[1] == learner.predict(relation="plus 2", tail="e7", k=3)
    assert learner.predict_links([]) == []


@pytest.mark.parametrize(
    "question", [("e1", "plus 1", "e2"), (None, None, "e2"), ("e1", None), (None, "plus 1")]
)
def test_a_question_asks_for_one_thing(question: tuple[str | None, ...]) -> None:
    with pytest.raises(UserError, match="exactly one"):
        taught("transe").predict_links([question])


def test_what_answers_nothing_new_has_no_answer() -> None:
    learner = Learner("transe", "lower", device="cpu", **LINKS)
    learner.learn([("a", "r", "b")])
    assert learner.predict("a", "r", new=True) == []
    assert learner.predict(head="a", tail="b", new=True) == []
    assert [each.label for each in learner.predict("a", "r")] == ["b"]


def test_own_triples_are_measured_as_the_test_set_is() -> None:
    learner = taught("transe")
    first = ring()[0]
    labels = first.entities.labels(range(len(first.entities)))
    relations = first.relations.labels(range(len(first.relations)))
    triples = [(labels[h], relations[r], labels[t]) for h, r, t in first.test.tolist()]
    measured = learner.measure(triples, by_relation=True)
    tested = learner.evaluate().tests[0]
    assert measured["count"] == tested["count"] == len(triples)
    assert measured["known"] == 0
    for metric in ("mrr", "hits@10"):
        assert measured[metric] == pytest.approx(tested[metric])
    rows = measured["relations"]
    weights = np.array([row["count"] for row in rows], dtype=float)
    mean = np.average([row["mrr"] for row in rows], weights=weights)
    assert mean == pytest.approx(measured["mrr"])
    assert {row["asked"] for row in rows} == {"head", "tail"}


def test_scores_that_are_no_numbers_answer_nothing() -> None:
    learner = taught("transe")
    graph = learner.trainer.graph
    assert isinstance(graph, KnowledgeGraph)
    rows = learner.trainer.model.tables()["entities"].rows
    rows[int(graph.entities.ids(["e3"])[0])] = torch.nan
    found = learner.predict("e1", "plus 2", k=5)
    assert len(found) == 5 and "e3" not in [each.label for each in found]


@pytest.mark.parametrize("questions", [[5], ["e1"], [None]])
def test_what_is_no_question_is_named(questions: list[Any]) -> None:
    with pytest.raises(UserError, match="expected a question"):
        taught("transe").predict_links(questions)

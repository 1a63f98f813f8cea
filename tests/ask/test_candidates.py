"""Who may answer: chosen entities, the entity of the question, and who is measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dicgrl import KnowledgeGraph, Learner, UserError
from dicgrl.ask import answers
from dicgrl.graph.arrays import BoolArray, IntArray
from dicgrl.trainers import LinkTrainer
from tests.learner.helpers import FILMS
from tests.tiny import DIVIDED, LINKS, learner_of, ring, taught

FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "divided": DIVIDED,
    "by nodes": DIVIDED | {"attention": "nodes"},
}
LABELS = [f"e{i}" for i in range(8)]
entity = st.sampled_from(LABELS)
relation = st.sampled_from(["r", "s", "t"])
triple = st.tuples(entity, relation, entity)


def graph_of(learner: Learner) -> KnowledgeGraph:
    graph = learner.trainer.graph
    assert isinstance(graph, KnowledgeGraph)
    return graph


def slow_candidates(
    facts: Iterable[tuple[str, str, str]], among: Any, question: tuple[str | None, ...]
) -> set[str]:
    """The candidates of a question, by a walk over all facts."""
    if among is None:
        return {end for head, _, tail in facts for end in (head, tail)}
    if not isinstance(among, str):
        return set(among)
    end, _, wanted = among.partition(":")
    if among == "seen":
        end, wanted = "heads" if question[0] is None else "tails", str(question[1])
    return {h if end == "heads" else t for h, r, t in facts if r == wanted}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25)
@given(
    facts=st.lists(triple, min_size=1, max_size=30, unique=True),
    asked=st.lists(st.tuples(triple, st.booleans()), min_size=1, max_size=6),
    data=st.data(),
    bound=st.sampled_from([1, 3000, 1 << 30]),
    new=st.booleans(),
)
def test_answers_among_candidates_are_all_answers_that_are_among_them(
    form: str,
    facts: list[tuple[str, str, str]],
    asked: list[tuple[tuple[str, str, str], bool]],
    data: st.DataObject,
    bound: int,
    new: bool,
) -> None:
    learner = Learner("transe", "lower", device="cpu", **(LINKS | {"epochs": 1} | FORMS[form]))
    learner.learn(facts)
    known = sorted({end for head, _, tail in facts for end in (head, tail)})
    kinds = sorted({r for _, r, _ in facts})
    questions = [
        (h if of_tail else None, r, None if of_tail else t)
        for (h, r, t), of_tail in asked
        if {h, t} <= set(known) and r in kinds
    ]
    some = st.lists(st.sampled_from(known), min_size=1)  # some of them twice
    ends = st.sampled_from([f"{end}:{kind}" for end in ("heads", "tails") for kind in kinds])
    among = data.draw(st.one_of(st.none(), st.just("seen"), ends, some))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "MEMORY_BOUND", bound)
        found = learner.predict_links(questions, k=99, new=new, among=among)
        short = learner.predict_links(questions, k=2, new=new, among=among)
    assert short == [answered[:2] for answered in found]
    every = learner.predict_links(questions, k=99, new=new)
    for question, answered, all_of_them in zip(questions, found, every, strict=True):
        wanted = slow_candidates(facts, among, question)
        expected = [each for each in all_of_them if each.label in wanted]
        assert {each.label: each.known for each in answered} == {
            each.label: each.known for each in expected
        }
        scores = [each.score for each in answered]
        assert scores == sorted(scores, reverse=True)
        assert scores == pytest.approx([each.score for each in expected], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(
    ("among", "message"),
    [
        ("genre", "among='genre': expected labels, seen, heads:RELATION or tails:RELATION"),
        ("ends:genre", "expected labels, seen"),
        ("tails:nothing", "unknown relation 'nothing'"),
        ("tails:", "unknown relation ''"),
        ([], "among names no entity"),
        (["horror", "nobody"], "unknown entity 'nobody'"),
        (3, "among=3: expected labels"),
        ([1.5], "is not a label"),
    ],
)
def test_candidates_that_make_no_sense(among: Any, message: str) -> None:
    learner = learner_of("links")
    learner.learn(FILMS)
    with pytest.raises(UserError, match=message):
        learner.predict("Alien", "genre", among=among)


def test_a_relation_that_was_never_learned_has_seen_nobody() -> None:
    part = ring()[0]
    only_tested = part.train[part.train[:, 1] == 0][:1]
    stray = type(part)(
        0, part.entities, part.relations, part.new_entities, part.new_relations,
        part.train[part.train[:, 1] != 0], part.valid, only_tested,
    )  # fmt: skip
    learner = learner_of("links")
    learner.learn(stray)
    (label,) = part.relations.labels([0])
    for among in ("seen", f"tails:{label}"):
        with pytest.raises(UserError, match=f"no entity is known as a tail of '{label}'"):
            learner.predict("e1", label, among=among)
    assert learner.predict("e1", label)  # among all there are answers


def test_networks_and_relations_have_no_candidates() -> None:
    with pytest.raises(UserError, match="among is about entities"):
        taught(learner_of("nodes"), 1).predict(node="n0", among=["red"])
    with pytest.raises(UserError, match="asks for the relation"):
        taught(learner_of("links"), 1).predict(head="e1", tail="e2", among="seen")


def test_entities_that_may_not_answer_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one method that says who may answer is asked for every kind of question."""
    learner = taught(learner_of("divided"), 1)
    left = np.array([2, 3, 5, 8, 9])
    allowed = set(graph_of(learner).entities.labels(left))

    def some(_: KnowledgeGraph, entities: IntArray) -> BoolArray:
        return np.isin(entities, left)

    monkeypatch.setattr(KnowledgeGraph, "may_answer", some)
    for among in (None, "seen", "tails:plus 2", [*sorted(allowed)[:2], "e0"]):
        found = learner.predict("e1", "plus 1", k=99, among=among)
        assert found and {each.label for each in found} <= allowed
    with pytest.raises(UserError, match="no entity that may answer"):
        learner.predict("e1", "plus 1", among=["e0"])


def consulting(loops: int) -> Learner:
    """Who consults whom: 675 facts, some of them with the same person at both ends."""
    facts = [(f"p{i}", "Consult", f"p{i + 1}") for i in range(674)]
    facts += [("Barack Obama", "Consult", "Barack Obama"), ("p1", "Visit", "Barack Obama")]
    for i in range(loops):
        facts[i] = (f"p{i}", "Consult", f"p{i}")
    learner = learner_of("links", epochs=1)
    learner.learn(facts)
    learner.trainer.model.relations.rows.zero_()  # nobody is nearer to someone than oneself
    return learner


def test_one_fact_of_675_does_not_make_people_answer_their_own_questions() -> None:
    asked: dict[str, str] = {"head": "Barack Obama", "relation": "Consult"}
    assert "Barack Obama" not in {each.label for each in consulting(0).predict(**asked, k=999)}
    best = consulting(loops=100).predict(**asked, k=1)[0]
    assert (best.label, best.score, best.known) == ("Barack Obama", 0.0, True)


@pytest.mark.parametrize("kind", ["links", "divided"])
@pytest.mark.parametrize("loops", ["none", "noise", "many"])
def test_what_is_measured_among_others_is_what_predict_answers(kind: str, loops: str) -> None:
    learner = learner_of(kind)
    learner.learn(ring()[0])
    count = {"none": 0, "noise": 1, "many": 6}[loops]
    if count:
        learner.learn([(f"e{i}", "plus 1", f"e{i}") for i in range(count)])
    graph, trainer = graph_of(learner), learner.trainer
    assert isinstance(trainer, LinkTrainer)
    labels = list(graph.entities)
    kinds = list(graph.relations)
    rows = [*graph.test.tolist(), *([9, r, 9] for r in range(len(kinds)))]  # loops are asked, too
    triples = [(labels[h], kinds[r], labels[t]) for h, r, t in rows]
    known = {tuple(row) for row in [*graph.train.tolist(), *graph.valid.tolist(), *rows]}
    places = []
    for h, r, t in rows:
        for asked, truth in ((0, h), (2, t)):
            question: list[str | None] = [labels[h], kinds[r], labels[t]]
            question[asked] = None
            found = [labels.index(each.label) for each in learner.predict(*question, k=99)]
            others = [
                e
                for e in found
                if e != truth and (e if asked == 0 else h, r, t if asked == 0 else e) not in known
            ]
            ahead = found[: found.index(truth)] if truth in found else found
            places.append(1 + sum(e in others for e in ahead))
    measured = learner.measure(triples)
    assert measured["mrr_others"] == pytest.approx(np.mean([1 / place for place in places]))
    assert measured["hits@1_others"] == pytest.approx(np.mean([place == 1 for place in places]))
    standard = trainer.ranks(torch.tensor(rows), besides=torch.tensor(rows))
    assert measured["mrr"] == pytest.approx(standard.realistic.reciprocal().mean().item())

"""Facts that a learner takes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from dicgrl import KnowledgeStream, Learner
from dicgrl.errors import UserError
from tests.learner.helpers import FILMS, MORE
from tests.tiny import RIVALS, STRATEGIES, learner_of, stream_of

WRONG = ("Brazil", "genre", "horror")


def taught_wrong(kind: str = "links", strategy: str = "lower") -> Learner:
    learner = learner_of(kind, strategy)
    learner.learn([*FILMS, WRONG])
    return learner


def test_what_is_forgotten_is_not_known_any_more() -> None:
    learner = taught_wrong()
    known = {a.label for a in learner.predict(head="Brazil", relation="genre", k=99) if a.known}
    assert known == {"satire", "horror"}
    report = learner.forget([WRONG])
    assert (report.kind, report.part, report.new_examples) == ("forget", 0, 0)
    assert report.details["forgotten"] == 1 and report.details["unknown"] == 0
    known = {a.label for a in learner.predict(head="Brazil", relation="genre", k=99) if a.known}
    assert known == {"satire"}
    assert learner.trainer.count("train") == len(FILMS)
    assert [change.kind for change in learner.trainer.history] == ["learn", "forget"]
    assert len(learner.reports) == 2 and learner.num_parts == 1


def test_what_no_fact_speaks_of_is_no_answer_until_one_does() -> None:
    learner = learner_of("links", "lower")
    learner.learn(FILMS + MORE)
    learner.forget([("Gilliam", "born in", "Minneapolis")])
    places = {a.label for a in learner.predict(head="Alien", relation="genre", k=99)}
    assert "Minneapolis" not in places and "Gilliam" in places
    assert "born in" not in {a.label for a in learner.predict("Alien", None, "Scott", k=99)}
    assert "Minneapolis" not in {a.label for a in learner.similar("Alien", k=99)}
    before = learner.num_entities
    learner.learn([("Scott", "born in", "Minneapolis")])
    assert learner.num_entities == before
    assert "Minneapolis" in {a.label for a in learner.predict(head="Alien", relation="genre", k=99)}


def test_facts_to_forget_come_in_all_forms(tmp_path: Path) -> None:
    path = tmp_path / "wrong.tsv"
    path.write_text("\t".join(WRONG) + "\n", encoding="utf-8")
    part = KnowledgeStream.from_labels("wrong", [[WRONG]])[0]
    models = []
    for facts in ([WRONG], np.array([WRONG]), path, str(path), part):
        learner = taught_wrong()
        learner.forget(facts)
        models.append(learner.trainer.model.entities.rows)
    assert all(torch.equal(rows, models[0]) for rows in models)


def test_facts_that_are_not_known_are_counted() -> None:
    learner = taught_wrong()
    given = [WRONG, WRONG, ("Brazil", "genre", "nobody"), ("Alien", "genre", "satire")]
    report = learner.forget(given)
    assert (report.details["forgotten"], report.details["unknown"]) == (1, 2)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ([("Alien", "genre", "satire")], "the fact is not known"),
        ([("Alien", "x", "satire"), ("a", "b", "c")], "none of the 2 facts is known"),
        ([*FILMS, WRONG], "nothing would be left"),
    ],
)
def test_a_mistake_changes_nothing(facts: list[tuple[str, str, str]], message: str) -> None:
    learner = taught_wrong()
    before = learner.trainer.model.entities.rows.clone()
    with pytest.raises(UserError, match=message):
        learner.forget(facts)
    assert torch.equal(learner.trainer.model.entities.rows, before)
    assert learner.trainer.count("train") == 5 and len(learner.reports) == 1


def test_who_has_learned_nothing_has_nothing_to_forget() -> None:
    with pytest.raises(UserError, match="nothing was learned yet"):
        Learner("transe", "lower", device="cpu").forget([WRONG])


def test_facts_held_out_leave_their_sets() -> None:
    stream = stream_of("links")
    learner = learner_of("links")
    learner.learn(stream[0])
    graph = learner.trainer.graph
    learner.evaluate()
    test = graph.test[:1]
    head, relation, tail = test[0].tolist()
    names = list(graph.entities), list(graph.relations)
    learner.forget([(names[0][head], names[1][relation], names[0][tail])])
    assert len(graph.test) == len(stream[0].test) - 1
    assert not graph.holds_out(test).any()
    found = learner.evaluate()
    assert found.tests[0]["count"] == len(graph.test)
    assert len(learner.evaluations()) == 2


@pytest.mark.parametrize("strategy", [*STRATEGIES, *RIVALS])
def test_every_strategy_learns_on_after_it_forgot(strategy: str) -> None:
    stream = stream_of("links")
    learner = learner_of("divided" if strategy == "dicgrl" else "links", strategy)
    learner.learn(stream[0])
    graph = learner.trainer.graph
    head, relation, tail = graph.train[0].tolist()
    labels = graph.entities.labels([head, tail])
    learner.forget([(labels[0], graph.relations.labels([relation])[0], labels[1])])
    learner.learn(stream[1])
    learner.evaluate()
    assert not graph.contains(np.array([[head, relation, tail]])).any()
    assert [report.kind for report in learner.reports] == ["learn", "forget", "learn"]
    assert [report.part for report in learner.reports] == [0, 0, 1]

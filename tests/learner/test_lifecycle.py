"""Facts that are replaced, labels that are renamed, entities and relations that become one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dicgrl import Learner
from dicgrl.errors import UserError
from tests.learner.helpers import FILMS, MORE
from tests.tiny import learner_of

OLD, NEW = ("Alien", "director", "Scott"), ("Alien", "director", "Cameron")


def films(strategy: str = "lower") -> Learner:
    learner = learner_of("links", strategy)
    learner.learn(FILMS)
    return learner


def known(learner: Learner, **question: str) -> set[str]:
    return {answer.label for answer in learner.predict(k=99, **question) if answer.known}


def facts_of(learner: Learner) -> set[tuple[str, ...]]:
    graph = learner.trainer.graph
    entity, relation = list(graph.entities), list(graph.relations)
    return {(entity[h], relation[r], entity[t]) for h, r, t in graph.train.tolist()}


def again(learner: Learner) -> Learner:
    """The learner as its history makes it."""
    other = Learner(settings=learner.settings, seed=learner.seed, device="cpu")
    other.trainer.recall(learner.trainer.history, learner.trainer.model)
    return other


def assert_same_graph(one: Learner, other: Learner) -> None:
    ours, theirs = one.trainer.graph, other.trainer.graph
    assert np.array_equal(ours.train, theirs.train)
    for name in ours.vocabularies():
        assert list(ours.vocabularies()[name]) == list(theirs.vocabularies()[name])
        assert ours.vocabularies()[name].merged == theirs.vocabularies()[name].merged
        assert np.array_equal(ours.retired(name), theirs.retired(name))


def test_replaced_facts_are_one_change_and_a_part() -> None:
    learner = films()
    report = learner.replace([OLD], [NEW])
    assert (report.kind, report.part, report.new_examples) == ("replace", 1, 1)
    assert report.details["forgotten"] == 1
    assert known(learner, head="Alien", relation="director") == {"Cameron"}
    assert facts_of(learner) == ({*FILMS} - {OLD}) | {NEW}
    assert [change.kind for change in learner.trainer.history] == ["learn", "replace"]
    assert_same_graph(learner, again(learner))


def test_what_is_old_and_new_stays() -> None:
    learner = films()
    report = learner.replace(FILMS, [*FILMS[1:], NEW])
    assert report.details["forgotten"] == 1
    assert facts_of(learner) == {*FILMS[1:], NEW}
    with pytest.raises(UserError, match="nothing to replace"):
        learner.replace([NEW], [NEW])


def test_all_may_be_replaced_but_not_by_nothing_new() -> None:
    learner = films()
    learner.replace(FILMS, MORE)
    assert facts_of(learner) == {*MORE}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [([NEW], [NEW], "not known"), ([OLD], [("Alien", "director")], "expected")],
)
def test_a_replacement_that_cannot_be_changes_nothing(
    old: list[tuple[str, ...]], new: list[tuple[str, ...]], message: str
) -> None:
    learner = films()
    with pytest.raises(UserError, match=message):
        learner.replace(old, new)
    assert facts_of(learner) == {*FILMS}
    assert len(learner.reports) == 1


def test_another_label_changes_nothing_else() -> None:
    learner = films()
    learner.names["Scott"] = "Ridley"
    before = learner.trainer.model.entities.rows.clone()
    report = learner.rename("Ridley", "R. Scott")
    assert (report.kind, report.details["renamed"]) == ("rename", 1)
    assert torch.equal(learner.trainer.model.entities.rows, before)
    assert known(learner, head="Alien", relation="director") == {"R. Scott"}
    assert learner.names.of("R. Scott") == "Ridley"
    with pytest.raises(UserError, match="unknown entity 'Scott'"):
        learner.predict(head="Scott", relation="director")
    learner.rename("director", "directed by")
    assert known(learner, head="Alien", relation="directed by") == {"R. Scott"}
    learner.learn([("Scott", "born in", "South Shields")])  # somebody else
    assert "Scott" in list(learner.trainer.graph.entities)
    assert_same_graph(learner, again(learner))


def test_two_become_one() -> None:
    learner = learner_of("links")
    learner.learn([*FILMS, ("Alien 1", "genre", "horror"), ("Alien 1", "music", "Goldsmith")])
    graph = learner.trainer.graph
    rows = learner.trainer.model.entities.rows
    kept, gone = graph.entities.ids(["Alien", "Alien 1"])
    report = learner.merge("Alien", "Alien 1")
    assert (report.kind, report.details["merged"], report.new_examples) == ("merge", 1, 0)
    assert facts_of(learner) == {*FILMS, ("Alien", "music", "Goldsmith")}
    assert known(learner, head="Alien 1", relation="music") == {"Goldsmith"}
    assert "Alien 1" not in {
        a.label for a in learner.predict(relation="genre", tail="horror", k=99)
    }
    assert graph.entities.ids(["Alien 1"]).tolist() == [kept]
    assert len(rows) == len(graph.entities) and gone != kept
    assert learner.learn([("Alien 1", "year", "1979")]).details["arrived"]["entities"] == 1
    assert ("Alien", "year", "1979") in facts_of(learner)
    assert_same_graph(learner, again(learner))


def test_relations_become_one_as_well() -> None:
    learner = learner_of("divided", "dicgrl")
    learner.learn([*FILMS, ("Brazil", "made by", "Gilliam")])
    learner.merge("director", "made by")
    assert ("Brazil", "director", "Gilliam") in facts_of(learner)
    answers = {a.label for a in learner.predict("Brazil", None, "Gilliam", k=9)}
    assert "made by" not in answers
    learner.learn(MORE)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("Alien", "Alien"), "already the same"),
        (("Alien", "Aline"), "unknown entity 'Aline'"),
        (("Alien", "genre"), "'Alien' is one of the entities, 'genre' one of the relations"),
    ],
)
def test_what_cannot_be_merged(names: tuple[str, str], message: str) -> None:
    learner = films()
    with pytest.raises(UserError, match=message):
        learner.merge(*names)
    assert facts_of(learner) == {*FILMS}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("Alien", "Brazil"), "merge the two instead"),
        (("Aline", "Brazil"), "unknown entity 'Aline'"),
        (("Alien", ""), "cannot be empty"),
        (("Alien", "a\tb"), "control character"),
    ],
)
def test_what_cannot_be_renamed(names: tuple[str, str], message: str) -> None:
    learner = films()
    with pytest.raises(UserError, match=message):
        learner.rename(*names)
    assert next(iter(learner.trainer.graph.entities)) == "Alien"


def test_a_label_of_two_kinds_asks_which() -> None:
    learner = learner_of("links")
    learner.learn([("genre", "genre", "horror")])
    with pytest.raises(UserError, match="of=entities or of=relations"):
        learner.rename("genre", "kind")
    learner.rename("genre", "kind", of="relations")
    assert facts_of(learner) == {("genre", "kind", "horror")}


def test_what_was_merged_is_renamed_by_its_own_label() -> None:
    learner = films()
    learner.merge("Alien", "Blade Runner")
    with pytest.raises(UserError, match="merged into 'Alien'"):
        learner.rename("Blade Runner", "Runner")

"""Readable names: in questions and answers, beside facts, in run folders."""

from __future__ import annotations

import copy
from collections.abc import ItemsView
from pathlib import Path

import pytest
from typing_extensions import override

from dicgrl import Learner
from dicgrl.ask.names import Names
from dicgrl.errors import UserError
from dicgrl.graph import Vocabulary


def test_readable_names_are_understood_unless_they_are_ambiguous() -> None:
    names = {"q1": "Alien", "q2": "horror", "q3": "Brazil", "q4": "Brazil", "p": "genre"}
    learner = Learner("transe", "lower", device="cpu", names=names, dim=4, epochs=2)
    learner.learn([("q1", "p", "q2"), ("q3", "p", "q2"), ("q4", "p", "q2")])
    by_name = learner.predict(head="Alien", relation="genre", k=4)
    assert by_name == learner.predict(head="q1", relation="p", k=4)
    assert {(a.label, a.name) for a in by_name} == {(q, names[q]) for q in ("q2", "q3", "q4")}
    with pytest.raises(UserError, match="'Brazil' is the name of 2 labels: 'q3', 'q4'"):
        learner.predict(head="Brazil", relation="genre")


def test_entities_that_share_a_name_are_told_apart() -> None:
    names = {"Q1": "Solaris", "Q2": "Solaris", "Q3": "Tarkovsky", "P1": "director"}
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu", names=names)
    learner.learn([("Q1", "P1", "Q3"), ("Q2", "P1", "Q4")])
    rows = learner.trainer.examples("train").numpy()
    assert learner.ask.readable(rows[0]) == ("Solaris (Q1)", "director", "Tarkovsky")
    assert learner.ask.readable(rows[1]) == ("Solaris (Q2)", "director", "Q4")


def test_names_may_change_after_they_were_asked_for() -> None:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu", names={"Q1": "Alien"})
    learner.learn([("Q1", "P1", "Q3"), ("Q2", "P1", "Q4")])
    assert learner.predict(head="Alien", relation="P1")
    learner.names["Q3"] = "Horror"
    assert learner.predict(relation="P1", tail="Horror")
    del learner.names["Q1"]
    with pytest.raises(UserError, match="unknown entity 'Alien'"):
        learner.predict(head="Alien", relation="P1")


def test_all_names_are_found_while_another_thread_looks_for_the_first_time() -> None:
    found: list[str] = []

    class Watched(Names):
        @override
        def items(self) -> ItemsView[str, str]:
            if not found:
                found.append("asked")
                found.extend(self.called("Brazil"))  # as another thread may, at this moment
            return super().items()

    names = Watched({"Q1": "Alien", "Q2": "Brazil", "Q3": "Brazil"})
    assert names.called("Brazil") == ["Q2", "Q3"]
    assert found == ["asked", "Q2", "Q3"]


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


def test_names_are_those_of_the_version_that_is_read(tmp_path: Path) -> None:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu", names={"a": "A"})
    learner.learn([("a", "r", "b")])
    learner.save(tmp_path)
    learner.learn([("a", "r", "c")], names={"a": "B", "c": "C"})
    learner.save(tmp_path)
    del learner.names["c"]
    learner.save(tmp_path)
    assert dict(Learner.load(tmp_path, device="cpu").names) == {"a": "B"}
    assert dict(Learner.load(tmp_path, at=1, device="cpu").names) == {"a": "A"}


def test_names_know_what_became_of_them() -> None:
    names = Names({"a": "1", "b": "2"})
    start = names.changes
    assert names.changed(start) == {}
    names["c"] = "3"
    between = names.changes
    del names["a"]
    names["b"] = "2"
    assert names.changed(start) == {"c": "3", "a": None} and names.changed(between) == {"a": None}
    other = copy.copy(names)
    other["d"] = "4"
    assert "d" not in names and "d" not in names.changed(start)
    names.become({"a": "1", "d": "5"})
    assert names == {"a": "1", "d": "5"}
    assert names.changed(between) == {"a": "1", "b": None, "c": None, "d": "5"}
    names.settle(between)
    assert names.changed(between) == {"a": "1", "b": None, "c": None, "d": "5"}
    names.settle(names.changes)
    assert names.changed(names.changes) == {}

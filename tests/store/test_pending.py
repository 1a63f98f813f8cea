"""What waits to be learned: durable, in order, and settled with the version that holds it."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import Learner
from dicgrl.errors import SetupError
from dicgrl.graph.change import FORGET, LEARN
from dicgrl.jobs.pending import PendingLearner
from dicgrl.store.pending import Entry, Fact, Pending
from dicgrl.store.run_folder import RunFolder
from tests.stores import edited
from tests.tiny import learner_of, taught

ONE, OTHER = ("neu", "plus 1", "e3"), ("e4", "plus 2", "neu")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    taught(learner_of("links", "fresh"), parts=2, evaluate=False).save(tmp_path / "run")
    return tmp_path / "run"


def wait(run: Path, *entries: Entry) -> list[int]:
    with RunFolder(run).pending_writer() as writer:
        return writer.add(entries)


def knows(run: Path, fact: Fact) -> bool:
    learner = Learner.load(run, device="cpu")
    try:
        return learner.retraction([fact]).known == 1
    except Exception:
        return False


def test_what_waits_is_learned_as_one_version(run: Path) -> None:
    assert wait(run, Entry(LEARN, [ONE]), Entry(LEARN, [OTHER, ONE])) == [1, 2]
    assert wait(run, Entry(LEARN, [("e1", "plus 5", "e2")])) == [3]
    mark = RunFolder(run).mark()
    assert mark == RunFolder(run).pending().mark
    assert (mark.version, mark.last, mark.waiting) == (2, 3, 3)
    found = PendingLearner(run, device="cpu", evaluate="none").learn()
    assert (found.version, found.settled, found.refused) == (3, 4, ())
    mark = RunFolder(run).mark()
    assert RunFolder(run).pending().entries == []
    assert (mark.version, mark.last, mark.waiting) == (3, 0, 0)
    assert knows(run, ONE) and knows(run, OTHER)
    assert RunFolder(run).verify().clean


def test_facts_come_and_go_while_they_wait(run: Path) -> None:
    learner = Learner.load(run, device="cpu")
    graph = learner.trainer.graph
    old = tuple(
        vocabulary.labels([int(number)])[0]
        for vocabulary, number in zip(
            (graph.entities, graph.relations, graph.entities), graph.train[0], strict=True
        )
    )
    learn = PendingLearner(run, device="cpu", evaluate="none")
    wait(run, Entry(LEARN, [ONE, OTHER]), Entry(FORGET, [ONE, old]))
    assert learn.learn().version == 3
    assert [version.kind for version in RunFolder(run).versions()][-1] == "replace"
    assert knows(run, OTHER) and not knows(run, ONE) and not knows(run, old)
    wait(run, Entry(LEARN, [old]), Entry(FORGET, [OTHER]))
    assert learn.learn().version == 4 and knows(run, old) and not knows(run, OTHER)
    wait(run, Entry(LEARN, [old]), Entry(FORGET, [("no", "such", "fact")]))
    assert learn.learn().version == 4, "nothing is new, and nothing was known"
    assert not RunFolder(run).pending().entries


def test_what_would_leave_nothing_is_refused_and_waits_no_more(tmp_path: Path) -> None:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu")
    learner.learn([("a", "r", "b")])
    learner.save(tmp_path / "run")
    wait(tmp_path / "run", Entry(FORGET, [("a", "r", "b")]))
    found = PendingLearner(tmp_path / "run", device="cpu", evaluate="none").learn()
    assert found.version == 1 and "nothing would be left" in found.refused[0]
    assert not RunFolder(tmp_path / "run").pending().entries


@pytest.mark.parametrize(("kind", "place"), [(LEARN, "intake"), (FORGET, "retraction")])
def test_facts_wait_on_while_the_machine_lacks_something(
    run: Path, kind: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise SetupError("large arrays cannot be written there")

    wait(run, Entry(kind, [ONE]))
    with monkeypatch.context() as patched:
        patched.setattr(Learner, place, fail)
        with pytest.raises(SetupError, match="large arrays"):
            PendingLearner(run, device="cpu", evaluate="none").learn()
    assert [entry.facts for entry in RunFolder(run).pending().entries] == [[ONE]]


def test_an_entry_that_was_changed_is_seen(run: Path) -> None:
    wait(run, Entry(LEARN, [ONE]))
    with edited(run) as database:
        database.connection.execute('UPDATE pending SET facts = \'[["x", "y", "z"]]\'')
    assert not RunFolder(run).verify().clean
    with pytest.raises(Exception, match="checksum"):
        RunFolder(run).pending()


_Facts = st.lists(st.sampled_from([("a",), ("b",), ("c",)]), max_size=3)


@given(st.lists(st.tuples(st.sampled_from([LEARN, FORGET]), _Facts), max_size=8), _Facts)
def test_settling_is_what_happens_one_by_one(
    entries: list[tuple[str, list[Fact]]], known: list[Fact]
) -> None:
    """Whatever was known: facts known in the end are those that one would have step by step."""
    expected = set(known)
    for kind, facts in entries:
        expected = expected | set(facts) if kind == LEARN else expected - set(facts)
    learned, forgotten = Pending(1, [Entry(*entry) for entry in entries]).settled()
    assert (set(known) - set(forgotten)) | set(learned) == expected
    assert not set(learned) & set(forgotten)

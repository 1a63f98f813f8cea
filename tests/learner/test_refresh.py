"""A reader beside a writer: it takes in what is newer, and is the same as one that loads it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from dicgrl import Learner, NetworkFacts
from dicgrl.errors import DataError, UserError
from dicgrl.store.run_folder import RunFolder
from tests.learner.helpers import assert_same
from tests.tiny import STRATEGIES, learner_of, taught


def question(learner: Learner) -> Any:
    if learner.trainer.metric == "accuracy":
        return learner.predict(node="n3")
    return learner.predict_links([("e1", "plus 1", None), (None, "plus 2", "e5")])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["links", "divided", "nodes"])
def test_a_refreshed_learner_is_one_that_is_loaded(
    kind: str, strategy: str, tmp_path: Path
) -> None:
    writer = taught(learner_of(kind, strategy), 1)
    writer.save(tmp_path, keep="last")
    reader = Learner.load(tmp_path, device="cpu")
    assert not reader.refresh()
    for parts in (2, 3):
        taught(writer, parts).save(tmp_path)
        before = question(reader)
        assert before == question(reader)  # what it has loaded stays as it is
        assert reader.refresh() and reader.version == parts
        loaded = Learner.load(tmp_path, device="cpu")
        assert_same(reader, loaded)
        assert question(reader) == question(loaded) == question(writer)
    assert not reader.refresh()
    reader.learn(facts_of(reader))
    writer.learn(facts_of(writer))
    assert_same(reader, writer)  # it can go on learning, too


def facts_of(learner: Learner) -> Any:
    if learner.trainer.metric == "accuracy":
        return NetworkFacts(["new"], [[1.0, 0.0]], ["red"], edges=[("new", "n3")])
    return [("e1", "plus 1", "newcomer")]


def test_several_versions_are_taken_in_at_once(tmp_path: Path) -> None:
    writer = taught(learner_of("links", "lower"), 1)
    writer.save(tmp_path)
    reader = Learner.load(tmp_path, device="cpu")
    for number in range(5):
        writer.learn([(f"x{number}", "plus 1", "e1")], names={f"x{number}": f"the {number}th"})
        writer.save(tmp_path)
    assert reader.refresh()
    assert_same(reader, writer)
    assert reader.names == writer.names and reader.names["x3"] == "the 3th"


def test_labels_that_came_and_went_are_taken_in_at_once(tmp_path: Path) -> None:
    """A label that arrives again after a rename is somebody else; ids are those of the writer."""
    writer = taught(learner_of("links", "lower"), 1)
    writer.save(tmp_path)
    reader = Learner.load(tmp_path, device="cpu")
    for change in (
        lambda: writer.rename("e1", "first"),
        lambda: writer.learn([("e1", "plus 1", "e2"), ("first", "plus 1", "x"), ("y", "new", "x")]),
        lambda: writer.rename("x", "z"),
        lambda: writer.learn([("z", "new", "e1"), ("x", "new", "z")]),
        lambda: writer.merge("e2", "e3"),
        lambda: writer.learn([("e3", "plus 1", "x"), ("e3", "plus 2", "w")]),
    ):
        change()
        writer.save(tmp_path)
    assert reader.refresh()
    for name, labels in writer.trainer.graph.vocabularies().items():
        assert list(reader.trainer.graph.vocabularies()[name]) == list(labels)
    assert_same(reader, writer)
    assert reader.predict("z", "new", k=3) == writer.predict("z", "new", k=3)


def test_forgetting_and_restoring_are_taken_in(tmp_path: Path) -> None:
    writer = taught(learner_of("links", "fresh"), 2)
    writer.save(tmp_path)
    reader = Learner.load(tmp_path, device="cpu")
    writer.learn([("e1", "plus 1", "wrong")])
    writer.save(tmp_path)
    assert reader.refresh()
    writer.forget([("e1", "plus 1", "wrong")])
    writer.save(tmp_path)
    assert reader.refresh()
    assert_same(reader, Learner.load(tmp_path, device="cpu"))
    assert question(reader) == question(writer)
    RunFolder(tmp_path).restore(2)
    assert reader.refresh() and reader.version == 5
    assert_same(reader, Learner.load(tmp_path, at=2, device="cpu"))


def test_what_is_not_saved_is_not_lost(tmp_path: Path) -> None:
    writer = taught(learner_of("links", "lower"), 1)
    with pytest.raises(UserError, match="say which"):
        writer.refresh()
    writer.save(tmp_path)
    reader = Learner.load(tmp_path, device="cpu")
    reader.learn([("e1", "plus 1", "mine")])
    taught(writer, 2).save(tmp_path)
    with pytest.raises(UserError, match="unsaved changes"):
        reader.refresh()


def test_asking_while_another_thread_learns_says_so() -> None:
    learner = taught(learner_of("links", "lower"), 1)
    entered, answered = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        entered.set()
        answered.wait(30)

    thread = threading.Thread(
        target=lambda: learner.learn([("e1", "plus 1", "new")], monitor=wait), daemon=True
    )
    thread.start()
    assert entered.wait(30)
    try:
        with pytest.raises(UserError, match="another thread is learning part 1; wait until it has"):
            learner.predict("e1", "plus 1")
    finally:
        answered.set()
        thread.join()
    assert learner.predict("e1", "plus 1")


def test_every_answer_is_of_one_version_while_another_thread_commits(tmp_path: Path) -> None:
    """The small form of benchmarks/readers.py."""
    writer = taught(learner_of("links", "lower"), 1, evaluate=False)
    writer.save(tmp_path, keep="last")
    expected: dict[int, Any] = {1: question(writer)}
    done = threading.Event()
    failed: list[BaseException] = []

    def write() -> None:
        try:
            for number in range(20):
                writer.learn([(f"x{number}", "plus 1", "e1")])
                answers = question(writer)
                expected[number + 2] = answers
                writer.save(tmp_path)
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    reader = Learner.load(tmp_path, device="cpu")
    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    while not done.is_set() or reader.refresh():
        reader.refresh()
        assert question(reader) == expected[reader.version]
        seen.add(reader.version)
    thread.join()
    assert not failed and 21 in seen


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_a_network_is_taken_in_and_not_read_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = taught(learner_of(kind, "lower"), 2)
    writer.save(tmp_path)
    reader = Learner.load(tmp_path, device="cpu")
    writer.learn(facts_of(writer))
    writer.forget([("e1", "plus 1", "newcomer")] if kind == "links" else [("new", "n3")])
    writer.save(tmp_path)
    monkeypatch.setattr(Learner, "load", None)
    assert reader.refresh()
    assert_same(reader, writer)
    assert question(reader) == question(writer)


def test_features_that_change_are_taken_in(tmp_path: Path) -> None:
    writer = taught(learner_of("nodes", "lower"), 2)
    writer.save(tmp_path)
    reader = Learner.load(tmp_path, device="cpu")
    writer.revise(NetworkFacts(["n3"], [[0.5, 0.25]]))
    writer.save(tmp_path)
    assert reader.refresh()
    assert reader.trainer.x.equal(writer.trainer.x)
    assert question(reader) == question(Learner.load(tmp_path, device="cpu")) == question(writer)


@pytest.mark.parametrize("keep", ["all", "last"])
def test_a_refresh_that_fails_half_way_leaves_a_whole_learner_or_none(
    keep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = taught(learner_of("links", "lower"), 1)
    writer.save(tmp_path, keep=keep)
    reader = Learner.load(tmp_path, device="cpu")
    before = question(reader)
    taught(writer, 3).save(tmp_path)  # two changes at once
    with monkeypatch.context() as patched:
        patched.setattr(type(reader.trainer), "follow", broken)
        with pytest.raises(DataError, match="damaged"):
            reader.refresh()
    if keep == "last":  # the version that it was is gone
        with pytest.raises(UserError, match="load"):
            question(reader)
        return
    assert question(reader) == before and reader.version == 1
    assert reader.refresh()
    assert_same(reader, writer)


def broken(*given: Any) -> None:
    raise ValueError("rows that do not fit")

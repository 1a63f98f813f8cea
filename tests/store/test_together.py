"""Several processes that save to one run: nobody erases what another one saved, and all see it."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dicgrl import Learner
from dicgrl.graph.change import LEARN
from dicgrl.jobs.pending import PendingLearner
from dicgrl.store.pending import Entry
from dicgrl.store.records import StoredRun
from dicgrl.store.run_folder import RunFolder
from tests.learner.helpers import assert_same
from tests.stores import change_config, edited, named_run
from tests.tiny import learner_of, taught

NEW = ("neu", "plus 1", "e3")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return named_run(tmp_path / "run")


def loaded(run: Path, at: int | None = None) -> Learner:
    return Learner.load(run, at=at, device="cpu")


def named(run: Path, **names: str | None) -> None:
    """Another process names labels; None takes a name away."""
    learner = loaded(run)
    for label, name in names.items():
        if name is None:
            del learner.names[label]
        else:
            learner.names[label] = name
    learner.save(run)


def measured(run: Path) -> Learner:
    """What another process has measured and saved."""
    learner = loaded(run)
    learner.evaluate()
    learner.reports[-1].details["noted"] = "by hand"
    learner.save(run)
    return learner


def results(learner: Learner) -> Any:
    return (
        [asdict(report) for report in learner.reports],
        [list(tests) for tests in learner.tests],
        learner.retention,
        learner.first_answers,
    )


def names_of(run: Path) -> dict[str, str]:
    return dict(loaded(run).names)


@pytest.mark.parametrize("learns", [False, True])
def test_a_save_writes_only_the_names_that_are_its_own(run: Path, learns: bool) -> None:
    teacher = loaded(run)
    named(run, e1=None, e3="three", e4="four")
    teacher.names["e4"] = "quattro"
    del teacher.names["e2"]
    if learns:
        teacher.learn([NEW], names={"neu": "new"})
    teacher.save(run)
    brought = {"neu": "new"} if learns else {}
    assert names_of(run) == {"e3": "three", "e4": "quattro"} | brought
    assert teacher.refresh() and not teacher.refresh()
    assert teacher.names == names_of(run)
    assert RunFolder(run).verify().clean


def test_a_save_erases_no_measurements(run: Path) -> None:
    teacher = loaded(run)
    other = measured(run)
    teacher.save(run)
    assert results(loaded(run)) == results(other)
    teacher.reports[-1].details["doubt"] = "mine"
    teacher.learn([NEW])
    teacher.save(run)
    found = loaded(run)
    assert [list(tests) for tests in found.tests] == [*other.tests, []]
    assert found.retention[:-1] == other.retention
    assert found.reports[1].details == other.reports[1].details | {"doubt": "mine"}
    assert found.reports[1].calibration == other.reports[1].calibration
    assert teacher.refresh() and not teacher.refresh()
    assert_same(teacher, found)  # of the version before its own, too


def test_the_first_answers_are_seen(tmp_path: Path) -> None:
    taught(learner_of("links", "fresh"), 1, evaluate=False).save(tmp_path)
    reader = loaded(tmp_path)
    other = measured(tmp_path)
    assert reader.refresh()
    assert other.first_answers is not None and reader.first_answers is not None
    assert reader.first_answers.equal(other.first_answers)


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_a_reader_sees_names_and_measurements_without_a_new_version(
    kind: str, tmp_path: Path
) -> None:
    taught(learner_of(kind, "ewc"), 2, evaluate=False).save(tmp_path)
    reader = loaded(tmp_path)
    version, label = reader.version, "e5" if kind == "links" else "n5"
    named(tmp_path, **{label: "five"})
    assert reader.refresh() and not reader.refresh()
    assert reader.names.of(label) == "five" and reader.version == version
    other = measured(tmp_path)
    assert reader.refresh() and not reader.refresh()
    assert_same(reader, other)
    named(tmp_path, **{label: None})
    taught(other, 3).save(tmp_path)
    assert reader.refresh() and not reader.refresh()
    assert reader.names == {} and reader.version == version + 1
    assert_same(reader, loaded(tmp_path))


def test_what_a_reader_has_not_saved_stays_its_own(run: Path) -> None:
    reader = loaded(run)
    reader.names["e5"] = "five"
    del reader.names["e1"]
    reader.reports[-1].details["noted"] = "later"
    named(run, e1="uno", e3="three")
    measured(run)
    assert reader.refresh()
    assert reader.names == {"e2": "two", "e3": "three", "e5": "five"}
    assert reader.reports[-1].details["noted"] == "later"
    assert names_of(run) == {"e1": "uno", "e2": "two", "e3": "three"}
    reader.save(run)
    assert names_of(run) == reader.names
    assert loaded(run).reports[-1].details["noted"] == "later"
    RunFolder(run).restore(1)  # all of it is read then
    reader.names["e6"] = "six"
    assert reader.refresh() and reader.version == 3 and reader.names["e6"] == "six"
    reader.save(run)
    assert names_of(run)["e6"] == "six"


@pytest.mark.parametrize("change", ["learned", "measured", "named"])
def test_only_names_that_changed_are_read_again(
    run: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = loaded(run)
    reader.names["e3"] = "three"
    if change == "learned":
        other = loaded(run)
        other.learn([NEW])
        other.save(run)
    elif change == "measured":
        measured(run)
    else:
        named(run, e1="uno", e2=None)
    with monkeypatch.context() as patched:
        patched.delattr(StoredRun, "names")
        assert reader.refresh()
    there = {"e1": "uno"} if change == "named" else {"e1": "one", "e2": "two"}
    assert reader.names == {**there, "e3": "three"}
    named(run, e1="another")
    reader.save(run)  # only its own
    assert names_of(run) == {**there, "e1": "another", "e3": "three"}
    assert reader.refresh() and reader.names == names_of(run)


def test_a_reader_of_an_earlier_version_gets_the_names_that_came_since(run: Path) -> None:
    other = loaded(run)
    other.names["e3"] = "three"
    other.learn([NEW])
    other.save(run)
    named(run, e4="four")
    for at in (1, 2, 3):
        reader = loaded(run, at)
        assert reader.refresh() == (at < 3) and reader.version == 3
        assert (
            reader.names == names_of(run) == {"e1": "one", "e2": "two", "e3": "three", "e4": "four"}
        )
        assert not reader.refresh()


def test_names_come_after_a_refresh_that_failed(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = loaded(run)
    other = loaded(run)
    other.learn([NEW], names={"neu": "new"})
    other.save(run)
    with monkeypatch.context() as patched:
        patched.setattr("dicgrl.saving.patch_model", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reader.refresh()
    assert reader.refresh() and reader.names == names_of(run)


def test_names_are_saved_by_a_learner_that_is_behind(run: Path) -> None:
    behind = loaded(run)
    other = loaded(run)
    other.learn([NEW], names={"neu": "new"})
    other.save(run)
    behind.names["e3"] = "three"
    behind.save(run)
    assert names_of(run) == {"e1": "one", "e2": "two", "e3": "three", "neu": "new"}
    assert loaded(run).version == 3
    assert behind.refresh() and behind.names == names_of(run)


def test_a_learner_in_two_folders_knows_what_each_of_them_lacks(run: Path) -> None:
    learner, second = loaded(run), run.with_name("second")
    learner.names["e3"] = "three"
    learner.save(second)
    assert names_of(second) == {"e1": "one", "e2": "two", "e3": "three"}
    del learner.names["e3"]
    named(second, e4="four")
    learner.save(second)
    assert names_of(second) == {"e1": "one", "e2": "two", "e4": "four"}
    assert names_of(run) == {"e1": "one", "e2": "two"}
    learner.names["e5"] = "five"
    learner.save(run)
    assert learner.refresh(second)
    learner.save(run)
    learner.save(second)
    assert names_of(run) == names_of(second) == learner.names


def test_names_of_a_backup_that_was_put_back_are_seen(run: Path) -> None:
    shutil.copytree(run, run.with_name("copy"))
    named(run, e3="three")
    named(run.with_name("copy"), e3="drei")
    reader = loaded(run)
    shutil.rmtree(run)
    run.with_name("copy").rename(run)
    assert reader.refresh() and reader.names["e3"] == "drei"


def test_names_are_written_again_to_another_copy_of_the_run(run: Path) -> None:
    copied = run.with_name("copy")
    shutil.copytree(run, copied)
    with edited(copied) as database:  # the same facts, learned at another time
        row = next(database.rows("versions", "WHERE number = 2"))
        database.insert("versions", **row | {"time": "2001-02-03T04:05:06+00:00"})
    named(copied, e4="four")
    learner = loaded(run)
    learner.names["e3"] = "three"
    learner.save(run)
    shutil.rmtree(run)
    copied.rename(run)
    learner.save(run)
    assert names_of(run) == {"e1": "one", "e2": "two", "e3": "three", "e4": "four"}
    assert learner.refresh() and learner.names == names_of(run)


def test_what_learns_what_waits_keeps_names_and_measurements(run: Path) -> None:
    """As the process that learns for a server does for months."""
    teacher = PendingLearner(run, device="cpu", evaluate="none")
    for number in range(3):
        with RunFolder(run).pending_writer() as writer:
            writer.add([Entry(LEARN, [(f"x{number}", "plus 1", "e3")])])
        teacher.learn()
        before = RunFolder(run).mark()
        named(run, **{f"x{number}": f"the {number}th"})
        assert RunFolder(run).mark() != before
        assert RunFolder(run).mark() == RunFolder(run).pending().mark
        other = measured(run)
    assert names_of(run).items() >= {"x0": "the 0th", "x1": "the 1th", "x2": "the 2th"}.items()
    assert results(loaded(run)) == results(other)
    assert all(version.tests for version in RunFolder(run).versions()[2:])


def test_a_save_that_brings_nothing_says_nothing(run: Path) -> None:
    reader, other = loaded(run), loaded(run)
    mark = RunFolder(run).mark()
    other.names["e1"] = "one"  # as it is
    other.names = dict(other.names)
    other.save(run)
    assert RunFolder(run).mark() == mark and not reader.refresh()


def test_a_run_without_such_a_mark_is_read(run: Path) -> None:
    """As they were written before."""
    change_config(run, lambda config: (config.pop("edits"), config.pop("names")))
    reader = loaded(run)
    assert not reader.refresh() and RunFolder(run).verify().clean
    named(run, e3="three")
    assert reader.refresh() and reader.names["e3"] == "three"
    assert RunFolder(run).verify().clean

"""What waits to be learned: durable, in order, and settled with the version that holds it."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import Learner
from dicgrl.errors import SetupError
from dicgrl.graph.change import FORGET, LEARN
from dicgrl.jobs.pending import PendingLearner
from dicgrl.store.pending import Entry, Fact, Pending
from dicgrl.store.run_folder import RunFolder
from dicgrl.trainers.trainer import Trainer
from tests.stores import edited
from tests.tiny import learner_of, taught

ONE, OTHER = ("neu", "plus 1", "e3"), ("e4", "plus 2", "neu")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    taught(learner_of("links", "fresh"), parts=2, evaluate=False).save(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def network(tmp_path: Path) -> Path:
    taught(learner_of("nodes", "fresh"), parts=2, evaluate=False).save(tmp_path / "network")
    return tmp_path / "network"


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
    assert (mark.version, mark.last, mark.waiting) == (3, 3, 0)
    assert knows(run, ONE) and knows(run, OTHER)
    assert RunFolder(run).verify().clean


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_what_waits_is_found_by_every_label_of_a_merged_entity(tmp_path: Path, kind: str) -> None:
    learner = taught(learner_of(kind, "lower"), parts=2, evaluate=False)
    graph = learner.trainer.graph
    kept, gone, other = next(iter(graph.vocabularies().values())).labels([0, 1, 2])
    end = "neu"
    if kind == "nodes":  # a node that none of them has an edge to
        near = {int(node) for node in graph.edges[graph.edges_of(np.arange(3))[1]].ravel()}
        end = graph.nodes.labels([max(set(range(len(graph.nodes))) - near)])[0]
    learner.merge(kept, gone)
    learner.save(tmp_path / "run")
    between = ["plus 1"] if kind == "links" else []
    by_one, by_other = ((label, *between, end) for label in (kept, gone))
    for first, second in ((by_one, by_other), (by_other, by_one)):
        facts = [first, (other, *between, end)]
        wait(tmp_path / "run", Entry(LEARN, facts), Entry(FORGET, [second]))
        assert PendingLearner(tmp_path / "run", device="cpu", evaluate="none").learn().settled == 3
        assert not knows(tmp_path / "run", by_one)
        wait(tmp_path / "run", Entry(FORGET, [second]), Entry(LEARN, [first]))
        assert PendingLearner(tmp_path / "run", device="cpu", evaluate="none").learn().settled == 2
        assert knows(tmp_path / "run", by_one)
        wait(tmp_path / "run", Entry(FORGET, [first]))
        PendingLearner(tmp_path / "run", device="cpu", evaluate="none").learn()


def test_numbers_only_grow_so_that_a_mark_never_comes_again(run: Path) -> None:
    learn = PendingLearner(run, device="cpu", evaluate="none")
    marks = [RunFolder(run).mark()]
    for number in (1, 2, 3):
        assert wait(run, Entry(FORGET, [("no", "such", f"fact {number}")])) == [number]
        marks.append(RunFolder(run).mark())
        assert learn.learn().version == 2, "there is nothing to learn"
        marks.append(RunFolder(run).mark())
        assert marks[-1] == RunFolder(run).pending().mark
    assert len(set(marks)) == len(marks)
    assert wait(run, Entry(LEARN, [ONE]), Entry(LEARN, [OTHER])) == [4, 5]
    with RunFolder(run).pending_writer() as writer:
        first, second = RunFolder(run).pending().entries
        writer.settle([second])
        writer.settle([first._replace(facts=[OTHER])])  # of another copy of the run
        assert RunFolder(run).pending().entries == [first]
        writer.settle([first])
    assert learn.learn().settled == 0 and wait(run, Entry(LEARN, [ONE])) == [6]
    assert learn.learn().version == 3 and wait(run, Entry(LEARN, [OTHER])) == [7]
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


@pytest.mark.parametrize("first", [LEARN, FORGET])
def test_an_edge_is_learned_beside_one_that_is_forgotten(network: Path, first: str) -> None:
    entries = {LEARN: Entry(LEARN, [("n0", "n7")]), FORGET: Entry(FORGET, [("n2", "n0")])}
    assert knows(network, ("n0", "n2")) and not knows(network, ("n0", "n7"))
    wait(network, entries.pop(first), *entries.values())
    found = PendingLearner(network, device="cpu", evaluate="none").learn()
    assert (found.version, found.settled, found.refused) == (3, 2, ())
    assert knows(network, ("n0", "n7")) and not knows(network, ("n0", "n2"))


def test_edges_are_learned_though_the_classes_of_all_nodes_cannot_be_forgotten(
    network: Path,
) -> None:
    graph = Learner.load(network, device="cpu").trainer.graph
    nodes = graph.split_nodes("train")
    classes = graph.classes.labels(graph.labels[nodes])
    told = list(zip(graph.nodes.labels(nodes), classes, strict=True))
    wait(network, Entry(FORGET, told), Entry(LEARN, [("n0", "n7")]))
    found = PendingLearner(network, device="cpu", evaluate="none").learn()
    assert "nothing would be left" in found.refused[0]
    assert knows(network, ("n0", "n7")) and knows(network, told[0])


def test_an_edge_has_no_direction_while_it_waits(network: Path) -> None:
    learn = PendingLearner(network, device="cpu", evaluate="none")
    wait(network, Entry(LEARN, [("n0", "n7")]), Entry(FORGET, [("n7", "n0")]))
    learn.learn()
    assert not knows(network, ("n0", "n7"))
    wait(network, Entry(FORGET, [("n0", "n2")]), Entry(LEARN, [("n2", "n0")]))
    learn.learn()
    assert knows(network, ("n0", "n2")) and not RunFolder(network).pending().entries


def test_a_fact_that_comes_again_under_another_label_does_not_wait_for_ever(run: Path) -> None:
    learner = Learner.load(run, device="cpu")
    learner.learn([("Alien", "plus 1", "e3"), ("Alien (1979)", "plus 2", "e4")])
    learner.merge("Alien", "Alien (1979)")
    learner.save(run)
    wait(
        run,
        Entry(FORGET, [("Alien (1979)", "plus 1", "e3")]),
        Entry(LEARN, [("Alien", "plus 1", "e3"), ONE]),
    )
    PendingLearner(run, device="cpu", evaluate="none").learn()
    assert knows(run, ("Alien", "plus 1", "e3")) and knows(run, ONE)
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


@pytest.mark.parametrize("keep", ["all", "last"])
def test_facts_are_learned_after_a_version_that_could_not_be_taken_in(
    keep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise MemoryError("too much")

    run = tmp_path / "run"
    taught(learner_of("links", "lower"), parts=1, evaluate=False).save(run, keep=keep)
    learn = PendingLearner(run, device="cpu", evaluate="none")
    wait(run, Entry(LEARN, [ONE]))
    assert learn.learn().version == 2
    other = Learner.load(run, device="cpu")
    other.learn([("another", "plus 1", "e3")])
    other.save(run)
    wait(run, Entry(LEARN, [OTHER]))
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "follow", fail)
        with pytest.raises(MemoryError, match="too much"):
            learn.learn()
    assert learn.learn().version == 4
    assert knows(run, ONE) and knows(run, OTHER) and knows(run, ("another", "plus 1", "e3"))


def test_a_fact_is_not_refused_because_the_machine_lacks_something(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = Learner.intake

    def fail(learner: Learner, facts: list[Fact]) -> object:
        if facts == [ONE]:
            raise SetupError("large arrays cannot be written there")
        return intake(learner, facts)

    wait(run, Entry(LEARN, [("of", "two"), ONE]))
    with monkeypatch.context() as patched:
        patched.setattr(Learner, "intake", fail)
        with pytest.raises(SetupError, match="large arrays"):
            PendingLearner(run, device="cpu", evaluate="none").learn()
    found = PendingLearner(run, device="cpu", evaluate="none").learn()
    assert len(found.refused) == 1 and knows(run, ONE)


def test_that_a_fact_came_again_is_noted_beside_one_that_is_forgotten(tmp_path: Path) -> None:
    run = tmp_path / "run"
    learner = learner_of("links", "fresh", weighting="count")
    learner.learn([ONE, OTHER, ("e3", "plus 1", "e4")])
    learner.save(run)
    wait(run, Entry(LEARN, [ONE]), Entry(FORGET, [OTHER]))
    PendingLearner(run, device="cpu", evaluate="none").learn()
    assert not knows(run, OTHER)
    changes = Learner.load(run, device="cpu").trainer.history
    assert sum(len(change.arrays.get("again", ())) for change in changes) == 1
    assert RunFolder(run).verify().clean and not RunFolder(run).pending().entries


def test_an_entry_that_was_changed_is_seen(run: Path) -> None:
    wait(run, Entry(LEARN, [ONE]))
    with edited(run) as database:
        database.connection.execute('UPDATE pending SET facts = \'[["x", "y", "z"]]\'')
    assert not RunFolder(run).verify().clean
    with pytest.raises(Exception, match="checksum"):
        RunFolder(run).pending()


class Counted(str):
    """A label that counts how often it is looked up."""

    looked_up = 0

    def __hash__(self) -> int:
        Counted.looked_up += 1
        return super().__hash__()


@pytest.mark.parametrize("later", [LEARN, FORGET])
def test_each_of_many_waiting_facts_is_looked_at_a_few_times(later: str) -> None:
    facts = [(Counted(f"e{i}"), "plus 1", "e3") for i in range(400)]
    entries = [Entry(LEARN, [fact]) for fact in facts]
    entries += [Entry(later, [fact]) for fact in facts]
    Counted.looked_up = 0
    learned, forgotten = Pending(1, entries).settled()
    assert (len(learned), len(forgotten)) == ((800, 0) if later == LEARN else (0, 400))
    assert Counted.looked_up < 10 * len(entries)


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

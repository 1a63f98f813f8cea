"""A run that is moved, put back from a backup or replaced by another while it is served."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from dicgrl import Learner
from dicgrl.store.run_folder import RunFolder
from tests.serve.servers import Server, serving
from tests.tiny import learner_of, taught

NEVER = ("--learn-facts", "1000000", "--learn-seconds", "100000")
NEW = ("neu", "plus 1", "e3")
_PATIENCE = 60.0  # seconds, on a busy machine


def until(found: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not found():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_facts_are_not_taken_in_for_a_run_that_is_gone(run: Path) -> None:
    with serving(run, *NEVER) as server:
        assert server.add(NEW).status_code == 200
        run.rename(run.with_name("away"))
        assert server.add(("other", "plus 1", "e3")).status_code == 503
        until(lambda: server.client.get("/ready").status_code == 503)
        assert server.best(head="e1", relation="plus 1")
        run.with_name("away").rename(run)
        until(lambda: server.client.get("/ready").status_code == 200)
        assert server.add(("third", "plus 1", "e3")).status_code == 200
    assert RunFolder(run).pending().settled()[0] == [NEW, ("third", "plus 1", "e3")]
    assert "Traceback" not in server.log.read_text()


def test_a_backup_that_is_put_back_is_answered_from(run: Path) -> None:
    """It has as many versions as what was served, so that only their content tells them apart."""
    copy = run.with_name("copy")
    shutil.copytree(run, copy)
    RunFolder(copy).restore(1)
    RunFolder(run).restore(2)
    expected = Learner.load(copy, device="cpu").num_entities
    with serving(run, *NEVER, "--learn-seconds", "0.1") as server:
        run.rename(run.with_name("away"))
        copy.rename(run)
        until(lambda: f"dicgrl_entities {expected}\n" in server.client.get("/metrics").text)
        assert server.add(NEW).status_code == 200
        assert server.until_learned() == 5
        assert server.knows(*NEW)
    assert RunFolder(run).log()[-1]["kind"] == "learn"
    assert RunFolder(run).verify().clean


def test_names_that_another_process_saves_are_seen_and_stay(run: Path) -> None:
    with serving(run, "--learn-facts", "1") as server:
        server.add(NEW)
        server.until_learned()  # the process that learns has a learner from then on
        learner = Learner.load(run, device="cpu")
        learner.names["neu"] = "the new one"
        learner.save(run)
        until(lambda: "the new one" in names(server))
        server.add(("other", "plus 1", "e3"))
        server.until_learned()
        assert "the new one" in names(server)
    assert Learner.load(run, device="cpu").names == {"neu": "the new one"}


def names(server: Server) -> set[str]:
    return {answer["name"] for answer in server.best(900, tail="e3", relation="plus 1")}


def test_another_run_takes_the_place_of_the_one_that_is_served(run: Path) -> None:
    other = run.with_name("other")
    learner = taught(learner_of("links", "fresh"), 3, evaluate=False)
    learner.learn([("only here", "plus 1", "e3")])
    learner.save(other)
    soon = ("--learn-facts", "1")
    with serving(run, *soon) as server:
        server.add(NEW)
        server.until_learned()  # the process that learns has the first run
        run.rename(run.with_name("away"))
        other.rename(run)
        until(lambda: server.knows("only here", "plus 1", "e3"))
        assert not server.knows(*NEW)
        assert server.add(("new here", "plus 1", "e3")).status_code == 200
        until(lambda: len(RunFolder(run).pending()) == 0)
        assert server.client.get("/ready").status_code == 200
    found = Learner.load(run, device="cpu")
    assert found.retraction([("new here", "plus 1", "e3")]).known == 1
    assert found.identity == learner.identity and RunFolder(run).verify().clean

"""Facts that arrive at a server: known at once, learned soon, never lost and never there twice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from dicgrl import Learner
from dicgrl.errors import DataError, UserError
from dicgrl.graph.change import FORGET, LEARN
from dicgrl.jobs.pending import PendingLearner
from dicgrl.serve.facts import add_facts, forget_facts
from dicgrl.serve.options import ServeOptions
from dicgrl.serve.serving import Serving
from dicgrl.store.pending import Entry
from dicgrl.store.run_folder import RunFolder
from tests.serve.servers import TOKEN, Server, serving
from tests.serve.torture import children_of
from tests.tiny import learner_of, taught

SOON = ("--learn-facts", "1")
NEVER = ("--learn-facts", "1000000", "--learn-seconds", "100000")


def newcomer(name: str) -> tuple[str, str, str]:
    return name, "plus 1", "e3"


def facts_of(run: Path) -> list[tuple[str, ...]]:
    """All training facts of a run, and those that wait, each as often as it is there."""
    graph = Learner.load(run, device="cpu").trainer.graph
    rows = graph.train
    columns = (graph.entities, graph.relations, graph.entities)
    labels = [vocabulary.labels(rows[:, at]) for at, vocabulary in enumerate(columns)]
    return [*zip(*labels, strict=True), *RunFolder(run).pending().settled()[0]]


@contextlib.contextmanager
def here(run: Path) -> Iterator[Serving]:
    """A run that is served in this process, and does not learn by itself."""
    found = Serving(run, ServeOptions(token=TOKEN, learn_facts=10**6, learn_seconds=1e5))
    found.start()
    try:
        yield found
    finally:
        found.stop()


def test_a_newcomer_can_be_asked_about_at_once_and_is_learned_soon(run: Path) -> None:
    with serving(run, *SOON) as server:
        before = server.client.get("/health").json()["version"]
        told = server.add(newcomer("neu"), ("neu", "plus 2", "e4")).json()
        assert told["queued"] == 2 and told["askable"]
        assert server.knows("neu", "plus 1", "e3") and server.knows("neu", "plus 2", "e4")
        assert server.until_learned() > before
        assert server.knows("neu", "plus 1", "e3")
    assert facts_of(run).count(newcomer("neu")) == 1
    assert RunFolder(run).verify().clean


def test_the_end_comes_in_order_and_what_waits_is_learned_by_the_next_start(run: Path) -> None:
    with serving(run, *NEVER) as server:
        assert server.add(newcomer("neu")).status_code == 200
    assert len(RunFolder(run).pending()) == 1
    with serving(run, *NEVER) as server:
        server.until_learned()
        assert server.knows("neu", "plus 1", "e3")
    assert not RunFolder(run).pending().entries


def test_facts_may_wait_for_others_however_long_that_takes(run: Path) -> None:
    with serving(run, "--learn-facts", "2", "--learn-seconds", "inf") as server:
        server.add(newcomer("one"))
        server.add(newcomer("two"))
        assert server.until_learned() == 4
    assert "Traceback" not in server.log.read_text()


def test_facts_that_are_taken_back(run: Path) -> None:
    old = facts_of(run)[0]
    with serving(run, *NEVER) as server:
        assert server.add(newcomer("neu"), newcomer("neu")).json()["queued"] == 1
        assert (
            server.add(newcomer("neu")).json() | {"queued": 0, "known": 1}
            == server.add(newcomer("neu")).json()
        )
        told = server.forget(newcomer("neu"), old, ("who", "knows", "this")).json()
        assert (told["queued"], told["waiting"], told["unknown"]) == (2, 1, 1)
        assert not server.knows(*newcomer("neu")) and not server.knows(*old)
        assert server.forget(old).json()["unknown"] == 1
        assert server.add(old).json()["queued"] == 1
        assert server.knows(*old)
        server.forget(old)
    with serving(run, *SOON) as server:
        server.until_learned()
        assert not server.knows(*old)
    assert not {old, newcomer("neu")} & set(facts_of(run))


def test_a_version_of_another_process_is_taken_in(run: Path) -> None:
    with serving(run) as server:
        learner = Learner.load(run, device="cpu")
        learner.learn([newcomer("neu")])
        learner.save(run)
        until = time.monotonic() + 60
        while not server.knows(*newcomer("neu")) and time.monotonic() < until:
            time.sleep(0.05)
        assert server.client.get("/health").json()["version"] == learner.version


def test_no_request_fails_while_versions_are_committed(run: Path) -> None:
    found: list[int] = []
    ended = threading.Event()

    def ask(server: Server) -> None:
        with httpx.Client(base_url=server.client.base_url, timeout=60) as client:
            while not ended.is_set():
                question = {"head": "e0", "relation": "plus 1"}
                answer = client.post("/predict", json={"questions": [question] * 3, "k": 2})
                assert len(answer.json()["answers"]) == 3
                found.append(answer.status_code)

    with serving(run, *SOON) as server:
        askers = [threading.Thread(target=ask, args=(server,)) for _ in range(3)]
        for asker in askers:
            asker.start()
        for number in range(4):
            assert server.add(newcomer(f"neu {number}")).status_code == 200
            server.until_learned()
        ended.set()
        for asker in askers:
            asker.join()
    assert set(found) == {200} and len(found) > 20


def test_a_full_disk_is_said_and_the_server_goes_on(run: Path) -> None:
    """The third write and the three after it find no room."""
    shim = (
        "import dicgrl.store.pending as pending\n"
        "import sqlite3\n"
        "write, writes = pending.Database.insert, []\n"
        "def insert(self, table, **values):\n"
        "    writes.append(table)\n"
        "    if 2 < len(writes) < 6:\n"
        "        error = sqlite3.OperationalError('injected')\n"
        "        error.sqlite_errorcode = sqlite3.SQLITE_FULL\n"
        "        raise error\n"
        "    write(self, table, **values)\n"
        "pending.Database.insert = insert\n"
    )
    with serving(run, *NEVER, shim=shim) as server:
        codes = [server.add(newcomer(f"n{number}")).status_code for number in range(8)]
        assert codes == [200, 200, 507, 507, 507, 200, 200, 200]
        assert server.best(head="e0", relation="plus 1")
        assert not server.knows(*newcomer("n3"))
    there = set(facts_of(run))
    assert {number for number in range(8) if newcomer(f"n{number}") in there} == {0, 1, 5, 6, 7}


@pytest.mark.parametrize(("sent", "status"), [("", 401), ("wrong", 401), (TOKEN + "x", 401)])
def test_who_does_not_know_the_token_cannot_write(server: Server, sent: str, status: int) -> None:
    before = server.client.get("/ready").json()
    for method in ("POST", "DELETE"):
        answer = server.sent(method, "/facts", sent, facts=[["a", "b", "c"]])
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert TOKEN not in answer.text
    assert server.client.get("/ready").json() == before


@pytest.mark.parametrize("token", ["geheim-ä-à", "from a file\n"])
def test_any_token_can_be_sent_as_it_is(run: Path, token: str) -> None:
    with serving(run, *NEVER, token=token) as server:
        headers = {b"Authorization": f"Bearer {token.strip()}".encode()}
        for method in ("POST", "DELETE"):
            body = {"facts": [list(newcomer("neu"))]}
            answer = server.client.request(method, "/facts", json=body, headers=headers)
            assert answer.status_code == 200, answer.text
        assert server.client.post("/facts", json=body).status_code == 401


def test_without_a_token_nobody_can_write(run: Path) -> None:
    with serving(run, token="") as server:
        answer = server.add(newcomer("neu"))
        assert answer.status_code == 403 and "DICGRL_TOKEN" in answer.json()["detail"]


def test_the_process_that_learns_is_begun_anew_when_it_dies(run: Path) -> None:
    with serving(run, *SOON) as server:
        server.add(newcomer("one"))
        first = server.until_learned()
        children = children_of(server.process.pid or 0)
        if not children:
            pytest.skip("this system does not tell the children of a process")
        for child in children:
            os.kill(child, signal.SIGKILL)
        server.add(newcomer("two"))
        assert server.until_learned() > first
        assert server.knows(*newcomer("two"))


def test_what_is_said_again_while_others_arrive_waits_once(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As whoever got no answer from a server that was killed does."""
    with here(run) as server:
        asyncio.run(add_facts(server, [newcomer("neu")]))
        monkeypatch.setattr(server, "is_behind", lambda: True)  # others have just arrived
        told = asyncio.run(add_facts(server, [newcomer("neu")]))
    assert told["known"] == 1 and len(RunFolder(run).pending()) == 1


def counts(told: dict[str, Any], *names: str) -> tuple[int, ...]:
    return tuple(told[name] for name in names)


def test_edges_that_wait_are_taken_back_and_told_again(tmp_path: Path) -> None:
    """Nothing of a network that waits can be asked about; the queue says what will be known."""
    run = tmp_path / "network"
    taught(learner_of("nodes", "fresh"), 2, evaluate=False).save(run)
    new, old, never = ("n0", "n7"), ("n0", "n2"), ("n3", "n4")
    with here(run) as server:

        def add(*facts: tuple[str, ...]) -> tuple[int, ...]:
            return counts(asyncio.run(add_facts(server, list(facts))), "queued", "known")

        def forget(*facts: tuple[str, ...]) -> tuple[int, ...]:
            told = asyncio.run(forget_facts(server, list(facts)))
            return counts(told, "queued", "waiting", "unknown")

        assert add(new, new[::-1]) == (1, 0) and add(old) == (0, 1)
        assert add(("n3", "n3")) == (0, 0)
        told = asyncio.run(add_facts(server, [("n3", "n3"), old]))
        assert counts(told, "queued", "known", "self_loops") == (0, 1, 1)
        assert forget(new[::-1], old, never) == (2, 1, 1)
        assert forget(new, old, never) == (0, 0, 3)
        assert add(old[::-1]) == (1, 0), "it would have been forgotten"
        assert forget(old) == (1, 1, 0)
        assert add(new) == (1, 0) and forget(new) == (1, 1, 0)
    PendingLearner(run, device="cpu", evaluate="none").learn()
    with pytest.raises(UserError, match="nothing to forget"):
        Learner.load(run, device="cpu").retraction([new, old])


def test_facts_that_wait_beside_one_that_cannot_be_learned_are_taken_back(run: Path) -> None:
    """No answer takes the queue into account then."""
    old = facts_of(run)[0]
    with here(run) as server:
        with RunFolder(run).pending_writer() as writer:
            facts = [("of", "two"), newcomer("neu")]
            writer.add([Entry(LEARN, facts), Entry(FORGET, [old])])
        assert asyncio.run(server.caught_up())
        told = asyncio.run(forget_facts(server, [newcomer("neu")]))
        assert counts(told, "queued", "waiting", "unknown") == (1, 1, 0)
        assert asyncio.run(add_facts(server, [old]))["queued"] == 1
    PendingLearner(run, device="cpu", evaluate="none").learn()
    assert newcomer("neu") not in facts_of(run) and old in facts_of(run)


def test_a_folder_without_a_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no run here"):
        Serving(tmp_path / "nothing", ServeOptions(token=TOKEN))


def test_a_run_of_an_earlier_format_is_refused_with_a_word(tmp_path: Path) -> None:
    archive = Path(__file__).parents[1] / "store" / "released" / "run-3-links-dicgrl.tar.gz"
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    done = subprocess.run(
        [sys.executable, "-m", "dicgrl", "serve", str(folder), "--port", "0"],
        capture_output=True,
        text=True,
        env={**os.environ, "DICGRL_TOKEN": TOKEN},
        timeout=90,
    )
    assert done.returncode == 2 and "compact" in done.stderr
    shutil.rmtree(folder)

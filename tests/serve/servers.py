"""Servers in processes of their own, and how to talk to them."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import httpx

from tests.children import context, ended

TOKEN = "let-me-write"
_PATIENCE = 90.0  # seconds, on a busy machine


@dataclass
class Server:
    """A server that runs.

    Attributes:
        process: Its process.
        client: Talks to it.
        log: What it prints.
    """

    process: ForkServerProcess
    client: httpx.Client
    log: Path

    def post(self, path: str, token: str = "", **body: Any) -> httpx.Response:
        return self.sent("POST", path, token, **body)

    def sent(self, method: str, path: str, token: str = "", **body: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.client.request(method, path, json=body, headers=headers)

    def add(self, *facts: tuple[str, ...]) -> httpx.Response:
        return self.post("/facts", TOKEN, facts=[list(fact) for fact in facts])

    def forget(self, *facts: tuple[str, ...]) -> httpx.Response:
        return self.sent("DELETE", "/facts", TOKEN, facts=[list(fact) for fact in facts])

    def best(self, k: int = 1, **question: str) -> list[dict[str, Any]]:
        answer = self.post("/predict", questions=[question], k=k)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["answers"][0]
        return found

    def knows(self, head: str, relation: str, tail: str) -> bool:
        """Whether a fact counts as known; False where its labels are not."""
        question = {"head": head, "relation": relation}
        answer = self.post("/predict", questions=[question], among=[tail], k=1)
        if answer.status_code == 422:
            return False
        return any(one["known"] for one in answer.json()["answers"][0])

    def until_learned(self) -> int:
        """The version, once nothing waits."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            told = self.client.get("/ready").json()
            if not told["pending"]:
                return int(told["version"])
            time.sleep(0.05)
        raise AssertionError(f"facts still wait: {told}, {self.log.read_text()}")

    def kill(self) -> None:
        self.process.kill()
        ended(self.process)


def begin(
    run: Path, *options: str, token: str = TOKEN, shim: str = "", log: Path | None = None
) -> Server:
    """A server of a run, ready to be asked.

    Args:
        run: The folder.
        options: Further words of the command line.
        token: What whoever writes has to know.
        shim: Python that runs before the command.
        log: What it prints; beside the run for none.
    """
    process, printed = launched(run, *options, token=token, shim=shim, log=log)
    server = ready(process, printed)
    assert server is not None, printed.read_text()
    return server


def launched(
    run: Path, *options: str, token: str = TOKEN, shim: str = "", log: Path | None = None
) -> tuple[ForkServerProcess, Path]:
    """The process of a server that has just begun, and its log; as `begin` otherwise."""
    log = log or run.with_name(f"{run.name}.log")
    log.write_bytes(b"")
    words = ("serve", str(run), "--port", "0", "--device", "cpu", "--evaluate", "none", *options)
    process = context().Process(target=_main, args=(str(log), words, token, shim))
    process.start()
    return process, log


def ready(process: ForkServerProcess, log: Path) -> Server | None:
    """The server, as soon as it can be asked; None where its process ends before."""
    until = time.monotonic() + _PATIENCE
    while b"serving at " not in log.read_bytes():
        if not process.is_alive():
            return None
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.02)
    address = log.read_text().split("serving at ")[1].split()[0]
    return Server(process, httpx.Client(base_url=address, timeout=_PATIENCE), log)


def _main(log: str, words: tuple[str, ...], token: str, shim: str) -> None:
    from dicgrl.cli import main

    os.environ |= {"DICGRL_TOKEN": token, "OMP_NUM_THREADS": "1"}
    exec(shim, {})  # what a test lets go wrong
    sys.argv = ["dicgrl", *words]
    with open(log, "ab", buffering=0) as file:  # also of what C and other processes print
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    main()


@contextlib.contextmanager
def serving(run: Path, *options: str, token: str = TOKEN, shim: str = "") -> Iterator[Server]:
    """A server that ends in order after the block."""
    server = begin(run, *options, token=token, shim=shim)
    try:
        yield server
        if server.process.is_alive():
            server.process.terminate()
            assert ended(server.process) == 0, server.log.read_text()
    finally:
        server.kill()
        server.client.close()

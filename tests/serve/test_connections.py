"""Connections that ask nothing, or by halves, or too much: they end, and the server goes on."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.servers import Server, serving

SECONDS = 0.5
_PATIENCE = 60.0  # seconds, on a busy machine


@pytest.fixture(scope="module")
def hasty(run_to_copy: Path) -> Iterator[Server]:
    """A server that does not wait long."""
    with serving(run_to_copy, "--seconds", str(SECONDS), token="") as server:
        yield server


def connected(server: Server) -> socket.socket:
    url = server.client.base_url
    return socket.create_connection((url.host, url.port or 80), timeout=_PATIENCE)


def read_to_end(connection: socket.socket) -> bytes:
    """All that comes until the other end has closed; fails if it does not."""
    found = b""
    with connection:
        try:
            while piece := connection.recv(1 << 16):
                found += piece
        except ConnectionError:
            pass
    return found


def told(server: Server, *pieces: bytes) -> bytes:
    connection = connected(server)
    try:
        for piece in pieces:
            connection.sendall(piece)
    except ConnectionError:  # it has said no already
        pass
    return read_to_end(connection)


def post(path: str, length: int) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode()


@pytest.mark.parametrize(
    "half",
    [
        b"GET /hea",
        b"\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n",
        post("/score", 100) + b"{",
        post("/predict", 100) + b"{",
    ],
)
def test_half_a_request_is_not_waited_for(hasty: Server, half: bytes) -> None:
    found = told(hasty, half)
    assert found.startswith(b"HTTP/1.1 408 ") and b"application/problem+json" in found
    assert "Traceback" not in hasty.log.read_text()


def test_a_connection_on_which_nothing_is_asked_is_closed(hasty: Server) -> None:
    assert told(hasty) == b""


def test_a_refusal_is_not_said_twice(hasty: Server) -> None:
    found = told(hasty, post("/facts", 100) + b"{")
    assert found.startswith(b"HTTP/1.1 403 ") and found.count(b"HTTP/1.1") == 1


def test_a_head_without_an_end_is_refused(server: Server) -> None:
    begin = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: "
    found = told(server, begin, *[b"a" * (1 << 16)] * 200, b"\r\n\r\n")
    assert not found or found.startswith(b"HTTP/1.1 431 ")


def test_what_comes_after_a_body_is_bounded(server: Server) -> None:
    begin = b"POST /score HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    found = told(server, begin + b"2\r\n{}\r\n0\r\nX: ", *[b"a" * (1 << 20)] * 40, b"\r\n\r\n")
    assert not found or found.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("sent", [b"HELLO\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"])
def test_what_is_no_request_gets_a_problem(server: Server, sent: bytes) -> None:
    found = told(server, sent)
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and b"application/problem+json" in head
    assert json.loads(body)["status"] == 400


def test_there_are_not_too_many_connections(run_to_copy: Path) -> None:
    with serving(run_to_copy, "--most-connections", "3", token="") as server:
        held = [connected(server) for _ in range(3)]
        found = read_to_end(connected(server))
        assert found.startswith(b"HTTP/1.1 503 ") and b"too many connections" in found
        for connection in held:
            connection.close()
        until = time.monotonic() + _PATIENCE
        while not told(server, b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n").startswith(
            b"HTTP/1.1 200 "
        ):
            assert time.monotonic() < until


@pytest.mark.parametrize("path", ["/score", "/predict"])
def test_who_hangs_up_in_the_middle_is_no_failure(server: Server, path: str) -> None:
    name = f'dicgrl_requests_total{{path="{path}",method="POST",status="400"}}'
    with connected(server) as connection:
        connection.sendall(post(path, 100) + b"{")
    until = time.monotonic() + _PATIENCE
    while name not in (metrics := server.client.get("/metrics").text):
        assert time.monotonic() < until
    assert 'status="500"' not in metrics and "Traceback" not in server.log.read_text()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files by /proc")
def test_an_answer_that_nobody_reads_is_given_up(hasty: Server) -> None:
    def sockets() -> set[str]:
        return {_link(path) for path in Path(f"/proc/{hasty.process.pid}/fd").iterdir()}

    before = sockets()
    until = time.monotonic() + _PATIENCE
    with connected(hasty) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = json.dumps({"labels": ["e1"] * 1000}).encode()
        connection.sendall((post("/vectors", len(body)) + body) * 200)
        while not (mine := sockets() - before):
            assert time.monotonic() < until
        while mine & sockets():
            assert time.monotonic() < until
            time.sleep(0.05)


def _link(path: Path) -> str:
    try:
        found = os.readlink(path)
    except OSError:  # closed meanwhile
        return ""
    return found if found.startswith("socket:") else ""


def test_what_can_be_read_can_be_looked_at_without_its_content(server: Server) -> None:
    for path in ("/health", "/ready", "/entities", "/"):
        answer = server.client.head(path)
        assert answer.status_code == 200 and answer.content == b""


def test_an_address_that_is_none_is_not_found_whatever_is_asked(server: Server) -> None:
    for method in ("GET", "POST", "DELETE", "PATCH"):
        assert server.client.request(method, "/predicts").status_code == 404
        assert server.client.request(method, "/%ff%fe%00").status_code == 404
        assert server.client.request(method, "/" + "a" * 5000).status_code == 404
    assert server.client.post("/app.js").status_code == 405

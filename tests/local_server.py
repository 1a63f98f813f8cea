"""A real HTTP server on this machine that serves files from memory and misbehaves on demand."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

PATIENCE = 20.0  # seconds after which a hanging answer is given up, so that no test can stay


class LocalServer(ThreadingHTTPServer):
    """Serves `files` and keeps a record of every request.

    Attributes:
        files: Content by path, the leading slash included.
        faults: What to do wrong, by path: one entry is used up by each request.
        requests: Path and `Range` header of each request, in order.
        released: Set it to let hanging answers end.
    """

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = dict(files)
        self.faults: dict[str, list[str]] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.released = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is what some tests are about; print nothing."""


@contextlib.contextmanager
def serving(files: dict[str, bytes]) -> Iterator[LocalServer]:
    server = LocalServer(files)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = cast(LocalServer, self.server)
        wanted = self.headers.get("Range")
        server.requests.append((self.path, wanted))
        faults = server.faults.get(self.path, [])
        fault = faults.pop(0) if faults else ""
        if fault.isdigit():
            self.send_error(int(fault))
            return
        if fault == "silent":
            server.released.wait(PATIENCE)
            return
        if fault.startswith("redirect "):
            self.send_response(302)
            self.send_header("Location", fault.removeprefix("redirect "))
            self.end_headers()
            return
        if fault == "endless":
            self._send_without_end()
            return
        if self.path not in server.files:
            self.send_error(404)
            return
        content = server.files[self.path]
        if fault == "html":
            content, wanted = b"<!DOCTYPE html>\n<html><body>Please log in</body></html>\n", None
        if wanted is None or fault == "no range":
            self.send_response(200)
            body = content
        else:
            found = re.fullmatch(r"bytes=(\d+)-", wanted)
            assert found is not None
            start = int(found[1])
            if start >= len(content):
                self.send_error(416)
                return
            if fault == "other range":
                start //= 2
            end = (start + len(content)) // 2 if fault == "short range" else len(content)
            self.send_response(206)
            said = f"bytes {start}-{end - 1}/{len(content)}"
            if fault.startswith("range "):
                said = fault.removeprefix("range ")
            self.send_header("Content-Range", said)
            body = content[start:end]
        if fault.startswith("length "):
            self.send_header("Content-Length", fault.removeprefix("length "))
        elif fault != "cut, no length":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if fault in ("cut", "cut, no length", "hang"):
            body = body[: len(body) // 2]
        self.wfile.write(body)
        if fault == "hang":
            self.wfile.flush()
            server.released.wait(PATIENCE)

    def _send_without_end(self) -> None:
        """More than anybody should take: it stops when the client goes, or at a quarter GB."""
        self.send_response(200)
        self.end_headers()
        for _ in range(1 << 12):
            self.wfile.write(b"a\tb\tc\n" * 10_000)

    def log_message(self, *args: object) -> None:
        """Keep the output of the tests clean."""

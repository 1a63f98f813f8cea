"""Hostile requests, made from a server's own OpenAPI document.

Each is a request as it should be that is then spoilt: values of other kinds, absurd numbers,
missing and unknown fields, nesting, broken text, broken JSON, other methods and headers. A server
may refuse it (4xx) or answer it; it may not fail, nor tell anything of its machine.
`tests/serve/torture.py` sends ten thousand.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import socket
from collections import Counter
from typing import Any

import httpx

from tests.serve.servers import TOKEN, Server

_TEXTS = (
    *("", "e1", "plus 1", "e9999", "?", "seen", "tails:plus 1", "tails:nothing", "null", "0", "-1"),
    *("1", "1000", "\x00", "\t\n", "ä漢😀", "\ud800", "e1\u2028", "\u202e", "a" * 5000),
    *("../../etc/passwd", "%00", "' OR 1=1 --", "{{7*7}}", "<script>alert(1)</script>"),
)
_NUMBERS = (0, 1, -1, 3, 10**3, 10**6, 10**18, 10**19, -(10**30), 10**400, 0.5, 1e308, float("nan"),
            float("inf"))  # fmt: skip
_SMALL = 5000  # signs of a list that may be repeated
_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "FOO")


_OF_THE_PAGE = (
    *(("/api/pulse",), ("/api/run",), ("/api/search", "q", "k"), ("/api/entity", "label")),
    *(("/api/labels", "ids"), ("/api/map/1",), ("/api/map/99999999999",), ("/api/map/x",)),
    *(("/api/points",), ("/api/history",), ("/api/nights",), ("/",), ("/app.js",)),
)
"""What is in no document, and its parameters; maps themselves are made by another process."""
_RAW = (
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    b"GET /../../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    b"GET /..%2f..%2f..%2fetc%2fpasswd HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET //etc/passwd HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /\\..\\..\\x HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /%ff%fe%00 HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /app.js%00.html HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET http://elsewhere.example/ HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",
    b"CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: elsewhere.example:443\r\n\r\n",
    b"POST /predict HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n{}",
    b"POST /predict HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n\r\n{}",
    b"POST /predict HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\n"
    b"Content-Length: 2\r\n\r\n{}",
    b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"POST /facts HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
    b"Authorization: Bearer \xff\xfe\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
)
"""What no client library would send."""


class Fuzzer:
    """Makes requests.

    Args:
        document: The OpenAPI document.
        seed: Of what is made.
    """

    def __init__(self, document: dict[str, Any], seed: int = 0) -> None:
        self.chance = random.Random(seed)
        self.places = [
            (method.upper(), path, about)
            for path, methods in sorted(document["paths"].items())
            for method, about in sorted(methods.items())
        ] + [("GET", path, {"parameters": [{"name": name} for name in names]})
             for path, *names in _OF_THE_PAGE]  # fmt: skip

    def value(self, depth: int = 0) -> Any:
        """Anything that JSON can say, and a little that it cannot."""
        kinds = ["text", "number", "none", "truth"] + (["list", "object"] if depth < 4 else [])
        kind = self.chance.choice(kinds)
        if kind == "list":
            return [self.value(depth + 1) for _ in range(self.chance.choice((0, 1, 2, 3, 40)))]
        if kind == "object":
            return {self.chance.choice(_TEXTS): self.value(depth + 1) for _ in range(2)}
        if kind == "text":
            return self.chance.choice(_TEXTS)
        if kind == "number":
            return self.chance.choice(_NUMBERS)
        return None if kind == "none" else self.chance.random() < 0.5

    def spoilt(self, value: Any) -> Any:
        """A value in which something is another."""
        if isinstance(value, dict) and value and self.chance.random() < 0.9:
            found = dict(value)
            name = self.chance.choice(sorted(found))
            how = self.chance.random()
            if how < 0.1:
                del found[name]
            elif how < 0.2:
                found[self.chance.choice(_TEXTS)] = self.value()
            else:
                found[name] = self.spoilt(found[name])
            return found
        if isinstance(value, list) and value and self.chance.random() < 0.8:
            found = list(value)
            at = self.chance.randrange(len(found))
            how = self.chance.random()
            if how < 0.15:
                del found[at]
            elif how < 0.3 and len(json.dumps(found)) < _SMALL:  # else it would fill the memory
                found *= self.chance.choice((2, 50, 400))
            else:
                found[at] = self.spoilt(found[at])
            return found
        return self.value()

    def request(self) -> tuple[str, str, dict[str, Any]]:
        """A method, an address, and what httpx is given besides."""
        method, path, about = self.chance.choice(self.places)
        given: dict[str, Any] = {"headers": self.headers()}
        if "requestBody" in about:
            schema = about["requestBody"]["content"]["application/json"]["schema"]
            given["content"] = self.body(schema["examples"][0])
        else:
            names = [parameter["name"] for parameter in about.get("parameters", ())]
            pairs = [(name, self.text()) for name in names if self.chance.random() < 0.8]
            given["params"] = [
                *pairs,
                *([("x", self.text())] if self.chance.random() < 0.1 else []),
            ]
        if self.chance.random() < 0.05:
            method = self.chance.choice(_METHODS)
        if self.chance.random() < 0.03:
            path = self.chance.choice(
                ("/nothing", path + "/", "/..%2f..%2fetc/passwd", "/%00", "//")
            )
        return method, path, given

    def body(self, example: dict[str, Any]) -> bytes:
        found: Any = example
        for _ in range(self.chance.choice((0, 1, 1, 1, 2, 5))):
            found = self.spoilt(found)
        how = self.chance.random()
        if how < 0.03:
            return b"[" * 100_000
        if how < 0.06:
            return self.chance.randbytes(50)
        text = json.dumps(found, ensure_ascii=self.chance.random() < 0.5)
        content = text.encode("utf-8", "surrogatepass")
        return content[: self.chance.randrange(len(content) + 1)] if how < 0.12 else content

    def headers(self) -> dict[str, str]:
        tokens = (f"Bearer {TOKEN}", "Bearer x", "Basic eDp4", "", "Bearer", "Bearer " + "a" * 3000)
        found = {"Authorization": self.chance.choice((tokens[0], *tokens))}
        if self.chance.random() < 0.1:
            found["Content-Type"] = self.chance.choice(("text/plain", "application/xml", "a/b;c"))
        if self.chance.random() < 0.03:
            found["Host"] = self.chance.choice(("evil.example", "", "127.0.0.1:1", "["))
        return found

    def text(self) -> str:
        text = self.chance.choice((*_TEXTS, *map(str, _NUMBERS)))
        return text.encode("utf-8", "replace").decode()


def ask(server: Server, count: int, seed: int, secrets: tuple[str, ...]) -> Counter[int]:
    """Send so many requests; how often each status came.

    Raises:
        AssertionError: The server failed, or told something.
    """
    document = server.client.get("/openapi.json").json()
    fuzzer = Fuzzer(document, seed)
    found: Counter[int] = Counter()
    for number in itertools.count():
        if found.total() == count:
            break
        method, path, given = fuzzer.request()
        try:
            answer = server.client.request(method, path, **given)
        except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeError):
            continue  # no client would send it
        shown = (seed, number, method, path, str(given)[:500], answer.text[:500])
        assert answer.status_code < 500, shown
        for secret in (*secrets, "Traceback", 'File "', ".py"):
            assert path == "/openapi.json" or secret not in answer.text, (secret, shown)
        if answer.status_code >= 400 and method != "HEAD" and "json" in str(answer.headers):
            assert answer.headers["content-type"] == "application/problem+json", shown
            assert answer.json()["status"] == answer.status_code, shown
        found[answer.status_code] += 1
    return found


def ask_raw(server: Server, secrets: tuple[str, ...]) -> int:
    """Send what is hardly HTTP; how many were answered at all.

    Raises:
        AssertionError: The server failed, or told something.
    """
    found = 0
    place = (server.client.base_url.host, server.client.base_url.port or 80)
    for sent in _RAW:
        with socket.create_connection(place, 20) as connection:
            told = b""
            with contextlib.suppress(OSError):  # it closes what it does not want to hear
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
                while piece := connection.recv(1 << 16):
                    told += piece
        shown = (sent[:200], told[:500])
        head, _, body = told.decode("latin-1").partition("\r\n\r\n")
        assert not head or 200 <= int(head.split()[1]) < 500, shown
        if b"/app.js HTTP" not in sent and "text/javascript" not in head:
            for secret in (*secrets, "Traceback", 'File "', ".py", "root:"):
                assert secret not in body, (secret, shown)
        found += bool(head)
    return found

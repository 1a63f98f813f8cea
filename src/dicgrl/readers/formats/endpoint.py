"""Reads the answer of a SPARQL endpoint to a query, in any form that endpoints send.

The endpoint is asked once, by GET, or by POST if the query is long. A SELECT query has to return
head, relation and tail; CONSTRUCT and DESCRIBE return triples. The answer is read while it arrives.
It is refused if it is larger than an unpacked file may be, or if it breaks off.
"""

from __future__ import annotations

import base64
import gzip
import http.client
import io
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO, ClassVar, cast

from typing_extensions import override

from dicgrl.errors import FailureError, shown
from dicgrl.readers.bounds import BoundedStream, most_unpacked
from dicgrl.readers.formats import Format, format_of
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import Rows

_PATIENCE = 60.0  # seconds without a word from a server
_LONG = 2000  # signs of an address; some servers take no more
#: Our formats by what a server calls them, the one that is best read first.
_TABLES = {
    "application/sparql-results+json": "srj",
    "application/sparql-results+xml": "srx",
    "application/json": "srj",
    "application/xml": "srx",
    "text/xml": "srx",
    "text/plain": "srj",
    "application/octet-stream": "srj",
}
_TRIPLES = {
    "application/n-triples": "nt",
    "text/turtle": "ttl",
    "application/rdf+xml": "rdf",
    "application/n-quads": "nq",
    "application/trig": "trig",
    "application/ld+json": "jsonld",
    "application/x-turtle": "ttl",
    "application/xml": "rdf",
    "text/xml": "rdf",
    "text/plain": "nt",
    "application/octet-stream": "nt",
}
_WANTED = {True: 2, False: 3}  # how many of them are asked for


class Endpoint(Format):
    """The answer of an endpoint to the query of a `Reading`.

    Args:
        url: Address of the endpoint.
        is_table: Whether the query asks for a table (SELECT) rather than for triples.
    """

    endings: ClassVar = ()

    def __init__(self, url: str, *, is_table: bool) -> None:
        self.url = url
        self._kinds = _TABLES if is_table else _TRIPLES
        self._wanted = list(self._kinds)[: _WANTED[is_table]]

    @override
    def rows(self, file: SourceFile, width: int, exact: bool) -> Iterator[Rows]:
        format_of(self._answer(file, io.BytesIO(), self._kinds[self._wanted[0]]))  # heeds it all?
        stream, kind = _ask(self.url, file.label, file.reading.query, self._wanted, self._kinds)
        answer = self._answer(file, stream, kind)
        yield from format_of(answer).rows(answer, width, exact)

    def _answer(self, file: SourceFile, stream: BinaryIO, kind: str) -> SourceFile:
        """The answer as a file of the format that it has."""
        reading = replace(file.reading, format=kind, query="")
        return replace(file, opener=lambda: stream, reading=reading, reader=None, is_answer=True)


def _ask(
    url: str, label: str, query: str, wanted: list[str], kinds: dict[str, str]
) -> tuple[BinaryIO, str]:
    """Ask an endpoint; gives its answer to read, and the format of it."""
    rest = [f"{each};q={1 - number / 10:.1f}" for number, each in enumerate(wanted) if number]
    accept = ", ".join([wanted[0], *rest])
    form = urllib.parse.urlencode({"query": query})
    url, secret = _without_user(url)
    joined = f"{url}{'&' if '?' in url else '?'}{form}"
    headers = {"Accept": accept, "User-Agent": "dicgrl"}
    if len(joined) <= _LONG:
        request = urllib.request.Request(joined, headers=headers)
    else:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        request = urllib.request.Request(url, form.encode(), headers)
    if secret:  # for this server, and no other that it may point to
        request.add_unredirected_header("Authorization", f"Basic {secret}")
    try:
        response = urllib.request.urlopen(request, timeout=_PATIENCE)
    except urllib.error.HTTPError as error:
        said = _first_line(error)
        raise FailureError(f"{label}: the endpoint answered {error.code}{said}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise FailureError(f"{label}: the endpoint cannot be reached ({reason})") from error
    kind = response.headers.get_content_type()
    if kind not in kinds:
        response.close()
        expected = f"expected {' or '.join(wanted)}"
        raise FailureError(f"{label}: the endpoint sent {shown(kind)}; {expected}")
    answer = cast(BinaryIO, _Answer(response, label))
    packed = response.headers.get("Content-Encoding", "identity").lower()
    if packed == "gzip":  # though nobody asked for it
        answer = cast(BinaryIO, gzip.GzipFile(fileobj=answer))
    elif packed != "identity":
        response.close()
        raise FailureError(f"{label}: the endpoint sent it packed by {shown(packed)}")
    return cast(BinaryIO, BoundedStream(answer, label, most_unpacked())), kinds[kind]


def _without_user(url: str) -> tuple[str, str]:
    """A URL without the user in it, and what proves that one to be it (RFC 7617).

    Example:
        >>> _without_user("https://me:s%40fe@host/sparql")
        ('https://host/sparql', 'bWU6c0BmZQ==')
    """
    user, at, host = urllib.parse.urlsplit(url).netloc.rpartition("@")
    if not at:
        return url, ""
    name, _, word = user.partition(":")
    said = f"{urllib.parse.unquote(name)}:{urllib.parse.unquote(word)}"
    return url.replace(f"{user}@{host}", host, 1), base64.b64encode(said.encode()).decode()


class _Answer(io.RawIOBase):
    """A server's answer as a stream, which fails instead of ending if the transfer breaks off."""

    def __init__(self, response: Any, label: str) -> None:
        self._response, self._label = response, label
        length = response.headers.get("Content-Length", "")
        self._left = int(length) if length.isdecimal() and len(length) < 19 else None

    @override
    def read(self, size: int = -1) -> bytes:
        try:
            block: bytes = self._response.read(size) if size >= 0 else self._response.read()
        except (OSError, http.client.HTTPException) as error:
            raise FailureError(f"{self._label}: the response was cut off ({error})") from error
        if self._left is not None:
            self._left -= len(block)
            if not block and size and self._left > 0:
                raise FailureError(
                    f"{self._label}: the response was cut off, {self._left:,} bytes early"
                )
        return block

    @override
    def close(self) -> None:
        self._response.close()
        super().close()


def _first_line(error: urllib.error.HTTPError) -> str:
    """What a server says of an error, in a few words."""
    try:
        text = error.read(2000).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return ""
    if "<" in text:  # a page for people
        return ""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f": {shown(line[:200])}" if line else ""

"""Facts that lie elsewhere, by URL: a SPARQL endpoint, a database behind ADBC or SQLAlchemy.

An endpoint is asked once, by GET or, where the query is long, by POST; SELECT gives a table of
head, relation and tail, CONSTRUCT and DESCRIBE give triples. What comes is read as it comes, no
more of it than a file may unpack to, and an answer that ends early is refused.
"""

from __future__ import annotations

import base64
import gzip
import http.client
import io
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from typing_extensions import override

from dicgrl.errors import FailureError, UserError, shown
from dicgrl.readers.bounds import BoundedStream, most_unpacked
from dicgrl.readers.formats.adbc import PREFIX, Adbc
from dicgrl.readers.formats.database import Database
from dicgrl.readers.reading import Reading, as_reading
from dicgrl.readers.sources import SourceFile

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SECRET = re.compile(r"(//[^:/@]*):[^@/]*@")
_PATIENCE = 60.0  # seconds without a word from a server
_LONG = 2000  # signs of an address; some servers take no more
_COMMENTS = re.compile(r"<[^>]*>|\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*")
_FORM = re.compile(r"\b(select|construct|describe|ask)\b", re.IGNORECASE)
_TABLE = "application/sparql-results+json"
_TRIPLES = "application/n-triples"


def is_url(place: object) -> bool:
    """Whether a text is a URL rather than a path.

    Example:
        >>> is_url("https://query.wikidata.org/sparql"), is_url("facts.tsv")
        (True, False)
    """
    return _URL.match(str(place)) is not None


def short_name(place: str | Path) -> str:
    """What a path or a URL is called in a line, without a password.

    Example:
        >>> short_name("data/facts.tsv"), short_name("postgresql://me:secret@host/facts")
        ('facts.tsv', 'postgresql://me:***@host/facts')
    """
    text = str(place)
    return _SECRET.sub(r"\1:***@", text) if is_url(text) else Path(text).name


def remote_file(url: str, reading: Reading | None = None) -> SourceFile:
    """What a URL gives, as a file to read.

    Raises:
        UserError: The URL is of nothing that is read, or there is no query for it.
    """
    reading = as_reading(reading)
    scheme = url.partition(":")[0].lower()
    label = short_name(url)
    if scheme in ("http", "https"):
        return _endpoint(url, label, reading)
    if scheme in ("file", "ftp", "s3", "gs"):
        raise UserError(f"{label}: expected a path, an http or https address, or a database's URL")
    if scheme == "sqlite":  # the standard library reads it, and cannot write to it
        path = Path(url.split("://", 1)[1].removeprefix("/"))
        if not path.is_file():
            raise UserError(f"{path}: no such file")
        return SourceFile.on_disk(path, replace(reading, format="sqlite"))
    reader = Adbc(url) if url.lower().startswith(PREFIX) else Database(url)
    return SourceFile(label, io.BytesIO, reading, reader)


def _endpoint(url: str, label: str, reading: Reading) -> SourceFile:
    if not reading.query:
        raise UserError(
            f"{label}: say what to ask the endpoint, as in --query "
            "'SELECT ?head ?relation ?tail WHERE { ?head ?relation ?tail }'"
        )
    bare = _COMMENTS.sub(" ", reading.query)
    form = _FORM.search(bare)
    if form is None or form[1].lower() == "ask":
        raise UserError(f"--query {shown(reading.query)}: expected SELECT or CONSTRUCT")
    is_table = form[1].lower() == "select"
    accept, kind = (_TABLE, "srj") if is_table else (_TRIPLES, "nt")
    opener = partial(_ask, url, label, reading.query, accept)
    return SourceFile(label, opener, replace(reading, format=kind, query=""), is_answer=True)


def _ask(url: str, label: str, query: str, accept: str) -> BinaryIO:
    """Ask an endpoint; gives its answer to read."""
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
    if kind != accept and kind not in (
        "application/json",
        "text/plain",
        "application/octet-stream",
    ):
        response.close()
        raise FailureError(f"{label}: the endpoint sent {shown(kind)}; expected {accept}")
    answer = cast(BinaryIO, _Answer(response, label))
    packed = response.headers.get("Content-Encoding", "identity").lower()
    if packed == "gzip":  # though nobody asked for it
        answer = cast(BinaryIO, gzip.GzipFile(fileobj=answer))
    elif packed != "identity":
        response.close()
        raise FailureError(f"{label}: the endpoint sent it packed by {shown(packed)}")
    return cast(BinaryIO, BoundedStream(answer, label, most_unpacked()))


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
    """What a server sends; a transfer that breaks off is an error, and no early end."""

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

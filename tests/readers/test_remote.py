"""Facts that lie elsewhere: SPARQL endpoints, well and ill behaved, and databases by URL."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sqlite3
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dicgrl import DataError, FailureError, UserError, read_stream
from dicgrl.readers import Reading, read_part
from dicgrl.readers.remote import short_name
from tests.streams import labelled

FACTS = [("Alien", "genre", "horror"), ("Aliens", "follows", "Alien"), ("Aliens", "genre", "war")]
SELECT = "SELECT ?head ?relation ?tail WHERE { ?head ?relation ?tail }"
ACCEPTED = "application/sparql-results+json, application/sparql-results+xml;q=0.9"
IRIS = [tuple(f"http://x/{label}" for label in fact) for fact in FACTS]


def table() -> bytes:
    names = ("head", "relation", "tail")
    rows = [
        {name: {"type": "uri", "value": iri} for name, iri in zip(names, fact, strict=True)}
        for fact in IRIS
    ]
    answer = {"head": {"vars": list(names)}, "results": {"bindings": rows}}
    return json.dumps(answer).encode()


def triples() -> bytes:
    return "".join(f"<{h}> <{r}> <{t}> .\n" for h, r, t in IRIS).encode()


class Endpoint(ThreadingHTTPServer):
    """Answers every question in one way, and notes what it was asked."""

    daemon_threads = True
    answer: tuple[int, str, bytes] = (200, "application/sparql-results+json", b"")
    length: int | None = None
    others: dict[str, str] = {}  # noqa: RUF012 - replaced as a whole

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, str]] = []
        self.proved: str | None = None

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_GET(self) -> None:
        self.reply(urllib.parse.urlparse(self.path).query)

    def do_POST(self) -> None:
        self.reply(self.rfile.read(int(self.headers["Content-Length"])).decode())

    def reply(self, form: str) -> None:
        (query,) = urllib.parse.parse_qs(form)["query"]
        self.server.asked.append((self.command, query, self.headers["Accept"]))
        self.server.proved = self.headers["Authorization"]
        code, kind, body = self.server.answer
        self.send_response(code)
        self.send_header("Content-Type", kind)
        length = self.server.length
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in self.server.others.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Keep the output clean."""


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    pytest.importorskip("pyoxigraph")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(10)


def url_of(server: Endpoint) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/sparql?default-graph=x"


def read(server: Endpoint, query: str = SELECT, **others: Any) -> Any:
    stream = read_stream(url_of(server), reading=Reading(query=query, **others))
    return labelled(stream)[0]["train"]


def test_a_select_and_a_construct_give_facts(endpoint: Endpoint) -> None:
    endpoint.answer = (200, "application/sparql-results+json", table())
    assert read(endpoint) == IRIS
    part, _ = read_part(url_of(endpoint), reading=Reading(query=SELECT))
    assert part.facts == 3
    endpoint.answer = (200, "application/n-triples", triples())
    construct = "PREFIX select: <http://select#>\nCONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    construct = construct.replace("PREFIX select: <http://select#>\n", "# SELECT\n")
    assert read(endpoint, construct) == IRIS
    assert [how for how, _, _ in endpoint.asked] == ["GET"] * 3
    assert [query for _, query, _ in endpoint.asked] == [SELECT, SELECT, construct]
    assert endpoint.asked[0][2] == ACCEPTED
    assert endpoint.asked[2][2].startswith("application/n-triples, text/turtle;q=0.9")


@pytest.mark.parametrize("kind", ["application/sparql-results+xml", "application/xml", "text/xml"])
def test_a_table_may_come_as_xml(endpoint: Endpoint, kind: str) -> None:
    rows = "".join(
        "<result>"
        + "".join(
            f'<binding name="{name}"><uri>{iri}</uri></binding>'
            for name, iri in zip(("head", "relation", "tail"), fact, strict=True)
        )
        + "</result>"
        for fact in IRIS
    )
    head = "".join(f'<variable name="{name}"/>' for name in ("head", "relation", "tail"))
    space = 'xmlns="http://www.w3.org/2005/sparql-results#"'
    body = f"<sparql {space}><head>{head}</head><results>{rows}</results></sparql>".encode()
    endpoint.answer = (200, f"{kind}; charset=utf-8", body)
    assert read(endpoint) == IRIS
    endpoint.answer = (200, kind, body[:-40])
    with pytest.raises((FailureError, DataError), match=r"^http://127\.0\.0\.1"):
        read(endpoint)


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("text/turtle", "TURTLE"),
        ("application/rdf+xml", "RDF_XML"),
        ("application/n-quads", "N_QUADS"),
        ("application/trig", "TRIG"),
        ("application/ld+json", "JSON_LD"),
    ],
)
def test_triples_may_come_in_any_format_of_rdf(endpoint: Endpoint, kind: str, form: str) -> None:
    rdf = pytest.importorskip("pyoxigraph")
    facts = [rdf.Triple(*map(rdf.NamedNode, fact)) for fact in IRIS]
    body = rdf.serialize(facts, format=getattr(rdf.RdfFormat, form))
    endpoint.answer = (200, kind, body)
    construct = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    assert sorted(read(endpoint, construct)) == sorted(IRIS)
    with pytest.raises(FailureError, match=f"sent '{re.escape(kind)}'; expected application/sp"):
        read(endpoint)


def test_a_long_query_is_posted_and_columns_are_named(endpoint: Endpoint) -> None:
    endpoint.answer = (200, "application/sparql-results+json", table())
    query = SELECT + " # " + "x" * 3000
    assert read(endpoint, query) == IRIS
    assert endpoint.asked == [("POST", query, ACCEPTED)]
    turned = read(endpoint, columns="tail,relation,head")
    assert turned == [(t, r, h) for h, r, t in IRIS]


@pytest.mark.parametrize(
    ("answer", "length", "said"),
    [
        (
            (500, "text/plain", b"MalformedQueryException: line 1\nat ..."),
            None,
            "answered 500: 'Mal",
        ),
        ((404, "text/html", b"<html>"), None, "the endpoint answered 404"),
        ((200, "text/html", b"<html>log in</html>"), None, "sent 'text/html'; expected"),
        ((200, "application/json", b"{}"), 10**30, "cannot be read|was cut off|not a table|JSON"),
        ((200, "application/json", table()[:-40]), None, "."),
        (
            (200, "application/json", table()[:-40]),
            len(table()),
            "was cut off, 40 bytes early|end of",
        ),
        ((200, "application/json", b""), None, "."),
        ((200, "application/json", b'{"head": {}, "boolean": true}'), None, "not a table"),
        ((200, "application/json", b"[" * 10_000), None, "."),
    ],
)
def test_what_misbehaving_servers_send_is_one_message(
    endpoint: Endpoint, answer: tuple[int, str, bytes], length: int | None, said: str
) -> None:
    endpoint.answer, endpoint.length = answer, length
    with pytest.raises((FailureError, DataError), match=said) as raised:
        read(endpoint)
    assert str(raised.value).startswith("http://127.0.0.1:") and "\n" not in str(raised.value)


@pytest.mark.parametrize("body", [table()[:-40], b"", b"hello", b"[" * 10_000])
def test_what_is_not_well_formed_is_the_failure_of_the_server(
    endpoint: Endpoint, body: bytes
) -> None:
    """Exit code 1: it may be better tomorrow; the question is not wrong."""
    endpoint.answer = (200, "application/sparql-results+json", body)
    with pytest.raises(FailureError, match="sent what is not well formed"):
        read(endpoint)


def test_a_name_and_a_password_in_the_url_are_told_to_the_server_alone(endpoint: Endpoint) -> None:
    endpoint.answer = (200, "application/sparql-results+json", table())
    place = url_of(endpoint).replace("//", "//me:s%40fe@")
    stream = read_stream(place, reading=Reading(query=SELECT))
    assert labelled(stream)[0]["train"] == IRIS and "s%40fe" not in stream.name
    assert endpoint.proved == "Basic " + base64.b64encode(b"me:s@fe").decode()
    read(endpoint)
    assert endpoint.proved is None


def test_an_answer_may_be_packed(endpoint: Endpoint) -> None:
    endpoint.answer = (200, "application/sparql-results+json", gzip.compress(table()))
    endpoint.others = {"Content-Encoding": "gzip"}
    assert read(endpoint) == IRIS
    endpoint.others = {"Content-Encoding": "br"}
    with pytest.raises(FailureError, match="packed by 'br'"):
        read(endpoint)


def test_triples_that_break_off_between_lines_are_noticed(endpoint: Endpoint) -> None:
    body = triples()
    cut = body.index(b"\n") + 1
    endpoint.answer, endpoint.length = (200, "application/n-triples", body[:cut]), len(body)
    with pytest.raises(FailureError, match=f"was cut off, {len(body) - cut} bytes early"):
        read(endpoint, "CONSTRUCT WHERE { ?s ?p ?o }")


def test_an_answer_is_bounded(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICGRL_MAX_UNPACKED", "1e-7")
    endpoint.answer = (200, "application/sparql-results+json", table())
    with pytest.raises(DataError, match=r"holds more than 1e-07 GB"):
        read(endpoint)


@pytest.mark.parametrize(
    ("url", "query", "said"),
    [
        ("http://127.0.0.1:1/x", "", "say what to ask the endpoint, as in --query 'SELECT"),
        ("http://127.0.0.1:1/x", "ASK { ?s ?p ?o }", "expected SELECT or CONSTRUCT"),
        ("http://127.0.0.1:1/x", "nothing", "expected SELECT or CONSTRUCT"),
        ("ftp://host/x", SELECT, "expected a path, an http or https address"),
        ("sqlite:///missing.db", "", r"missing\.db: no such file"),
        ("sqlite+pysqlite:///missing.db", "", r"missing\.db: no such file"),
        ("nonsense://x", "", "SQLAlchemy knows no such database"),
        ("adbc+sqlite:///missing.db", "", r"missing\.db: no such file"),
        (
            "adbc+sqlite3:///missing.db",
            "",
            "its driver is missing: pip install adbc-driver-sqlite3",
        ),
        ("adbc+://missing.db", "", r"expected adbc\+DRIVER://"),
    ],
)
def test_urls_that_cannot_be_meant(url: str, query: str, said: str) -> None:
    if url.startswith("adbc"):
        pytest.importorskip("adbc_driver_sqlite")
    elif "+" in url or url.startswith("nonsense"):
        pytest.importorskip("sqlalchemy")
    with pytest.raises(UserError, match=said):
        read_stream(url, reading=Reading(query=query))
    assert not Path("missing.db").exists()


def test_a_server_that_is_away_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(FailureError, match="the endpoint cannot be reached"):
        read_stream("http://127.0.0.1:1/x", reading=Reading(query=SELECT))


class TestDatabases:
    @pytest.fixture(params=["sqlite:///", "sqlite+pysqlite:///", "adbc+sqlite:///"])
    def url(self, request: pytest.FixtureRequest, tmp_path: Path) -> str:
        if "+" in request.param:
            needed = "adbc_driver_sqlite" if "adbc" in request.param else "sqlalchemy"
            pytest.importorskip(needed)
        with sqlite3.connect(tmp_path / "x.db") as database:
            database.execute("CREATE TABLE facts (head TEXT, relation TEXT, tail TEXT, n REAL)")
            database.executemany("INSERT INTO facts VALUES (?, ?, ?, 1.5)", FACTS)
        return f"{request.param}{tmp_path / 'x.db'}"

    def test_the_only_table_or_a_query(self, url: str) -> None:
        assert labelled(read_stream(url))[0]["train"] == FACTS
        query = "SELECT tail o, 'a:b %s' p, head s FROM facts WHERE relation LIKE 'gen%'"
        found = labelled(read_stream(url, reading=Reading(query=query)))[0]["train"]
        assert found == [("Alien", "a:b %s", "horror"), ("Aliens", "a:b %s", "war")]

    @pytest.mark.parametrize(
        ("query", "said"),
        [
            ("SELECT * FROM others", "no such table: others"),
            ("SELECT head FROM facts", "the columns are 'head'; say which"),
            (
                "SELECT head, relation, n AS tail FROM facts",
                "'1.5' is not a label|column 'tail' has the type double",
            ),
            (
                "SELECT head, relation, NULL AS tail FROM facts",
                "a value is empty|column 'tail' is empty",
            ),
            ("SELECT head, relation, tail FROM facts WHERE 0", "the query has no answers"),
            ("DELETE FROM facts", "expected a query that answers|attempt to write|readonly"),
        ],
    )
    def test_wrong_queries_change_nothing(self, url: str, query: str, said: str) -> None:
        with pytest.raises(DataError, match=said) as raised:
            read_stream(url, reading=Reading(query=query))
        assert "\n" not in str(raised.value)
        assert labelled(read_stream(url))[0]["train"] == FACTS


def test_passwords_are_not_printed() -> None:
    assert short_name("postgresql://me:secret@host:5432/x") == "postgresql://me:***@host:5432/x"
    pytest.importorskip("sqlalchemy")
    with pytest.raises((UserError, FailureError)) as raised:
        read_stream("postgresql://me:secret@127.0.0.1:1/x", reading=Reading(query="SELECT 1"))
    assert "secret" not in str(raised.value)

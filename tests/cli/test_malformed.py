"""Hundreds of malformed files: each is one message with file and place, code 2, and nothing else.

Every file is a good one of 40 facts with one thing wrong at a place by chance, which no reader can
take for something else.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dicgrl.readers.formats import Format
from tests.cli.helpers import Cli, refused, tree

pytestmark = pytest.mark.usefixtures("own_folder")

Rows = list[tuple[str, str, str]]
FACTS: Rows = [(f"e{i}", f"relation {i % 3}", f"e{i + 1}") for i in range(40)]
IRIS: Rows = [tuple(f"http://x/{label.replace(' ', '_')}" for label in fact) for fact in FACTS]  # type: ignore[misc]
EACH = 5  # files of each kind of damage
WHOLE = 3  # of those that are damaged as a whole


TEXT: dict[str, Callable[[str], str]] = {
    "a field too few": lambda line: re.split(r"[\t,]", line)[0],
    "a field too many": lambda line: f"{line}{'' if ',' in line else chr(9)},x,y".replace(
        "\t,", "\t"
    ),
    "an empty field": lambda line: re.sub(r"[^\t,]+$", "", line),
    "a control character": lambda line: f"a{chr(7)}{line}",
    "no UTF-8": lambda line: f"\udcff{line}",
    "a blank line": lambda line: f"\n{line}",
}
JSON: dict[str, Callable[[str], str]] = {
    "it ends early": lambda line: line[: len(line) // 2],
    "a key is missing": lambda line: line.replace('"tail"', '"tale"'),
    "a number is broken": lambda line: re.sub(r'"tail": ".*"', '"tail": 1.5', line),
    "an empty label": lambda line: re.sub(r'"tail": ".*"', '"tail": ""', line),
    "nothing": lambda line: re.sub(r'"tail": ".*"', '"tail": null', line),
    "a list": lambda line: f"[{len(line)}, 2, 3]",
    "a TAB": lambda line: line.replace('"head": "', '"head": "\\t'),
}
TRIPLES: dict[str, Callable[[str], str]] = {
    "it ends early": lambda line: line[: line.rindex(">") - 2],
    "a part is missing": lambda line: re.sub(r" <\S+> \.", " .", line, count=1),
    "a space in an IRI": lambda line: line.replace("<http://x/", "<http://x/ ", 1),
    "nonsense": lambda line: f"?? {line}",
    "no end": lambda line: line.replace(" .", " <http://x/y> <http://x/z> ,"),
}


def lines_of(name: str) -> list[str]:
    place = Path(f"good.{name}")
    rows = IRIS if name in ("nt", "nq", "ttl", "trig") else FACTS
    Format.registry[f".{name}"].write(place, [rows])
    text = place.read_text(encoding="utf-8")
    place.unlink()
    return text.removesuffix("\n").split("\n")


def texts() -> Iterator[tuple[str, str, Callable[[str], str]]]:
    for names, kinds in (
        (("tsv", "txt", "csv"), TEXT),
        (("jsonl", "ndjson"), JSON),
        (("nt", "nq"), TRIPLES),
    ):
        for name in names:
            for kind, change in kinds.items():
                yield name, kind, change


def refuse(cli: Cli, place: Path, *said: str) -> str:
    before = tree()
    outcome = cli("datasets", "convert", place, "--out", "made")
    assert outcome.err.count("\n") == 1, outcome.err
    refused(outcome, f"error: {place}", *said)
    assert tree() == before  # nothing was written, half or whole
    return outcome.err


@pytest.mark.parametrize(("name", "kind", "change"), list(texts()))
def test_text_with_a_wrong_line(
    cli: Cli, name: str, kind: str, change: Callable[[str], str]
) -> None:
    if name in ("nt", "nq"):
        pytest.importorskip("pyoxigraph")
    chance = random.Random(f"{name} {kind}")
    good = lines_of(name)
    for number in range(EACH):
        lines = list(good)
        line = chance.randrange(2, len(lines) - 1)
        lines[line] = change(lines[line])
        place = Path(f"{number}.{name}")
        content = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
        if chance.random() < 0.3:
            place = Path(f"{number}.{name}.gz")
            content = gzip.compress(content)
        place.write_bytes(content)
        off = {"no end": 2, "it ends early": 1}.get(kind, 0) if name in ("nt", "nq") else 0
        said = refuse(cli, place)
        found = re.match(rf"error: {re.escape(str(place))}:(\d+): ", said)
        assert found and line + 1 <= int(found[1]) <= line + 1 + off, said


def binary(name: str) -> bytes:
    place = Path(f"good.{name}")
    Format.registry[f".{name}"].write(place, [IRIS if name in ("rdf", "ttl", "trig") else FACTS])
    content = place.read_bytes()
    place.unlink()
    return content


@pytest.mark.parametrize(
    "name", ["parquet", "pq", "arrow", "feather", "ipc", "rdf", "owl", "jsonld"]
)
@pytest.mark.parametrize("kind", ["cut", "begins otherwise", "empty", "something else"])
def test_files_that_are_damaged_as_a_whole(cli: Cli, name: str, kind: str) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("pyoxigraph")
    chance = random.Random(f"{name} {kind}")
    if name == "jsonld":
        node = [{"@id": h, r: [{"@id": t}]} for h, r, t in IRIS]
        good = json.dumps(node).encode()
    else:
        good = binary({"owl": "rdf"}.get(name, name))
    if name in ("parquet", "pq") and kind == "begins otherwise":
        kind = "ends otherwise"  # such a file is read from its end
    for number in range(WHOLE):
        place = Path(f"{number}.{name}")
        content = {
            "cut": good[: chance.randrange(1, len(good) * 9 // 10)],
            "begins otherwise": b"\x00\x01" + good[2:],
            "ends otherwise": good[:-4] + b"\x00\x01\x02\x03",
            "empty": b"",
            "something else": chance.randbytes(200),
        }[kind]
        place.write_bytes(content)
        refuse(cli, place)


@pytest.mark.parametrize("name", ["parquet", "arrow"])
@pytest.mark.parametrize("kind", ["nothing", "empty", "numbers", "missing", "a TAB"])
def test_columns_that_hold_something_else(cli: Cli, name: str, kind: str) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet, feather = (pytest.importorskip(f"pyarrow.{x}") for x in ("parquet", "feather"))
    chance = random.Random(f"{name} {kind}")
    for number in range(EACH):
        row = chance.randrange(len(FACTS))
        columns = {
            role: [fact[i] for fact in FACTS] for i, role in enumerate(("head", "relation", "tail"))
        }
        role = chance.choice(list(columns))
        values: list = columns[role]
        if kind == "numbers":
            columns[role] = [0.5] * len(FACTS)  # type: ignore[list-item]
        elif kind == "missing":
            columns["other"] = columns.pop(role)
        else:
            values[row] = {"nothing": None, "empty": "", "a TAB": "a\tb"}[kind]
        place = Path(f"{number}.{name}")
        table = arrow.table(columns)
        if name == "parquet":
            parquet.write_table(table, place)
        else:
            feather.write_feather(table, str(place))
        said = f"{place}:{row + 1}: column '{role}'" if kind in ("nothing", "empty") else "'"
        refuse(cli, place, said)


@pytest.mark.parametrize("kind", ["no database", "nothing", "empty", "a number", "no column"])
def test_databases_that_hold_something_else(cli: Cli, kind: str) -> None:
    chance = random.Random(kind)
    for number in range(EACH):
        row = chance.randrange(len(FACTS))
        place = Path(f"{number}.db")
        if kind == "no database":
            place.write_bytes(b"no database" + chance.randbytes(100))
        else:
            wrong = {"nothing": None, "empty": "", "a number": 1.5}.get(kind, "x")
            rows = [list(fact) for fact in FACTS]
            rows[row][chance.randrange(3)] = wrong  # type: ignore[call-overload]
            last = "other" if kind == "no column" else "tail"
            with sqlite3.connect(place) as database:
                database.execute(f"CREATE TABLE facts (head, relation, {last})")
                database.executemany("INSERT INTO facts VALUES (?, ?, ?)", rows)
            database.close()
        refuse(cli, place, *([f":{row + 1}: "] if kind in ("nothing", "empty", "a number") else []))


@pytest.mark.parametrize("kind", ["cut", "a value is missing", "another type", "no table"])
def test_answers_of_queries_that_are_none(cli: Cli, kind: str) -> None:
    pytest.importorskip("pyoxigraph")
    chance = random.Random(kind)
    names = ("head", "relation", "tail")
    for number in range(EACH):
        rows = [
            {name: {"type": "uri", "value": iri} for name, iri in zip(names, fact, strict=True)}
            for fact in IRIS
        ]
        row, role = chance.randrange(len(rows)), chance.choice(names)
        if kind == "a value is missing":
            del rows[row][role]
        if kind == "another type":
            rows[row][role]["type"] = "film"
        answer: dict = {"head": {"vars": names}, "results": {"bindings": rows}}
        if kind == "no table":
            answer = {"head": {}, "boolean": True}
        text = json.dumps(answer)
        place = Path(f"{number}.srj")
        place.write_text(text[: chance.randrange(1, len(text) - 3)] if kind == "cut" else text)
        refuse(cli, place)


def test_there_are_hundreds_of_them() -> None:
    count = EACH * len(list(texts())) + WHOLE * 8 * 4 + EACH * (2 * 5 + 5 + 4)
    assert count >= 300

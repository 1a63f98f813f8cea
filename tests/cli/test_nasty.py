"""Every command that reads facts of a run, given what is no facts: one message, nothing changed."""

from __future__ import annotations

import bz2
import gzip
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.helpers import LINKS, Cli, graph_file, refused, tree

FACT = b"e1\tr1\te2\n"


def sqlite(place: Path) -> None:
    with sqlite3.connect(place) as database:
        database.execute("CREATE TABLE facts (head, relation, tail)")


def parquet(place: Path) -> None:
    pytest.importorskip("pyarrow.parquet")
    from dicgrl.readers.formats import format_named

    format_named("parquet").write(place, [[("e1", "r1", "e2")] * 9])


def bytes_of(content: bytes) -> Callable[[Path], None]:
    return lambda place: (place.write_bytes(content), None)[1]


TEXT, PACKED = "x.tsv", "x.tsv.gz"
NOT = ":1: not UTF-8 text: "
#: Name of the file, what makes it, and what is said after its name.
NASTY: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "UTF-16": (TEXT, bytes_of("e1\tr1\te2\n".encode("utf-16")), NOT + "it is UTF-16"),
    "gzip called text": (TEXT, bytes_of(gzip.compress(FACT)), NOT + "it is compressed by gzip"),
    "bzip2": (TEXT, bytes_of(bz2.compress(FACT)), NOT + "it is compressed by bzip2"),
    "Parquet called text": (TEXT, parquet, ":1: "),
    "a database called text": (TEXT, sqlite, ":1: "),
    "gzip that breaks off": (
        PACKED,
        bytes_of(gzip.compress(FACT * 9)[:-9]),
        ": damaged compressed",
    ),
    "no gzip": (PACKED, bytes_of(FACT), ": damaged compressed file"),
    "a NUL": (TEXT, bytes_of(b"e1\tr1\te\x002\n"), ":1: 'e\\x002'"),
    "line ends of old": (TEXT, bytes_of(b"e1\tr1\te2\re1\tr1\te3\r"), ":1: "),
    "a long line": (
        TEXT,
        bytes_of(b"e\tr\t" + b"x" * (17 << 20) + b"\n"),
        ":1: the line is longer",
    ),
    "nothing": (TEXT, bytes_of(b""), ": the file is empty"),
    "a picture": (TEXT, bytes_of(b"\x89PNG\r\n\x1a\n\0"), NOT + "byte 0x89"),
    "a folder": (TEXT, lambda place: place.mkdir(), ": "),
    "a link to nowhere": (TEXT, lambda place: place.symlink_to("nowhere"), ": no such file"),
    "a link to itself": (TEXT, lambda place: place.symlink_to(place.name), ": no such file"),
    "a file as a folder": (f"{PACKED}/x", lambda place: place.parent.touch(), ": no such file"),
}
#: How a command is given a file.
COMMANDS: dict[str, tuple[str, ...]] = {
    "learn": ("learn", "run", "FILE"),
    "nightly": ("nightly", "run", "FILE"),
    "forget": ("forget", "run", "FILE"),
    "replace": ("replace", "run", "FILE", "graph.tsv"),
    "replace by": ("replace", "run", "graph.tsv", "FILE"),
    "score": ("score", "run", "FILE"),
    "evaluate": ("evaluate", "run", "FILE"),
    "predict": ("predict", "run", "--file", "FILE"),
    "rename": ("rename", "run", "--file", "FILE"),
    "merge": ("merge", "run", "--file", "FILE"),
}


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph and a run of it."""
    from dicgrl import run

    folder = tmp_path_factory.mktemp("nasty")
    before = Path.cwd()
    os.chdir(folder)
    try:
        graph_file()
        run("graph.tsv", out="run", device="cpu", epochs=1, dim=4, batch=64)
    finally:
        os.chdir(before)
    return folder


@pytest.mark.parametrize("kind", NASTY)
def test_every_command_refuses_it_with_one_message(
    cli: Cli, learned: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(learned)
    name, make, said = NASTY[kind]
    place = Path(name)
    for left in (Path(TEXT), Path(PACKED)):
        if left.is_dir():
            left.rmdir()
        left.unlink(missing_ok=True)
    make(place)
    before = tree()
    for words in COMMANDS.values():
        outcome = cli(*(name if word == "FILE" else word for word in words))
        refused(outcome, f"error: {name}{said}", one_line=kind != "a folder")
        assert _facts(tree()) == _facts(before), words


def _facts(found: dict[str, bytes | None]) -> dict[str, bytes | None]:
    """What is there but for the lock."""
    return {
        name: content for name, content in found.items() if not name.endswith((".lock", "-shm"))
    }


def test_an_empty_path_is_not_this_folder(
    cli: Cli, learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(learned)
    for command in ("learn", "nightly", "forget"):
        refused(cli(command, "run", ""), "the path of the data is empty")


def test_marks_and_ends_of_other_systems_do_not_matter(cli: Cli, own_folder: Path) -> None:
    pytest.importorskip("pyoxigraph")
    rows = [f"{h}\tr\t{t}" for h, t in ("ab", "bc", "ca")]
    triples = [f"<http://x/{h}> <http://x/r> <http://x/{t}> ." for h, t in ("ab", "bc", "ca")]
    for name, lines in (("x.tsv", rows), ("x.nt", triples), ("x.ttl", triples)):
        Path(name).write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n")
        outcome = cli("run", name, *LINKS, "--out", f"run-{name}", "--json")
        assert outcome.code == 0, outcome
        assert '"new_examples": 3' in outcome.out

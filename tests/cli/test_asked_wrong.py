"""Questions that cannot be answered, and runs that are damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.helpers import DICGRL, Cli, refused
from tests.stores import edited

pytestmark = pytest.mark.usefixtures("trained_runs_here")

ASKED = ("predict", "plain", "--head", "e1", "--relation", "plus 1")
ASKED_WRONG = {
    "nothing": (("predict", "plain"), ("exactly one",)),
    "everything": (
        ("predict", "plain", "--head", "e1", "--relation", "plus 1", "--tail", "e2"),
        ("exactly one",),
    ),
    "head": (
        ("predict", "plain", "--head", "e77", "--relation", "plus 1"),
        ("unknown entity 'e77'", "did you mean 'e7'"),
    ),
    "relation": (
        ("predict", "plain", "--head", "e1", "--relation", "plus"),
        ("unknown relation 'plus'", "'plus 1'"),
    ),
    "none at all": (("predict", "plain", "--head", "e1", "--relation", "plus 1", "-k", "0"), "-k"),
    "node of links": (("predict", "plain", "--node", "e1"), ("node is for networks",)),
    "new classes": (("predict", "nodes", "--node", "n1", "--new"), ("node alone",)),
    "head of nodes": (("predict", "nodes", "--head", "n1"), ("node alone",)),
    "unknown node": (("predict", "nodes", "--node", "n77"), ("unknown node 'n77'", "'n7'")),
    "among: no file": (
        (*ASKED, "--among", "nowhere.txt"),
        ("--among nowhere.txt: no such file; expected a file of labels, seen, heads:RELATION",),
    ),
    "among: a folder": ((*ASKED, "--among", "ring"), ("ring: is a folder", "expected a file")),
    "among: triples": ((*ASKED, "--among", "ring/0/test.txt"), ("test.txt:1: expected 1 field",)),
    "among: relation": (
        (*ASKED, "--among", "tails:plus"),
        ("unknown relation 'plus'", "'plus 1'"),
    ),
    "among: relations": (
        ("predict", "plain", "--head", "e1", "--tail", "e2", "--among", "seen"),
        ("this question asks for the relation",),
    ),
    "among: nodes": (("predict", "nodes", "--node", "n1", "--among", "seen"), ("--among", "nodes")),
    "no run": (("predict", "ring", "--head", "e1"), ("ring: no run here",)),
    "no folder": (("predict", "nowhere", "--head", "e1"), ("nowhere: no run here",)),
    "score: no file": (("score", "plain", "nothing.tsv"), ("nothing.tsv: no such file",)),
    "score: a folder": (("score", "plain", "ring"), ("ring", "file")),
    "score: a picture": (("score", "plain", "plain/curves.png"), ("curves.png:1", "UTF-8")),
    "score: a table": (("score", "plain", "circles/edges.csv"), ("edges.csv:1", "3 fields")),
    "score: nodes": (("score", "nodes", "ring/0/test.txt"), ("classifies nodes",)),
    "explain: unknown": (
        ("explain", "divided", "--triple", "e1", "plus 1", "e77"),
        ("unknown entity 'e77'", "did you mean 'e7'"),
    ),
    "explain: nearly a name": (
        ("explain", "divided", "--triple", "Numer One", "plus 1", "e3"),
        ("unknown entity 'Numer One'", "did you mean 'Number One'"),
    ),
    "explain: relation": (
        ("explain", "divided", "--triple", "e1", "Number One", "e3"),
        ("unknown relation 'Number One'\n",),
    ),
    "predict: nearly a name": (
        ("predict", "divided", "--head", "number one", "--relation", "plus 1"),
        ("unknown entity 'number one'", "did you mean 'Number One'"),
    ),
    "explain: nodes": (("explain", "nodes", "--triple", "a", "b", "c"), ("classifies nodes",)),
    "explain: two": (("explain", "divided", "--triple", "e1", "plus 1"), ("--triple", "3")),
    "explain: nothing": (("explain", "divided"), ("--triple",)),
    "export: there": (("export", "plain", "--to", "ring"), ("ring", "already")),
    "export: in a file": (
        ("export", "plain", "--to", "ring/0/test.txt/x"),
        ("ring/0/test.txt: is a file; expected a folder",),
    ),
    "export: nowhere": (("export", "plain"), ("--to",)),
    "compare: nothing": (("compare",), ("RUN",)),
    "compare: tasks": (("compare", "plain", "nodes"), ("different tasks",)),
    "compare: no run": (("compare", "plain", "ring"), ("ring: no run here",)),
    "compare: merged": (("compare", "plain", "merged"), ("part by part",)),
    "compare: picture": (("compare", "plain", "--out", "x.bmp"), ("x.bmp", ".png, .svg or .pdf")),
}


@pytest.mark.parametrize("name", ASKED_WRONG)
def test_a_wrong_question_is_one_message(cli: Cli, name: str) -> None:
    words, mentioned = ASKED_WRONG[name]
    before = sorted(Path().iterdir())
    refused(cli(*words), *mentioned)
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        (verb, name)
        for verb in ("predict", "score", "export", "explain", "run")
        for name in ("configuration", "report", "tensors")
    ]
    + [(verb, name) for verb in ("compare", "info") for name in ("configuration", "report")],
)
def test_a_damaged_run_is_refused_by_every_command(cli: Cli, verb: str, name: str) -> None:
    shutil.copytree("divided/", "damaged")
    if name == "tensors":
        for path in Path("damaged/tensors").iterdir():
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 4
            path.write_bytes(content)
    else:  # one digit more
        table, column = {"configuration": ("about", "config"), "report": ("versions", "report")}[
            name
        ]
        with edited("damaged") as database:
            text = f"replace({column}, ':0', ':10')"
            database.connection.execute(f"UPDATE {table} SET {column} = {text}")
    words = {
        "predict": ("predict", "damaged", "--head", "e1", "--relation", "plus 1"),
        "score": ("score", "damaged", "ring/0/test.txt"),
        "export": ("export", "damaged", "--to", "never"),
        "explain": ("explain", "damaged", "--triple", "e1", "plus 1", "e2"),
        "info": ("info", "damaged"),
        "compare": ("compare", "damaged", "--out", "never.png"),
        "run": ("run", "ring", *DICGRL, "--out", "damaged", "--resume"),
    }[verb]
    refused(cli(*words), "damaged")
    assert not Path("never").exists() and not Path("never.png").exists()

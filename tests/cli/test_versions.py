"""Versions on the command line: what machines and people read, and how commands end."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicgrl.common.locks import locked
from dicgrl.errors import DataError
from tests.cli.helpers import Cli, command, refused, tree
from tests.stores import edited

pytestmark = pytest.mark.usefixtures("trained_runs_here")


@pytest.fixture
def run() -> str:
    """A run of three versions to do with as one likes, and facts for a fourth."""
    shutil.copytree("plain/", "mine")
    Path("facts.tsv").write_text("e1\tlikes\tnewcomer\n", encoding="utf-8")
    return "mine"


def test_a_log_is_a_list_with_the_newest_last(cli: Cli, run: str) -> None:
    words = ("learn", run, "facts.tsv", "-m", "nightly", "--device", "cpu")
    assert cli(*words).code == 0
    code, out, err = cli("log", run, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [entry["version"] for entry in found] == [1, 2, 3, 4]
    assert found[-1]["kind"] == "learn" and found[-1]["message"] == "nightly"
    assert found[-1]["counts"] == {"facts": 1, "new_entities": 1, "new_relations": 1}
    table = cli("log", run).out
    rows = [line for line in table.splitlines() if line.startswith("│")]
    assert len(rows) == 4 and "nightly" in rows[-1] and "1 new entity," in rows[-1]


def test_a_log_says_what_came_and_what_went(cli: Cli, run: str) -> None:
    for words in (
        ("learn", run, "facts.tsv"),
        ("forget", run, "facts.tsv"),
        ("rename", run, "e1", "first"),
        ("restore", run, "4"),
    ):
        assert cli(*words).code == 0
    rows = [line for line in cli("log", run).out.splitlines() if line.startswith("│")]
    said = (
        "1 fact, 1 new entity, 1 new relation ",
        " 1 triple gone ",
        " 1 label ",
        "version 4 was",
    )
    assert all(words in row for words, row in zip(said, rows[3:], strict=True))


def test_what_changes_versions_is_told_to_machines_too(cli: Cli, run: str) -> None:
    def told(*words: str) -> Any:
        code, out, err = cli(*words, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    assert told("tag", run, "x", "--at", "2") == {"version": 2, "tag": "x", "deleted": False}
    assert told("restore", run, "x") == {"version": 4, "restored": "x"}
    assert told("tag", run, "x", "--delete") == {"version": 2, "tag": "x", "deleted": True}
    sizes = told("compact", run, "--keep", "last")
    size = json.loads(cli("info", run, "--json").out)["bytes"]
    assert sizes["bytes"] == size and isinstance(sizes["bytes_before"], int)
    assert told("backup", run, "copy") == {"version": 4, "to": "copy"}
    written = told("export", run, "--to", "vectors", "--format", "word2vec")
    assert written["to"] == "vectors"
    assert set(written["files"]) == {path.name for path in Path("vectors").iterdir()}
    assert told("datasets", "convert", "ring", "--out", "r") == {"out": "r", "parts": 3}
    split = told("datasets", "split", "r", "--parts", "2", "--out", "two")
    assert split == {"out": "two", "parts": 2}


READING = {
    "predict": ("predict", "mine", "--head", "e1", "--relation", "plus 1"),
    "similar": ("similar", "mine", "e1"),
    "score": ("score", "mine", "ring/0/test.txt"),
    "evaluate": ("evaluate", "mine", "ring/0/test.txt", "--json"),
    "info": ("info", "mine"),
}


@pytest.mark.parametrize("verb", READING)
def test_every_reading_command_asks_an_earlier_version(cli: Cli, run: str, verb: str) -> None:
    words = READING[verb]
    told = [cli(*words, "--at", str(number)) for number in (1, 2, 3)]
    assert all((each.code, each.err) == (0, "") for each in told)
    assert len({each.out for each in told}) == 3
    assert cli(*words).out == told[-1].out
    assert cli("tag", run, "release", "--at", "2").code == 0
    assert cli(*words, "--at", "release").out == told[1].out
    assert cli("restore", run, "1").code == 0
    if verb != "info":  # which says how large the folder is
        assert cli(*words).out == told[0].out
    refused(cli(*words, "--at", "9"), "there is no version 9; the run has 1 to 4")
    refused(cli(*words, "--at", "nine"), "'nine': neither a version nor a tag; tags: release")


def test_explain_and_export_of_an_earlier_version(cli: Cli, run: str) -> None:
    triple = ("explain", "divided", "--triple", "e1", "plus 1", "e2", "--json")
    assert cli(*triple, "--at", "1").out != cli(*triple).out
    assert cli("export", run, "--to", "first", "--at", "1").code == 0
    assert len(np.load("first/entities.npy")) == 15
    assert cli("export", run, "--to", "changed", "--since", "1").code == 0
    ids = np.load("changed/entities_ids.npy")
    assert set(range(15, 25)) <= set(ids.tolist())
    assert cli("export", run, "--to", "none", "--since", "3").code == 0
    assert not len(np.load("none/entities_ids.npy"))
    refused(cli("export", run, "--to", "never", "--since", "7"), "no version 7")
    assert not Path("never").exists()


def test_a_difference_names_facts_and_movers(cli: Cli, run: str) -> None:
    assert cli("learn", run, "facts.tsv", "--device", "cpu").code == 0
    found = json.loads(cli("diff", run, "3", "4", "--json").out)
    assert found["facts"]["added"] == {
        "count": 1,
        "some": [["e1", "likes", "newcomer"]],
        "dates": [""],
    }
    assert found["vectors"]["entities"]["new"] == 1
    out = cli("diff", run, "3", "4").out
    assert "e1 -- likes -- newcomer" in out and "1 are new" in out


def test_a_difference_needs_no_models(cli: Cli, run: str) -> None:
    assert cli("learn", run, "facts.tsv", "--device", "cpu").code == 0
    assert cli("merge", run, "e1", "newcomer").code == 0
    every = [(one, other) for one in range(1, 6) for other in range(1, 6)]
    before = [json.loads(cli("diff", run, str(a), str(b), "--json").out) for a, b in every]
    assert cli("compact", run, "--keep", "last").code == 0
    for (one, other), told in zip(every, before, strict=True):
        found = json.loads(cli("diff", run, str(one), str(other), "--json").out)
        missing = [number for number in (one, other) if number != 5]
        assert found["not_kept"] == missing and not told["not_kept"]
        assert found == told | {"not_kept": missing, "vectors": found["vectors"]}
        assert bool(found["vectors"]) == (not missing)
    out = cli("diff", run, "3", "4").out
    assert "e1 -- likes -- newcomer" in out
    assert "the models of versions 3 and 4 were not kept" in " ".join(out.split())


def test_verify_tells_damage_by_its_exit_code(cli: Cli, run: str) -> None:
    assert cli("verify", run).code == 0
    found = json.loads(cli("verify", run, "--json").out)
    assert found["clean"] and found["restorable"] == [1, 2, 3]
    with edited(run) as database:
        database.connection.execute("UPDATE arrays SET data = zeroblob(3) WHERE version = 3")
    code, out, err = cli("verify", run)
    assert code == 1 and "damaged; 3 versions, with a model: 1, 2" in out and "error: " in err
    assert not json.loads(cli("verify", run, "--json").out)["clean"]
    refused(cli("verify", "ring"), "no run here")
    assert cli("restore", run, "2").code == 0
    assert cli("predict", run, "--head", "e1", "--relation", "plus 1").code == 0


def test_compact_and_backup(cli: Cli, run: str) -> None:
    asked = ("--head", "e1", "--relation", "plus 1")
    before = cli("predict", run, *asked).out
    assert cli("backup", run, "copy").code == 0
    outcome = cli("compact", run, "--keep", "last")
    assert outcome.code == 0 and " MB, now " in outcome.out
    assert cli("predict", run, *asked).out == before == cli("predict", "copy", *asked).out
    assert cli("predict", "copy", *asked, "--at", "1").code == 0
    refused(cli("predict", run, *asked, "--at", "1"), "version 1 was not kept; that of 3 was")
    refused(cli("backup", run, "copy"), "already exists")
    refused(cli("backup", run, f"{run}/copy"), "lies in the run itself")
    copy, mine = (Path(name, "results.json").read_bytes() for name in ("copy", "mine"))
    assert copy == mine
    refused(cli("compact", run, "--keep", "none"), "unknown keep 'none'")


def test_a_tag_is_taken_away(cli: Cli, run: str) -> None:
    assert cli("tag", run, "release").code == 0
    assert json.loads(cli("log", run, "--json").out)[2]["tags"] == ["release"]
    refused(cli("tag", run, "release", "--at", "1", "--delete"), "leave out --at")
    assert cli("tag", run, "release", "--delete").code == 0
    refused(cli("tag", run, "release", "--delete"), "no tag 'release'")
    refused(cli("tag", run, "12"), "is not a number")


WRITING = {
    "learn": ("learn", "mine", "facts.tsv", "--device", "cpu"),
    "tag": ("tag", "mine", "x"),
    "restore": ("restore", "mine", "1"),
    "compact": ("compact", "mine"),
}


@pytest.mark.parametrize("verb", WRITING)
def test_a_busy_folder_is_another_exit_code_and_waiting_helps(
    cli: Cli, run: str, verb: str
) -> None:
    words = WRITING[verb]
    free, held = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(Path(run)):
            held.set()
            free.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(30)
    refused(cli(*words), "another process is writing here", code=3)
    threading.Timer(0.2, free.set).start()
    assert cli(*words, "--wait", "30").code == 0
    thread.join()


def test_reading_never_waits_and_changes_nothing(cli: Cli, run: str) -> None:
    asked = ("predict", run, "--head", "e1", "--relation", "plus 1")
    told = cli(*asked).out
    before = tree()
    with closing(sqlite3.connect(Path(run, "store.sqlite"), isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM versions")
        for words in (asked, ("log", run), ("info", run), ("verify", run)):
            assert cli(*words).code == 0
        assert cli(*asked).out == told
        writer.execute("ROLLBACK")
    assert tree() == before


def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_learned(
    cli: Cli, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree()
    monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK)
    monkeypatch.setattr("dicgrl.learner.Learner.learn", _never)
    refused(cli("learn", run, "facts.tsv", "--device", "cpu"), "mine: cannot be written to")
    assert tree() == before


def _never(*_: object, **__: object) -> None:
    raise DataError("nothing", "was to be learned")


def test_as_a_process() -> None:
    shutil.copytree("plain/", "mine")
    assert command("log", "mine", "--json").returncode == 0
    done = command("verify", "nowhere")
    assert done.returncode == 2 and "no run here" in done.stderr

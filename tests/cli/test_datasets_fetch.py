"""`dicgrl datasets fetch`: servers, and what cannot be written."""

from __future__ import annotations

import json
import os
import socket
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import Cli, Outcome, graph_file, refused, tree, write
from tests.local_server import serving

pytestmark = pytest.mark.usefixtures("own_folder")


SPLITS = ("train", "valid", "test")
Triple = tuple[str, ...]


def shown(outcome: Outcome) -> dict[str, Any]:
    """The one JSON object that a command printed."""
    assert outcome.code == 0 and outcome.err == ""
    description: dict[str, Any] = json.loads(outcome.out)
    return description


def test_a_server_that_is_away(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("DICGRL_SOURCE", f"http://127.0.0.1:{port}")
    refused(cli("datasets", "fetch", "cora"), "error: ", "refused", f"127.0.0.1:{port}", code=1)


def test_a_server_without_the_dataset(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({}) as server:
        monkeypatch.setenv("DICGRL_SOURCE", server.address)
        refused(cli("datasets", "fetch", "pubmed"), "pubmed", "404", code=1)
    assert not (Path(os.environ["DICGRL_CACHE"]) / "pubmed").exists()


def test_a_target_that_cannot_be_written(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write("file", "mine")
    graph_file()
    before = tree()
    refused(cli("datasets", "split", "graph.tsv", "--out", "file/out"), "file", code=1)
    monkeypatch.setenv("DICGRL_CACHE", "file/cache")
    refused(cli("datasets", "fetch", "cora"), "file/cache", code=1)
    assert tree() == before


def test_fetch_then_show_a_real_dataset(
    cli: Cli, paper_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = paper_data / "cora.tar.gz"
    if not packed.is_file():
        pytest.skip("there is no cora.tar.gz in the folder that DICGRL_DATA names")
    with tarfile.open(packed) as archive:
        files = {
            member.name: content.read()
            for member in archive
            if (content := archive.extractfile(member)) is not None
        }
    monkeypatch.delenv("DICGRL_DATA")
    cache = Path(os.environ["DICGRL_CACHE"])
    with serving({f"/NE/data/{name}": content for name, content in files.items()}) as server:
        monkeypatch.setenv("DICGRL_SOURCE", server.address)
        fetched = cli("datasets", "fetch", "cora")
        assert (fetched.code, fetched.err) == (0, "")
        assert fetched.out.startswith(f"cora is in {cache / 'cora'};")
        asked = len(server.requests)
        assert cli("datasets", "fetch", "cora").code == 0
        assert len(server.requests) == asked
    for path in (cache / "cora").rglob("*.txt"):
        assert path.read_bytes() == files[path.relative_to(cache).as_posix()]

    description = shown(cli("datasets", "show", "cora", "--json"))
    assert (description["name"], description["task"]) == ("cora", "node-classification")
    assert (description["classes"], description["features"]) == (7, 1433)
    for i, part in enumerate(description["parts"]):
        rows = {name: len(files[f"cora/{i}/{name}.txt"].splitlines()) for name in SPLITS}
        assert {name: part[name] for name in SPLITS} == rows
        assert part["nodes"] == sum(rows.values())
        assert part["edges"] == len(files[f"cora/{i}/edgelist.txt"].splitlines())

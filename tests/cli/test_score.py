"""`dicgrl score`: lines with their scores."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import pytest

from dicgrl import (
    Learner,
)
from tests.cli.helpers import Cli, refused

pytestmark = pytest.mark.usefixtures("trained_runs_here")


def test_score_gives_every_line_its_score(cli: Cli) -> None:
    code, out, err = cli("score", "divided", "ring/0/train.txt")
    assert (code, err) == (0, "")
    lines = Path("ring/0/train.txt").read_text(encoding="utf-8").splitlines()
    assert [line.rpartition("\t")[0] for line in out.splitlines()] == lines
    triples = [tuple(line.split("\t")) for line in lines]
    expected = Learner.load("divided", device="cpu").score(triples)  # type: ignore[arg-type]
    found = [float(line.rpartition("\t")[2]) for line in out.splitlines()]
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("triples.tsv", "head\trelation\ttail\ne1\tplus 1\te2\n"),
        ("triples.csv", "Subject,Predicate,Object\r\ne1,plus 1,e2\r\n"),
        ("triples.csv", '\ufeff"h","r","t"\n"e1","plus 1","e2"\n'),
    ],
)
def test_score_reads_what_learn_reads(cli: Cli, name: str, content: str) -> None:
    Path(name).write_bytes(content.encode())
    shutil.copytree("plain/", "run")
    code, out, err = cli("score", "run", name)
    assert (code, err) == (0, "")
    assert [line.split("\t")[:3] for line in out.splitlines()] == [["e1", "plus 1", "e2"]]
    assert cli("learn", "run", name, "--device", "cpu").code == 0
    assert Learner.load("run", device="cpu").trainer.model.num_relations == 3  # none of the header
    Path(name).write_bytes(content.replace("e2", "e99").encode())
    refused(cli("score", "run", name), f"{name}:2:", "'e99'")


@pytest.mark.parametrize(
    ("line", "mentioned"),
    [
        ("e1\tplus 1\te99\n", ("unknown entity 'e99'",)),
        ("e1\tminus 1\te2\n", ("unknown relation 'minus 1'",)),
        ("e1\tplus 1\n", ("expected 3 fields",)),
        ("e1\t\te2\n", ("field 2 of 3 is empty",)),
    ],
)
def test_a_line_that_cannot_be_scored_is_named_before_anything_is_printed(
    cli: Cli, line: str, mentioned: tuple[str, ...]
) -> None:
    Path("triples.tsv").write_text("e1\tplus 1\te2\n" * 4 + line + "e2\tplus 1\te3\n")
    refused(cli("score", "plain", "triples.tsv"), "triples.tsv:5:", *mentioned)


def test_triples_come_from_standard_input_as_well(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"e1\tplus 1\te2\ne1\tplus 1\te99\nNumber One\tplus 2\te3\n"
    Path("own.tsv").write_bytes(content)
    expected = cli("score", "plain", "own.tsv", "--skip-unknown")
    assert expected.code == 0 and len(expected.out.splitlines()) == 2
    assert expected.err == "warning: 1 line has an unknown label and is left out\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert cli("score", "plain", "-", "--skip-unknown") == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    refused(cli("score", "plain", "-"), "standard input:2: unknown entity 'e99'")
    refused(cli("score", "plain", "ring"), "ring: is a folder")

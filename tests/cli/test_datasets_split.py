"""`dicgrl datasets split`: a stream out of a static graph."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import Cli, Outcome, graph_file, refused, tree, write

pytestmark = pytest.mark.usefixtures("own_folder")


SPLITS = ("train", "valid", "test")
Triple = tuple[str, ...]


def shown(outcome: Outcome) -> dict[str, Any]:
    """The one JSON object that a command printed."""
    assert outcome.code == 0 and outcome.err == ""
    description: dict[str, Any] = json.loads(outcome.out)
    return description


def triples_of(path: str | Path) -> list[Triple]:
    return [tuple(row.split("\t")) for row in Path(path).read_text().splitlines()]


def test_split_by_arrival_follows_the_rule_of_the_paper(cli: Cli) -> None:
    source = graph_file()
    arguments = ("datasets", "split", source, "--ratios", "0.5,0.3,0.2")
    code, out, err = cli(*arguments, "--seed", "3", "--out", "out")
    assert code == 0 and err == "" and "dicgrl datasets show out" in out
    listed = [{row[0] for row in triples_of(f"out/{i}/entity2id.txt")} for i in range(3)]
    assert [len(entities) for entities in listed] == [20, 32, 40]
    assert listed[0] < listed[1] < listed[2]
    arrival = {label: min(i for i in range(3) if label in listed[i]) for label in listed[2]}
    arrived = {i: triples_of(f"out/{i}/train.txt") for i in range(3)}
    for i, triples in arrived.items():
        assert all(max(arrival[head], arrival[tail]) == i for head, _, tail in triples)
    assert sorted(t for triples in arrived.values() for t in triples) == sorted(triples_of(source))

    for seed, same in (("3", True), ("4", False)):
        cli(*arguments, "--seed", seed, "--out", f"again{seed}")
        assert ({i: triples_of(f"again{seed}/{i}/train.txt") for i in range(3)} == arrived) is same
    description = shown(cli("datasets", "show", "out", "--json"))
    assert [part["train"] for part in description["parts"]] == [len(t) for t in arrived.values()]


def test_split_by_order_cuts_where_the_triples_stand(cli: Cli) -> None:
    rows = triples_of(source := graph_file())
    arguments = ("--by", "order", "--ratios", "0.5,0.5", "--out", "out")
    assert cli("datasets", "split", source, *arguments).code == 0
    first, second = triples_of("out/0/train.txt"), triples_of("out/1/train.txt")
    assert first + second == rows and abs(len(first) - len(second)) <= 1


def test_split_by_time_keeps_equal_times_together(cli: Cli) -> None:
    years = [2003, 2001, 2002, 2001, 2004, 2002, 2002, 2005]
    write("timed.tsv", *(f"e{i}\tr\te{i + 1}\t{year}" for i, year in enumerate(years)))
    result = cli("datasets", "split", "timed.tsv", "--out=out", "--by=time", "--ratios=0.5,0.5")
    assert result.code == 0
    year_of = {f"e{i}": year for i, year in enumerate(years)}
    parts = [[year_of[head] for head, _, _ in triples_of(f"out/{i}/train.txt")] for i in range(2)]
    assert sorted(parts[0]) == [2001, 2001, 2002, 2002, 2002]  # four would cut 2002 in two
    assert sorted(parts[1]) == [2003, 2004, 2005]


def test_split_sets_shares_aside(cli: Cli) -> None:
    arguments = ("--by=order", "--ratios=0.5,0.5", "--valid=0.1", "--test=0.1", "--out=out")
    assert cli("datasets", "split", graph_file(), *arguments).code == 0
    parts = shown(cli("datasets", "show", "out", "--json"))["parts"]
    total = len(triples_of("graph.tsv"))
    assert sum(part[split] for part in parts for split in SPLITS) == total
    for part in parts:
        size = sum(part[split] for split in SPLITS)
        assert part["valid"] == part["test"] == round(0.1 * size)


def test_split_by_night(cli: Cli) -> None:
    source = graph_file()
    arguments = ("--by=nightly", "--parts=9", "--first=0.6", "--out=out")
    assert "9 parts" in cli("datasets", "split", source, *arguments).out
    parts = shown(cli("datasets", "show", "out", "--json"))["parts"]
    rows = triples_of(source)
    assert abs(parts[0]["train"] - 0.6 * len(rows)) <= 1
    assert all(abs(part["train"] - 0.05 * len(rows)) <= 1 for part in parts[1:])
    written = [row for i in range(9) for row in triples_of(f"out/{i}/train.txt")]
    assert sorted(written) == sorted(rows)


@pytest.mark.parametrize("by", ["entities", "relations", "facts", "hybrid", "order"])
def test_the_number_of_parts_stands_for_equal_ratios(cli: Cli, by: str) -> None:
    source = graph_file()
    share = repr(1 / 3)
    for out, how in (("one", "--parts=3"), ("other", f"--ratios={share},{share},{share}")):
        assert cli("datasets", "split", source, "--by", by, how, "--out", out).code == 0
    assert len(triples_of("one/2/train.txt")) > 0
    one, other = ({p: t for p, t in tree().items() if p.startswith(n)} for n in ("one", "other"))
    assert list(one.values()) == list(other.values())


def test_a_kind_of_growth_keeps_the_sets_and_is_written_whole(cli: Cli) -> None:
    """Of the films, whose later parts have test sets of their own."""
    assert cli("datasets", "split", "films", "--by=hybrid", "--out=out").code == 0
    before, after = (
        shown(cli("datasets", "show", name, "--json"))["parts"] for name in ("films", "out")
    )
    for split in SPLITS:
        assert sum(part[split] for part in before) == sum(part[split] for part in after)
    assert [part["irregular"]["untrained"] for part in after[1:]] == [0] * 4


@pytest.mark.parametrize(
    ("source", "arguments", "mentioned"),
    [
        ("graph.tsv", ["--parts=3", "--ratios=0.5,0.5"], "give the one or the other"),
        ("graph.tsv", ["--first=0.5", "--ratios=0.5,0.5"], "give the one or the other"),
        ("graph.tsv", ["--by=nightly", "--first=1"], "first=1.0"),
        ("graph.tsv", ["--by=nightly", "--first=-0.1"], "between 0 and 1"),
        ("graph.tsv", ["--by=nightly", "--parts=400"], "of 400 would be empty"),
        ("graph.tsv", ["--by=facts", "--parts=1", "--first=0.5"], "a single part has everything"),
        ("graph.tsv", ["--by=relations", "--parts=4"], "only 3 relations"),
        ("graph.tsv", ["--by=entities", "--parts=80"], "80 parts are too many"),
        ("graph.tsv", ["--by=class"], "a knowledge graph can only be split by"),
        ("graph.tsv", ["--by=nigthly"], "did you mean 'nightly'"),
        ("film-genres", ["--by=hybrid"], "a network can only be split by"),
        ("film-genres", ["--by=nightly", "--parts=100000"], "nodes are too few"),
    ],
)
def test_impossible_splits(cli: Cli, source: str, arguments: list[str], mentioned: str) -> None:
    graph_file()
    before = tree()
    refused(cli("datasets", "split", source, "--out=out.npz", *arguments), mentioned)
    assert tree() == before


def test_split_a_network(cli: Cli) -> None:
    arguments = ("--ratios", "0.6,0.4", "--out", "deep/net.npz")
    assert cli("datasets", "split", "film-genres", *arguments).code == 0
    whole = shown(cli("datasets", "show", "film-genres", "--json"))
    parts = shown(cli("datasets", "show", "deep/net.npz", "--json"))["parts"]
    nodes = whole["parts"][-1]["accumulated_nodes"]
    assert [part["nodes"] for part in parts] == [round(0.6 * nodes), nodes - round(0.6 * nodes)]
    assert parts[-1]["accumulated_edges"] == whole["parts"][-1]["accumulated_edges"]
    for split in SPLITS:
        assert sum(p[split] for p in parts) == sum(p[split] for p in whole["parts"])
    assert [path.name for path in Path("deep").iterdir()] == ["net.npz"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize(("source", "out"), [("graph.tsv", "out"), ("film-genres", "out.npz")])
def test_what_is_written_follows_the_umask(cli: Cli, source: str, out: str) -> None:
    graph_file()
    for mask in (0o022, 0o077):
        before = os.umask(mask)
        try:
            assert cli("datasets", "split", source, "--out", f"{mask}-{out}").code == 0
        finally:
            os.umask(before)
        target = Path(f"{mask}-{out}")
        full = 0o777 if target.is_dir() else 0o666
        assert stat.S_IMODE(target.stat().st_mode) == full & ~mask


@pytest.mark.parametrize("source", ["graph.tsv", "film-genres"])
def test_split_does_not_touch_what_exists(cli: Cli, source: str) -> None:
    graph_file()
    write("file.npz", "mine")
    write("folder.npz/0/train.txt", "mine")
    Path("empty.npz").mkdir()
    before = tree()
    for out in ("file.npz", "folder.npz", "empty.npz"):
        refused(cli("datasets", "split", source, "--out", out), out, "exists already")
    assert tree() == before

"""`dicgrl datasets`: list and show; mistakes."""

from __future__ import annotations

import gzip
import json
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dicgrl
import dicgrl.jobs.sweep
from tests.cli.helpers import Cli, Outcome, graph_file, refused, tree, write

pytestmark = pytest.mark.usefixtures("own_folder")


BUILTIN = Path(dicgrl.__file__).parent / "datasets" / "builtin"
SPLITS = ("train", "valid", "test")
Triple = tuple[str, ...]


def shown(outcome: Outcome) -> dict[str, Any]:
    """The one JSON object that a command printed."""
    assert outcome.code == 0 and outcome.err == ""
    description: dict[str, Any] = json.loads(outcome.out)
    return description


def test_list(cli: Cli) -> None:
    code, out, err = cli("datasets")
    assert code == 0 and err == ""
    rows = {line.split()[1]: line for line in out.splitlines() if len(line.split()) > 3}
    for name in ("films", "film-genres"):
        assert "built in" in rows[name]
    for name in ("FB15k-237", "WN18RR", "cora", "citeseer", "pubmed", "ENTITY", "HYBRID"):
        assert f"dicgrl datasets fetch {name}" in rows[name]
    assert "14,541 entities, 310,116 triples" in rows["FB15k-237"]
    assert "2,708 nodes, 5,429 edges" in rows["cora"]
    assert "14,541 entities, 310,116 triples" in rows["ENTITY"]
    assert "fetch FB15k-237" in rows["FB15k-237-nightly"]


def test_list_as_json(cli: Cli, tmp_path: Path) -> None:
    cache = Path(os.environ["DICGRL_CACHE"])
    (cache / "cora").mkdir()
    code, out, err = cli("datasets", "--json")
    assert code == 0 and err == ""
    rows = {row["name"]: row for row in json.loads(out)}
    assert rows["films"]["task"] == "link-prediction" and rows["films"]["parts"] == 5
    assert rows["film-genres"]["task"] == "node-classification"
    assert rows["cora"]["place"] == str(cache / "cora") and rows["cora"]["parts"] == 4
    assert rows["pubmed"]["place"] == "" and rows["pubmed"]["nodes"] == 19_717


def count_triples(parts: Iterable[dict[str, list[Triple]]]) -> list[dict[str, int]]:
    entities: set[str] = set()
    relations: set[str] = set()
    rows = []
    for part in parts:
        before = len(entities)
        every = [triple for split in SPLITS for triple in part[split]]
        entities |= {end for head, _, tail in every for end in (head, tail)}
        relations |= {relation for _, relation, _ in every}
        rows.append(
            {
                **{split: len(part[split]) for split in SPLITS},
                "entities": len(entities) - before,
                "relations": len(relations),
                "accumulated_entities": len(entities),
                "accumulated_relations": len(relations),
            }
        )
    return rows


def films_parts() -> list[dict[str, list[Triple]]]:
    def read(part: int, split: str) -> list[Triple]:
        packed = (BUILTIN / "films" / str(part) / f"{split}.txt.gz").read_bytes()
        return [tuple(row.split("\t")) for row in gzip.decompress(packed).decode().splitlines()]

    return [{split: read(part, split) for split in SPLITS} for part in range(5)]


def asked_for(parts: list[dict[str, Any]], keys: Iterable[str]) -> list[dict[str, int]]:
    return [{key: part[key] for key in keys} for part in parts]


def test_show_films(cli: Cli) -> None:
    expected = count_triples(films_parts())
    description = shown(cli("datasets", "show", "films", "--json"))
    assert description["name"] == "films" and description["task"] == "link-prediction"
    assert asked_for(description["parts"], expected[0]) == expected


def test_show_films_as_a_table(cli: Cli) -> None:
    expected = count_triples(films_parts())
    code, out, err = cli("datasets", "show", "films")
    assert code == 0 and err == ""
    assert "films (link-prediction)" in out
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines()]
    for key, title in ((key, key.replace("_", " ")) for key in expected[0]):
        [numbers] = [row[1:] for row in cells if row[:1] == [title]]
        assert numbers == [f"{part[key]:,}" for part in expected]


def test_show_film_genres(cli: Cli) -> None:
    with np.load(BUILTIN / "film-genres.npz") as arrays:
        part, split, edges = arrays["part"], arrays["split"], arrays["edges"]
        classes, features = len(arrays["class_names"]), arrays["features"].shape[1]
    arrival = [max(part[a], part[b]) for a, b in edges]
    description = shown(cli("datasets", "show", "film-genres", "--json"))
    assert description["name"] == "film-genres" and description["task"] == "node-classification"
    assert description["classes"] == classes and description["features"] == features
    nodes = links = 0
    for k, row in enumerate(description["parts"]):
        assert row["nodes"] == sum(part == k) and row["edges"] == arrival.count(k)
        nodes, links = nodes + row["nodes"], links + row["edges"]
        assert row["accumulated_nodes"] == nodes and row["accumulated_edges"] == links
        sizes = [sum((part == k) & (split == number)) for number in range(3)]
        assert [row[name] for name in SPLITS] == sizes
    assert nodes == len(part) and links == len(edges)


def numbered_folders() -> str:
    write("mine/0/train.txt", "a\tlikes\tb", "b\tlikes\tc", "a\tlikes\tb")
    write("mine/0/valid.txt", "a\tlikes\tc")
    write("mine/0/test.txt", "c\tlikes\ta")
    write("mine/1/train.txt", "d\tknows\ta", "a\tlikes\tb", "d\tknows\td")
    return "mine"


def test_show_a_folder(cli: Cli) -> None:
    description = shown(cli("datasets", "show", numbered_folders(), "--json"))
    assert description["name"] == "mine" and description["task"] == "link-prediction"
    first, second = description["parts"]
    assert [first[key] for key in (*SPLITS, "entities", "relations")] == [3, 1, 1, 3, 1]
    assert [second[key] for key in (*SPLITS, "entities", "relations")] == [3, 0, 0, 1, 2]
    assert second["accumulated_entities"] == 4 and second["accumulated_relations"] == 2
    assert first["irregular"]["duplicates"] == 1 and second["irregular"]["repeated"] == 1
    assert second["irregular"]["self_loops"] == 1


def test_show_tells_what_is_done_about_irregular_data(cli: Cli) -> None:
    out = cli("datasets", "show", numbered_folders()).out
    assert "duplicates in the part (kept once)" in out
    assert "repeats of an earlier part (dropped)" in out
    write("clean.tsv", "a\tr\tb")
    assert "Irregular" not in cli("datasets", "show", "clean.tsv").out


def test_show_an_archive(cli: Cli) -> None:
    folder = numbered_folders()
    with tarfile.open("packed.tar.gz", "w:gz") as archive:
        archive.add(folder, "inside")
    of_folder = shown(cli("datasets", "show", folder, "--json"))
    of_archive = shown(cli("datasets", "show", "packed.tar.gz", "--json"))
    assert of_archive["parts"] == of_folder["parts"] and of_archive["name"] == "packed"


@pytest.mark.parametrize(("name", "mark"), [("facts.tsv", "\t"), ("facts.csv", ",")])
def test_show_a_file(cli: Cli, name: str, mark: str) -> None:
    rows = [mark.join(("head", "relation", "tail"))]
    rows += [mark.join((f"e{i // 10}", "r", f"e{i % 10}")) for i in range(100)]
    description = shown(
        cli("datasets", "show", write(name, *rows), "--json", "--valid", "0.1", "--test", "0.2")
    )
    assert description["name"] == "facts"
    [part] = description["parts"]
    assert [part[split] for split in SPLITS] == [70, 10, 20]
    assert part["entities"] == 10 and part["relations"] == 1


def test_show_a_network_file(cli: Cli) -> None:
    np.savez(
        "net.npz",
        edges=[[0, 1], [1, 2], [2, 3]],
        features=np.eye(4, 5),
        classes=[0, 1, 0, 1],
        part=[0, 0, 0, 1],
        split=[0, 1, 2, 0],
    )
    description = shown(cli("datasets", "show", "net.npz", "--json"))
    assert description["task"] == "node-classification"
    assert description["classes"] == 2 and description["features"] == 5
    keys = (*SPLITS, "nodes", "edges", "accumulated_nodes", "accumulated_edges")
    first, second = description["parts"]
    assert [first[key] for key in keys] == [1, 1, 1, 3, 2, 3, 2]
    assert [second[key] for key in keys] == [1, 0, 0, 1, 1, 4, 3]


def test_show_prints_names_as_they_are(cli: Cli) -> None:
    """Brackets and colons are markup to the library that draws the tables."""
    for name in ("a[bold]b", "data [red]", "x:smile:y"):
        write(f"{name}/0.tsv", "a\tr\tb")
        assert f"{name} (link-prediction)" in cli("datasets", "show", f"./{name}").out
        refused(cli("datasets", "show", f"./{name}/no"), f"./{name}/no")


@pytest.mark.parametrize(
    ("arguments", "mentioned"),
    [
        (["show", "film"], ["unknown dataset 'film'", "'films'"]),
        (["show", ""], ["unknown dataset ''"]),
        (["show", "-"], ["not from standard input"]),
        (["show", "no/where"], ["no/where: no such file or folder"]),
        (["show", "cora"], ["cora is not on this machine", "dicgrl datasets fetch cora"]),
        (["show", "empty.tsv"], ["empty.tsv: the file is empty"]),
        (["show", "bad.tsv"], ["bad.tsv:3: expected 3 fields", "found 2", "'c\\tr'"]),
        (["show", "latin.tsv"], ["latin.tsv:2: not UTF-8", "0xe4"]),
        (["show", "bad.npz"], ["bad.npz: not a"]),
        (["show", "folder"], ["folder: not a stream; it holds notes.md", "Expected one of"]),
        (["show", "notes.md"], ["notes.md: the ending does not tell the format"]),
        (["show", "good.tsv", "--valid", "2"], ["valid=2.0"]),
        (["show", "films", "--valid", "2"], ["valid=2.0"]),
        (["show", "good.tsv", "--valid", "0.6", "--test", "0.6"], ["valid=0.6 and test=0.6"]),
        (["show", "good.tsv", "--valid", "much"], ["--valid"]),
        (["show", "good.tsv", "--seed", "-1"], ["--seed"]),
        (["show", "good.tsv", "--seed", "x"], ["--seed"]),
        (["show", "films", "--jsn"], ["--jsn"]),
        (["show"], ["Missing argument"]),
        (["--json", "show", "films"], ["--json"]),
        (["shw", "films"], ["shw"]),
        (["fetch", "films"], ["films comes with the package"]),
        (["fetch", "Cora"], ["did you mean 'cora'"]),
        (["split", "good.tsv"], ["--out"]),
        (["split", "nope", "--out", "out"], ["unknown dataset 'nope'"]),
        (["split", "bad.tsv", "--out", "out"], ["bad.tsv:3"]),
        (["split", "good.tsv", "--out", "out", "--ratios", "abc"], ["--ratios 'abc'"]),
        (["split", "good.tsv", "--out", "out", "--ratios", ""], ["--ratios ''"]),
        (["split", "good.tsv", "--out", "out", "--ratios", "0.5,0.6"], ["[0.5, 0.6]", "sum to 1"]),
        (["split", "good.tsv", "--out", "out", "--ratios", "1.5,-0.5"], ["above 0"]),
        (["split", "good.tsv", "--out", "out", "--ratios", "nan,1"], ["ratios", "nan"]),
        (["split", "good.tsv", "--out", "out"], ["would be empty"]),
        (["split", "films", "--out", "out", "--by", "foo"], ["unknown way to split 'foo'", "time"]),
        (["split", "films", "--out", "out", "--valid", "2"], ["valid=2.0"]),
        (["split", "films", "--out", "out", "--seed", "-1"], ["--seed"]),
        (["split", "films", "--out", "out", "--by", "time"], ["films", "fourth column"]),
        (["split", "good.tsv", "--out", "out", "--by", "time"], ["good.tsv:1", "4 fields"]),
        (["split", "film-genres", "--out", "out"], ["out: a network", ".npz"]),
    ],
    ids=" ".join,
)
def test_mistakes(cli: Cli, arguments: list[str], mentioned: list[str]) -> None:
    write("good.tsv", "a\tr\tb", "b\tr\tc")
    write("bad.tsv", "a\tr\tb", "b\tr\tc", "c\tr")
    write("empty.tsv")
    write("bad.npz", "no archive")
    write("notes.md", "text")
    write("folder/notes.md", "text")
    Path("latin.tsv").write_bytes("a\tr\tb\nä\tr\tb\n".encode("latin-1"))
    before = tree()
    refused(cli("datasets", *arguments), *mentioned, one_line=False)
    assert tree() == before


def test_a_share_that_nothing_is_done_with(cli: Cli) -> None:
    outcome = cli("datasets", "show", "films", "--json", "--valid", "0.1")
    plain = cli("datasets", "show", "films", "--json")
    assert outcome.code == 0 and outcome.out == plain.out and plain.err == ""
    assert outcome.err.startswith("warning: ") and outcome.err.count("\n") == 1
    assert "films: valid=0.1 sets nothing aside: every part has such a set" in outcome.err


def test_a_share_that_no_part_can_hold_out(cli: Cli) -> None:
    ring = graph_file()
    small = cli("datasets", "show", ring, "--test", "0.0001", "--valid", "0.2")
    assert "graph: test=0.0001 sets nothing aside: the share is too small" in small.err
    assert "valid=" not in small.err
    two = write("two.tsv", "a\tr\tb", "c\tr\td")
    assert "test=0.5 sets nothing aside: no example" in (
        cli("datasets", "show", two, "--test", "0.5").err
    )


def test_one_part_is_said_in_the_singular(cli: Cli) -> None:
    two = write("two.tsv", "a\tr\tb", "c\tr\td")
    assert "two: 1 part. Next" in cli("datasets", "convert", two, "--out", "two").out


def test_a_data_variable_that_is_no_folder(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICGRL_DATA", "nowhere")
    refused(cli("datasets"), "DICGRL_DATA", "nowhere")
    refused(cli("datasets", "show", "cora"), "DICGRL_DATA", "nowhere")


def test_long_paths_stay_on_one_line(cli: Cli) -> None:
    out = "/".join(["long" * 20] * 4)
    result = cli("datasets", "split", graph_file(), "--out", out)
    assert result.code == 0 and result.out.count("\n") == 1
    assert result.out.count(out) == 2

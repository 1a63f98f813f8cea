"""The `dicgrl datasets` commands as a user meets them: output, exit codes, messages, files."""

from __future__ import annotations

import gzip
import json
import os
import socket
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import dicgrl
from dicgrl.cli import app, main
from tests.local_server import serving

BUILTIN = Path(dicgrl.__file__).parent / "datasets" / "builtin"
SPLITS = ("train", "valid", "test")
Triple = tuple[str, ...]


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DICGRL_DATA", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run the command in this process, exit code included."""

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["dicgrl", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Outcome(ended.value.code, captured.out, captured.err)

    return run


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "dicgrl", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **variables},
    )


def write(path: str, *rows: str) -> str:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def shown(outcome: Outcome) -> dict[str, Any]:
    """The one JSON object that a command printed."""
    assert outcome.code == 0 and outcome.err == ""
    description: dict[str, Any] = json.loads(outcome.out)
    return description


def tree() -> dict[str, bytes | None]:
    """Everything in the working directory, hidden files included."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


def refused(outcome: Outcome, *mentioned: str, code: int = 2) -> None:
    """One message on stderr that mentions what it should, and nothing on stdout."""
    assert outcome.code == code
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    for words in mentioned:
        assert words in outcome.err


# What the commands say about themselves.


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"dicgrl {dicgrl.__version__}\n"


def test_the_package_runs_as_a_module() -> None:
    result = command("--help")
    assert result.returncode == 0 and result.stderr == ""
    assert "Usage:" in result.stdout and "datasets" in result.stdout


def test_the_command_is_installed() -> None:
    [script] = entry_points(group="console_scripts", name="dicgrl")
    assert script.load() is main


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_the_verbs(flag: str) -> None:
    result = CliRunner().invoke(app, ["datasets", flag])
    assert result.exit_code == 0
    assert all(verb in result.stdout for verb in ("show", "fetch", "split"))


def test_list(cli: Cli) -> None:
    code, out, err = cli("datasets")
    assert code == 0 and err == ""
    rows = {line.split()[1]: line for line in out.splitlines() if len(line.split()) > 3}
    for name in ("films", "film-genres"):
        assert "built in" in rows[name]
    for name in ("FB15k-237", "WN18RR", "cora", "citeseer", "pubmed"):
        assert f"dicgrl datasets fetch {name}" in rows[name]
    assert "14,541 entities, 310,116 triples" in rows["FB15k-237"]
    assert "2,708 nodes, 5,429 edges" in rows["cora"]


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


# What `show` counts, against the files counted here.


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


# What `split` writes.


def triples_of(path: str | Path) -> list[Triple]:
    return [tuple(row.split("\t")) for row in Path(path).read_text().splitlines()]


def graph_file(path: str = "graph.tsv") -> str:
    generator = np.random.default_rng(0)
    pairs = {tuple(pair) for pair in generator.integers(0, 40, (400, 2)).tolist()}
    return write(path, *(f"e{a}\tr{(a + b) % 3}\te{b}" for a, b in sorted(pairs)))


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


# Mistakes of the user: exit code 2, one message, nothing written.


@pytest.mark.parametrize(
    ("arguments", "mentioned"),
    [
        (["show", "film"], ["unknown dataset 'film'", "'films'"]),
        (["show", ""], ["unknown dataset ''"]),
        (["show", "no/where"], ["no/where: no such file or folder"]),
        (["show", "cora"], ["cora is not on this machine", "dicgrl datasets fetch cora"]),
        (["show", "empty.tsv"], ["empty.tsv: the file is empty"]),
        (["show", "bad.tsv"], ["bad.tsv:3: expected 3 fields", "found 2", "'c\\tr'"]),
        (["show", "latin.tsv"], ["latin.tsv:2: not UTF-8", "0xe4"]),
        (["show", "bad.npz"], ["bad.npz: not a"]),
        (["show", "folder"], ["folder: not a stream; it holds notes.md", "Expected one of"]),
        (["show", "notes.md"], ["notes.md: the ending tells no format"]),
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
    refused(cli("datasets", *arguments), *mentioned)
    assert tree() == before


def test_a_warning_is_one_line(cli: Cli) -> None:
    file = write("facts.tsv", "entity1\trelation\tentity2", "Alien\tgenre\thorror")
    for outcome in (cli("datasets", "show", file, "--json"), cli("datasets", "show", file)):
        assert outcome.code == 0 and outcome.out
        assert outcome.err == (
            "warning: facts.tsv:1: 'entity1 relation entity2' is taken for a fact; if it is a "
            "header, name the columns head, relation, tail\n"
        )
    process = command("datasets", "show", file)
    assert process.returncode == 0 and process.stderr == outcome.err


def test_a_share_that_nothing_is_done_with(cli: Cli) -> None:
    outcome = cli("datasets", "show", "films", "--json", "--valid", "0.1")
    plain = cli("datasets", "show", "films", "--json")
    assert outcome.code == 0 and outcome.out == plain.out and plain.err == ""
    assert outcome.err.startswith("warning: ") and outcome.err.count("\n") == 1
    assert "films: valid=0.1 sets nothing aside: every part has such a set" in outcome.err


def test_a_data_variable_that_is_no_folder(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICGRL_DATA", "nowhere")
    refused(cli("datasets"), "DICGRL_DATA", "nowhere")
    refused(cli("datasets", "show", "cora"), "DICGRL_DATA", "nowhere")


def test_a_mistake_of_a_real_process() -> None:
    write("bad.tsv", "a\tr\tb", "c\tr")
    result = command("datasets", "show", "bad.tsv")
    assert result.returncode == 2 and result.stdout == ""
    message = "bad.tsv:2: expected 3 fields separated by TAB, found 2: 'c\\tr'"
    assert result.stderr == f"error: {message}\n"


# Failures that are nobody's mistake: exit code 1.


def test_a_server_that_is_away() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    result = command("datasets", "fetch", "cora", DICGRL_SOURCE=f"http://127.0.0.1:{port}")
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert "refused" in result.stderr and f"127.0.0.1:{port}" in result.stderr


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


def test_fetch_then_show_a_real_dataset(paper_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        fetched = command("datasets", "fetch", "cora", DICGRL_SOURCE=server.address)
        assert fetched.returncode == 0 and fetched.stderr == ""
        assert fetched.stdout.startswith(f"cora is in {cache / 'cora'};")
        asked = len(server.requests)
        assert command("datasets", "fetch", "cora", DICGRL_SOURCE=server.address).returncode == 0
        assert len(server.requests) == asked
    for path in (cache / "cora").rglob("*.txt"):
        assert path.read_bytes() == files[path.relative_to(cache).as_posix()]

    result = command("datasets", "show", "cora", "--json")
    assert result.returncode == 0 and result.stderr == ""
    description = json.loads(result.stdout)
    assert (description["name"], description["task"]) == ("cora", "node-classification")
    assert (description["classes"], description["features"]) == (7, 1433)
    for i, part in enumerate(description["parts"]):
        rows = {name: len(files[f"cora/{i}/{name}.txt"].splitlines()) for name in SPLITS}
        assert {name: part[name] for name in SPLITS} == rows
        assert part["nodes"] == sum(rows.values())
        assert part["edges"] == len(files[f"cora/{i}/edgelist.txt"].splitlines())


# Terminals and pipes.


@pytest.mark.parametrize("arguments", [["show", "films"], ["show", "films", "--json"], []])
def test_a_pipe_that_nobody_reads(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "dicgrl", "datasets", *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(writer)
    assert result.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_a_closed_output() -> None:
    script = f'exec "{sys.executable}" -m dicgrl datasets show films >&-'
    result = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 0 and result.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk() -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "dicgrl", "datasets", "show", "films"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert result.returncode == 1
    assert result.stderr.startswith("error: ") and "space" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
    ids=["ascii", "C"],
)
def test_a_terminal_without_unicode(variables: dict[str, str]) -> None:
    write("bär/0.tsv", "a\tr\tb")
    for arguments in (["show", "./bär"], ["split", "film-genres", "--out", "ö.npz"], []):
        result = subprocess.run(
            [sys.executable, "-m", "dicgrl", "datasets", *arguments],
            capture_output=True,
            timeout=60,
            env={**os.environ, **variables},
        )
        assert result.returncode == 0 and result.stderr == b""
        assert not any(box.encode() in result.stdout for box in "│┃━")
        Path("ö.npz").unlink(missing_ok=True)
    missing = command("datasets", "show", "./bär/no", **variables)
    assert missing.returncode == 2 and "no such file or folder" in missing.stderr


def test_long_paths_stay_on_one_line(cli: Cli) -> None:
    out = "/".join(["long" * 20] * 4)
    result = cli("datasets", "split", graph_file(), "--out", out)
    assert result.code == 0 and result.out.count("\n") == 1
    assert result.out.count(out) == 2

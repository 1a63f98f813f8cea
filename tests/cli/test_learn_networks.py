"""`dicgrl learn` on a network: new nodes and edges, in every layout."""

from __future__ import annotations

import io
import json
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dicgrl import (
    Learner,
    NetworkGraph,
)
from tests.cli.helpers import Cli, refused, write
from tests.runs import files_in, measured
from tests.stores import assert_same_stores, stored

pytestmark = pytest.mark.usefixtures("trained_runs_here")


def as_tables(more: Path) -> Path:
    return more


def as_tables_and_array(more: Path) -> Path:
    rows = [line.split(",") for line in Path(more, "nodes.csv").read_text().splitlines()]
    place = Path("with array")
    place.mkdir()
    place.joinpath("nodes.csv").write_text("\n".join(f"{r[0]},{r[1]},{r[3]}" for r in rows))
    shutil.copy(more / "edges.csv", place)
    np.save(place / "features.npy", np.array([row[4:] for row in rows[1:]], dtype=float))
    return place


def as_arrays(more: Path) -> Path:
    rows = [line.split(",") for line in Path(more, "nodes.csv").read_text().splitlines()[1:]]
    edges = [line.split(",") for line in Path(more, "edges.csv").read_text().splitlines()[1:]]
    np.savez(
        "more.npz",
        nodes=[row[0] for row in rows],
        classes=[row[1] for row in rows],
        split=[("train", "valid", "test").index(row[3]) for row in rows],
        features=np.array([row[4:] for row in rows], dtype=float),
        edges=edges,
    )
    return Path("more.npz")


def as_authors(more: Path) -> Path:
    rows = [line.split(",") for line in Path(more, "nodes.csv").read_text().splitlines()[1:]]
    edges = Path(more, "edges.csv").read_text().splitlines()[1:]
    place = Path("as authors")
    (place / "0").mkdir(parents=True)
    (place / "features.txt").write_text("\n".join(" ".join([r[0], *r[4:]]) for r in rows))
    (place / "labels.txt").write_text("\n".join(f"{r[0]} {r[1]}" for r in rows))
    (place / "0/edgelist.txt").write_text("\n".join(edge.replace(",", " ") for edge in edges))
    for split in ("train", "valid", "test"):
        chosen = [f"{row[0]} {row[1]}" for row in rows if row[3] == split]
        (place / f"0/{split}.txt").write_text("\n".join(chosen))
    return place


def as_archive(more: Path) -> Path:
    with tarfile.open("more.tar.gz", "w:gz") as archive:
        archive.add(more, "more")
    return Path("more.tar.gz")


@pytest.mark.parametrize(
    "layout", [as_tables, as_tables_and_array, as_arrays, as_authors, as_archive]
)
def test_a_network_that_grows_is_that_of_one_go(cli: Cli, layout: Callable[[Path], Path]) -> None:
    shutil.copytree("begun", "mine")
    path = layout(Path("growing/more"))
    outcome = cli("learn", "mine", path, "--device", "cpu", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    whole = json.loads(Path("nodes/results.json").read_text())
    assert measured(json.loads(outcome.out))["parts"] == measured(whole)["parts"]
    assert_same_stores(Path("mine"), Path("nodes"))
    with stored("mine") as store:
        labels = store.content(store.versions()[-1])[1]["part"]
    assert labels == {"nodes": [f"n{i}" for i in range(32, 40)], "classes": ["green"]}
    mine, nodes = (Learner.load(run, device="cpu").trainer.graph for run in ("mine", "nodes"))
    assert isinstance(mine, NetworkGraph) and isinstance(nodes, NetworkGraph)
    assert mine.nodes == nodes.nodes and mine.classes == nodes.classes
    for name in ("edges", "features", "labels"):
        assert np.array_equal(getattr(mine, name), getattr(nodes, name)), name
    assert {(0, 38), (1, 39), (30, 32)} <= set(map(tuple, mine.edges.tolist()))
    assert (
        cli("predict", "mine", "--node", "n39").out == cli("predict", "nodes", "--node", "n39").out
    )


def test_a_network_grows_by_edges_alone_and_goes_on(cli: Cli) -> None:
    shutil.copytree("nodes", "mine")
    Path("links").mkdir()
    Path("links/edges.csv").write_text("source,target\nn0,n7\nn7,n0\nn0,n2\nn9,n9\n")
    code, out, err = cli("learn", "mine", "links", "--device", "cpu")
    assert (code, err) == (0, "") and "after part 3" in out
    assert "1 edge arrived; learned 0 new examples" in out
    assert json.loads(Path("mine/results.json").read_text())["parts"][-1]["edges"] == 1
    graph = Learner.load("mine", device="cpu").trainer.graph
    assert isinstance(graph, NetworkGraph) and graph.num_parts == 4
    assert graph.edges[-1].tolist() == [0, 7] and len(graph.edges) == 41  # the others were known
    Path("links/nodes.csv").write_text("node,class,x,y\nz1,violet,1,2\nz2,,0,1\n")
    Path("links/edges.csv").write_text("z1,n3\nz2,z1\n")
    code, out, err = cli("learn", "mine", "links", "--device", "cpu", "--keep", "last")
    assert (code, err) == (0, "") and "2 nodes, 1 class and 2 edges arrived; learned 1 new" in out
    answers = json.loads(cli("predict", "mine", "--node", "z2", "--json").out)
    assert {answer["label"] for answer in answers} == {"red", "blue", "green", "violet"}
    refused(cli("learn", "mine", "links"), "links/nodes.csv:2:", "node 'z1'", "in this run")


EDGES = "n0\tn7\nn7\tn0\nn0\tn2\nn9\tn9\n"


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("edges.tsv", EDGES, ()),
        ("edges.tsv", "source\ttarget\n" + EDGES, ()),
        ("edges.csv", "weight,to,from\n1,n7,n0\n2,n0,n7\n1,n2,n0\n1,n9,n9\n", ()),
        ("edges.txt", "1;n0;n7\n1;n0;n2\n", ("--sep", ";", "--columns", "2,3")),
        ("edges.jsonl", '{"source": "n0", "target": "n7"}\n', ()),
        ("-", EDGES, ()),
    ],
)
def test_a_file_of_edges_is_what_standard_input_takes(
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: str,
    options: tuple[str, ...],
) -> None:
    shutil.copytree("nodes", "mine")
    if name == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    else:
        Path(name).write_text(content)
    code, out, err = cli("learn", "mine", name, *options, "--device", "cpu")
    assert (code, err) == (0, "") and "after part 3" in out
    graph = Learner.load("mine", device="cpu").trainer.graph
    assert isinstance(graph, NetworkGraph)
    assert graph.edges[-1].tolist() == [0, 7] and len(graph.edges) == 41
    if name != "-":
        refused(cli("learn", "begun", "circles/nodes.csv"), "circles/nodes.csv:1: expected 2")
        Path(name).write_text(content.replace("n7", "z"))
        refused(cli("learn", "begun", name, *options), name, "unknown node 'z'", "no nodes")


def test_edges_that_are_all_known_are_no_part(cli: Cli) -> None:
    shutil.copytree("begun/", "run")
    more = ("learn", "run", "growing/more", "--device", "cpu")
    assert "arrived" in cli(*more).out
    held = files_in("run")
    graph = Learner.load("run", device="cpu").trainer.graph
    assert isinstance(graph, NetworkGraph)
    ends = graph.nodes.labels(graph.edges[:3].ravel())
    Path("again").mkdir()
    pairs = [f"{a},{b}\n" for a, b in zip(ends[::2], ends[1::2], strict=True)]
    Path("again/edges.csv").write_text("source,target\n" + "".join(pairs))
    assert cli("learn", "run", "again").out == "nothing new: 3 facts, 3 known already\n"
    assert held == files_in("run")


def test_self_loops_are_said_to_be_dropped(cli: Cli) -> None:
    shutil.copytree("nodes", "mine")
    loops = write("loops.tsv", "n5\tn5", "n6\tn6", "n0\tn2")
    said = "3 facts, 1 known already, 2 dropped as self loops\n"
    assert cli("learn", "mine", loops).out == f"nothing new: {said}"
    told = json.loads(cli("learn", "mine", loops, "--json").out)["facts"]
    assert told == {"given": 3, "known": 1, "held_out": 0, "self_loops": 2}
    assert "0 facts learned of 3 given, 1 known already, 2 dropped as self loops" in (
        cli("nightly", "mine", loops).out
    )
    one = write("one.tsv", "n5\tn5", "n0\tn7")
    learned = cli("learn", "mine", one).out
    assert "1 edge arrived" in learned and "left out of 2 facts: 1 dropped as self loops" in learned


HEAD, LINK = "node,class,split,size,side\n", "source,target\n"


GROWING_MISTAKES = {
    "unknown node": (
        {"nodes.csv": HEAD + "z1,red,train,1,2\n", "edges.csv": LINK + "z1,n3\nz1,n99\n"},
        ("new/edges.csv:3: unknown node 'n99'", "nodes.csv does not list it", "not in this run"),
    ),
    "old node again": (
        {"nodes.csv": HEAD + "z1,red,train,1,2\nn3,red,,1,2\n", "edges.csv": LINK + "z1,n3\n"},
        ("new/nodes.csv:3: node 'n3' is already in this run", "list new nodes only"),
    ),
    "width": (
        {"nodes.csv": HEAD[:-6] + "\nz1,red,train,1\n", "edges.csv": LINK},
        ("new/nodes.csv: 1 features per node; this run has 2",),
    ),
    "no features": (
        {"nodes.csv": "node\nz1\n", "edges.csv": LINK},
        ("new/nodes.csv: 0 features per node; this run has 2",),
    ),
    "edges alone": ({"edges.csv": "n1,n99\n"}, ("new/edges.csv:1: unknown node 'n99'",)),
    "no edges": ({"nodes.csv": HEAD + "z1,red,train,1,2\n"}, ("new: edges.csv", "is missing")),
    "parts": (
        {"nodes.csv": "node,part,w,h\nz1,0,1,2\nz2,1,1,2\n", "edges.csv": LINK},
        ("new: 2 parts; learn takes one at a time",),
    ),
    "authors, old node again": (
        {"features.txt": "z1 1 2\nn3 1 2\n", "labels.txt": "z1 red\nn3 red\n"},
        ("new/features.txt:2: node 'n3' is already in this run",),
    ),
    "authors, old node's class": (
        {"features.txt": "z1 1 2\n", "labels.txt": "z1 red\nn3 red\n"},
        ("new/labels.txt:2: node 'n3' is already in this run",),
    ),
    "authors, width": (
        {"features.txt": "z1 1 2 3\n", "labels.txt": "z1 red\n"},
        ("new/features.txt: 3 features per node; this run has 2",),
    ),
    "authors, unknown node": (
        {
            "features.txt": "z1 1 2\nz2 1 2\nz3 1 2\n",
            "labels.txt": "z1 red\nz2 red\nz3 red\n",
            "0/train.txt": "z1 red\n",
            "0/valid.txt": "z2 red\n",
            "0/test.txt": "z3 red\n",
            "0/edgelist.txt": "z1 n3\nn3 n99\n",
        },
        ("new/0/edgelist.txt:2: unknown node 'n99': it has no features", "not in this run"),
    ),
    "triples": ({"0.tsv": "n1\tlikes\tn2\n"}, ("knowledge graph",)),
}


@pytest.mark.parametrize("name", GROWING_MISTAKES)
def test_new_nodes_that_do_not_fit_leave_the_run_as_it_was(cli: Cli, name: str) -> None:
    files, mentioned = GROWING_MISTAKES[name]
    for file, content in files.items():
        Path("new", file).parent.mkdir(parents=True, exist_ok=True)
        Path("new", file).write_text(content)
    before = files_in("nodes/")
    refused(cli("learn", "nodes", "new", "--device", "cpu"), *mentioned)
    assert before == files_in("nodes/")


def test_old_nodes_in_arrays_are_named(cli: Cli) -> None:
    arrays = {"features": np.ones((1, 2)), "classes": ["red"], "nodes": ["z1"]}
    np.savez("again.npz", **(arrays | {"nodes": ["n3"]}), edges=[["n3", "n1"]])
    refused(cli("learn", "nodes", "again.npz"), "again.npz[nodes]:1: node 'n3' is already in this")
    np.savez("other.npz", **arrays, edges=[["z1", "n1"], ["z1", "n99"]])
    refused(cli("learn", "nodes", "other.npz"), "other.npz[edges]: edge 1", "unknown node 'n99'")
    np.savez("rows.npz", **arrays, edges=[[0, 1]])  # rows of the file's own arrays
    refused(cli("learn", "nodes", "rows.npz"), "rows.npz: edge 0 [0, 1] mentions an unknown node")
    np.savez("wide.npz", **(arrays | {"features": np.ones((1, 3))}), edges=[["z1", "n1"]])
    refused(cli("learn", "nodes", "wide.npz"), "wide.npz: 3 features per node; this run has 2")

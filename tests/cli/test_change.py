"""`dicgrl forget`, `replace`, `rename`, `merge`: what a run has learned turns out to be another."""

from __future__ import annotations

import io
import json
import shutil
import sys

import numpy as np
import pytest

from dicgrl import Learner
from tests.cli.helpers import Cli, refused, write
from tests.runs import files_in

pytestmark = pytest.mark.usefixtures("trained_runs_here")


@pytest.fixture
def run() -> str:
    shutil.copytree("plain", "run")
    return "run"


def fact(run: str, row: int = 0) -> str:
    """A training fact of a run, as a line."""
    graph = Learner.load(run, device="cpu").trainer.graph
    head, relation, tail = graph.train[row]
    ends = graph.entities.labels([head, tail])
    return "\t".join([ends[0], graph.relations.labels([relation])[0], ends[1]])


def train_of(run: str) -> list[list[int]]:
    rows: list[list[int]] = Learner.load(run, device="cpu").trainer.graph.train.tolist()
    return rows


def test_facts_of_a_file_are_forgotten_for_good(cli: Cli, run: str) -> None:
    line, before = fact(run), len(train_of(run))
    write("wrong.tsv", line, "nobody\tlikes\tnothing")
    outcome = cli("forget", run, "wrong.tsv", "--device", "cpu", "--json", "-m", "it was wrong")
    assert outcome.code == 0 and "1 fact not known" in outcome.err
    newest = json.loads(cli("log", run, "--json").out)[-1]
    assert (newest["kind"], newest["message"]) == ("forget", "it was wrong")
    results = json.loads(outcome.out)
    assert results["parts"][-1]["kind"] == "forget"
    assert results["parts"][-1]["forgotten"] == 1
    assert results["parts"][-1]["tests"]
    assert len(train_of(run)) == before - 1
    head, relation, _ = line.split("\t")
    found = cli("predict", run, "--head", head, "--relation", relation, "-k", "99", "--json")
    assert line.split("\t")[2] not in {a["label"] for a in json.loads(found.out) if a["known"]}
    refused(cli("forget", run, "wrong.tsv"), "none of the 2 facts is known")
    assert cli("learn", run, "wrong.tsv", "--device", "cpu").code == 0
    learner = Learner.load(run, device="cpu")
    assert [report.kind for report in learner.reports][-2:] == ["forget", "learn"]
    assert cli("info", run).code == 0


def test_standard_input_is_read_as_a_file_is(
    cli: Cli, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = fact(run)

    def typed(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    typed(line + "\n")
    told = cli("forget", run, "-", "--device", "cpu", "--evaluate", "none")
    assert told.code == 0 and told.out.startswith("forgotten 1 fact")
    typed(line + "\n")
    assert cli("learn", run, "-", "--device", "cpu").code == 0
    typed("e1\tE1\n")
    assert cli("rename", run, "--file", "-").code == 0
    assert "E1" in list(Learner.load(run, device="cpu").trainer.graph.entities)


def test_files_are_read_as_learn_reads_them(
    cli: Cli, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns and separators are told alike, of files and of standard input."""
    head, relation, tail = fact(run).split("\t")
    text = f"what;who;how\n{tail};{head};{relation}\n"
    told = ["--columns", "who,how,what", "--sep", ";", "--device", "cpu", "--evaluate", "none"]
    before = len(train_of(run))

    def typed() -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    write("wrong.tsv", *text.splitlines())
    assert cli("forget", run, "wrong.tsv", *told).code == 0
    assert len(train_of(run)) == before - 1
    typed()
    assert cli("learn", run, "-", *told).code == 0
    assert len(train_of(run)) == before
    typed()
    assert cli("forget", run, "-", *told).code == 0
    assert len(train_of(run)) == before - 1
    assert cli("learn", run, "wrong.tsv", *told).code == 0
    write("right.tsv", "what;who;how", f"{head};{head};{relation}")
    assert cli("replace", run, "wrong.tsv", "right.tsv", *told).code == 0
    assert len(train_of(run)) == before


def test_facts_are_replaced_as_one_part(cli: Cli, run: str) -> None:
    line = fact(run)
    write("old.tsv", line)
    write("new.tsv", line.rsplit("\t", 1)[0] + "\tsomebody")
    parts = Learner.load(run, device="cpu").num_parts
    outcome = cli("replace", run, "old.tsv", "new.tsv", "--device", "cpu")
    assert outcome.code == 0 and "forgotten 1 fact, learned 1 example" in outcome.out
    learner = Learner.load(run, device="cpu")
    assert learner.num_parts == parts + 1 and learner.reports[-1].kind == "replace"


def test_labels_are_renamed_and_merged(cli: Cli, run: str) -> None:
    assert cli("rename", run, "e1", "first").out.startswith("renamed 1 label")
    outcome = cli("merge", run, "first", "e2", "--device", "cpu")
    assert outcome.code == 0 and "merged 1 pair" in outcome.out
    learner = Learner.load(run, device="cpu")
    graph = learner.trainer.graph
    assert graph.entities.ids(["first"]) == graph.entities.ids(["e2"])
    assert graph.retired("entities").tolist() == [list(graph.entities).index("e2")]
    write("new.tsv", "e1\tlikes\te2")
    assert cli("learn", run, "new.tsv", "--device", "cpu").code == 0
    again = Learner.load(run, device="cpu").trainer.graph
    assert list(again.entities)[-1] == "e1"  # somebody else of that label
    assert again.train[-1, 2] == graph.entities.ids(["first"])[0]


@pytest.mark.parametrize(
    ("words", "mentioned"),
    [
        (("forget", "run", "unknown.tsv"), "the fact is not known"),
        (("forget", "run", "missing.tsv"), "missing.tsv"),
        (("forget", "run", "two.tsv"), "expected 3"),
        (("replace", "run", "unknown.tsv", "unknown.tsv"), "the fact is not known"),
        (("replace", "run", "-", "-"), "standard input"),
        (("rename", "run", "e1", "e2"), "merge the two instead"),
        (("rename", "run", "e1", "e1"), "nothing to rename"),
        (("rename", "run", "nobody", "somebody"), "unknown entity 'nobody'"),
        (("rename", "run", "e1"), "two labels"),
        (("rename", "run", "e1", "x", "--file", "two.tsv"), "two labels"),
        (("merge", "run", "e1", "plus 1"), "one of the relations"),
        (("merge", "run", "e1", "e1"), "already the same"),
        (("merge", "run", "e1", "nobody"), "unknown entity 'nobody'"),
        (("merge", "run", "e1", "e2", "--of", "colours"), "colours"),
        (("forget", "run", "unknown.tsv", "--evaluate", "some"), "some"),
        (("forget", "no-run", "unknown.tsv"), "no-run"),
    ],
)
def test_a_mistake_is_one_message_and_changes_nothing(
    cli: Cli, run: str, words: tuple[str, ...], mentioned: str
) -> None:
    write("unknown.tsv", "nobody\tlikes\tnothing")
    write("two.tsv", "e1\te2")
    held = files_in(run)
    refused(cli(*words), mentioned)
    assert files_in(run) == held


def test_an_edge_and_a_class_of_a_network_are_forgotten(cli: Cli) -> None:
    shutil.copytree("nodes", "net")
    graph = Learner.load("net", device="cpu").trainer.graph
    edge = "\t".join(graph.nodes.labels(graph.edges[0]))
    node = int(graph.part_nodes("train", 0)[0])
    told = f"{graph.nodes.labels([node])[0]}\t{graph.classes.labels([graph.labels[node]])[0]}"
    write("wrong.tsv", edge, told)
    outcome = cli("forget", "net", "wrong.tsv", "--device", "cpu", "--json")
    assert json.loads(outcome.out)["parts"][-1]["forgotten"] == 2
    again = Learner.load("net", device="cpu").trainer.graph
    assert len(again.edges) == len(graph.edges) - 1 and again.labels[node] == -1
    assert np.array_equal(again.features, graph.features)


def test_nodes_of_a_network_are_revised_in_either_form(cli: Cli) -> None:
    shutil.copytree("nodes", "net")
    graph = Learner.load("net", device="cpu").trainer.graph
    some = graph.nodes.labels(graph.part_nodes("train", 0)[:2])
    write("classes.tsv", f"{some[0]}\tpurple")
    outcome = cli("revise", "net", "classes.tsv", "--device", "cpu", "-m", "corrected")
    assert outcome.code == 0 and "revised 1 node" in outcome.out
    names = [f"f{i}" for i in range(graph.num_features)]
    values = ["0.5"] * graph.num_features
    write("nodes.csv", ",".join(["node", *names]), ",".join([some[1], *values]))
    assert cli("revise", "net", "nodes.csv", "--device", "cpu", "--json").code == 0
    again = Learner.load("net", device="cpu").trainer.graph
    first, second = again.nodes.ids(some)
    assert again.classes.labels([again.labels[first]]) == ["purple"]
    assert again.features[second].tolist() == [0.5] * graph.num_features
    log = json.loads(cli("log", "net", "--json").out)
    assert [(v["kind"], v["message"]) for v in log[-2:]] == [
        ("revise", "corrected"),
        ("revise", ""),
    ]
    refused(cli("revise", "net", "classes.tsv"), "nothing to revise")
    write("unknown.tsv", "nobody\tpurple")
    refused(cli("revise", "net", "unknown.tsv"), "nobody")


def test_a_mistake_in_a_file_of_revised_nodes_is_told_by_its_name(cli: Cli) -> None:
    held = files_in("nodes/")
    table = write("table.csv", "node,class,size", "n1,red,1")
    refused(cli("revise", "nodes", table), "table.csv: 1 features per node; this run has 2")
    write("table.csv", "node,class", "n1,red", "n1,blue")
    refused(cli("revise", "nodes", table), "table.csv:3: duplicate node 'n1', first in line 2")
    pairs = write("pairs.tsv", "n1\tred", "n1\tblue")
    refused(cli("revise", "nodes", pairs), "pairs.tsv:2: duplicate node 'n1', first in line 1")
    assert held == files_in("nodes/")


def test_a_knowledge_graph_has_no_nodes_to_revise(cli: Cli, run: str) -> None:
    write("classes.tsv", "e1\tpurple")
    refused(cli("revise", run, "classes.tsv"), "replace its facts")

"""`dicgrl compare`: runs of one graph in one table and one picture."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from dicgrl.learner import Learner
from tests.cli.helpers import LINKS, NODES, Cli, refused, write
from tests.stores import edited
from tests.tiny import (
    learner_of,
    taught,
)

pytestmark = pytest.mark.usefixtures("trained_runs_here")


@pytest.mark.parametrize(("ending", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
@pytest.mark.usefixtures("real_curves")
def test_compare_makes_a_table_and_a_picture(cli: Cli, ending: str, begins: bytes) -> None:
    code, out, err = cli("compare", "divided", "plain", "--out", f"both.{ending}")
    assert (code, err) == (0, "")
    assert Path(f"both.{ending}").read_bytes().startswith(begins)
    rows = [line for line in out.splitlines() if line.startswith("│ ")]
    assert [row.split()[1] for row in rows] == ["dicgrl", "lower"]
    for folder, row in zip(("divided", "plain"), rows, strict=True):
        last = json.loads(Path(folder, "results.json").read_text())["parts"][-1]
        assert f"{last['whole']['hits@10'] * 100:.1f}" in row
        assert f"{last['average']['mrr'] * 100:.1f}" in row
    compared = json.loads(cli("compare", "divided", "plain", "--json").out)
    assert [run["strategy"] for run in compared] == ["dicgrl", "lower"]


def test_compare_needs_results(cli: Cli) -> None:
    shutil.copytree("plain/", "half")
    with edited("half") as database:
        for row in list(database.rows("versions")):
            database.insert("versions", **(row | {"results": None}))
    refused(cli("compare", "half"), "half", "no results yet", "--resume")


def test_compare_does_not_believe_what_was_altered(cli: Cli) -> None:
    shutil.copytree("plain/", "altered")
    path = Path("altered/results.json")
    path.write_text(re.sub(r'"mrr": 0\.\d', '"mrr": 0.9', path.read_text()))  # made from the store
    assert cli("compare", "altered", "--json").out == cli("compare", "plain", "--json").out
    with edited("altered") as database:
        text = """replace(results, '"mrr":0.', '"mrr":0.9')"""
        database.connection.execute(f"UPDATE versions SET results = {text}")
    refused(cli("compare", "altered"), "altered", "damaged", "checksum")


def test_compare_says_how_a_run_that_was_saved_from_python_gets_results(cli: Cli) -> None:
    taught(learner_of("links", "lower"), 1).save("saved")
    code, out, err = cli("compare", "saved")
    assert (code, out) == (2, "") and "saved from Python" in err and "--resume" not in err
    assert cli("learn", "saved", known_fact(), "--device", "cpu").code == 0
    code, out, _ = cli("compare", "saved")
    assert code == 0 and "nothing was measured" not in out


def known_fact() -> str:
    fact = Path("ring/0/train.txt").read_text(encoding="utf-8").splitlines()[0]
    return write("known.tsv", fact)


def test_what_was_learned_without_measuring_is_compared_by_the_last_measurement(cli: Cli) -> None:
    shutil.copytree("plain/", "longer")
    write("new.tsv", "e1\tlikes\tnewcomer")
    words = ("--device", "cpu")
    assert cli("learn", "longer", "new.tsv", "--evaluate", "none", *words).code == 0
    code, out, _ = cli("compare", "longer")
    before = json.loads(Path("longer/results.json").read_text())["parts"][2]
    assert code == 0 and f"{before['whole']['hits@10'] * 100:.1f}" in out
    assert "lower: measured after part 2 and not since" in out
    assert "│" not in cli("learn", "longer", known_fact(), "--evaluate", "none", *words).out
    learned = cli("learn", "longer", known_fact(), *words)  # as it says
    assert learned.code == 0 and "nothing new" in learned.out and "whole" in learned.out
    after = json.loads(Path("longer/results.json").read_text())["parts"][3]
    code, out, _ = cli("compare", "longer")
    assert code == 0 and "not since" not in out
    assert f"{after['whole']['hits@10'] * 100:.1f}" in out
    assert "│" not in cli("learn", "longer", known_fact(), *words).out


def test_what_was_learned_in_python_is_measured_by_learning_what_is_known(cli: Cli) -> None:
    shutil.copytree("plain/", "longer")
    learner = Learner.load("longer", device="cpu")
    learner.learn([("e1", "likes", "newcomer")])
    learner.save("longer")
    refused(cli("compare", "longer"), "3 of 4 parts", "`dicgrl learn`")
    assert cli("learn", "longer", known_fact(), "--device", "cpu").code == 0
    assert json.loads(cli("compare", "longer", "--json").out)[0]["parts"][3]["whole"]


def test_compare_refuses_runs_of_different_graphs(cli: Cli) -> None:
    """Facts or features that differ, whatever the folders are called."""
    for source, file, old, new, words in (
        ("ring", "1/train.txt", "e10", "e9", LINKS),
        ("circles", "nodes.csv", ",1,1\n", ",1,0\n", NODES),
    ):
        path = Path(shutil.copytree(source, f"other/{source}")) / file
        path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
        out = f"other run of {source}"
        words = (f"./other/{source}", *words, "--strategy", "lower", "--out", out)
        assert cli("run", *words).code == 0
        run = "plain" if source == "ring" else "nodes"
        refused(cli("compare", run, out, "--out", "x.png"), run, out, "different graphs")
        assert not Path("x.png").exists()


def test_compare_warns_of_different_questions(cli: Cli) -> None:
    for path in Path(shutil.copytree("ring", "bare")).glob("*/*.txt"):
        if path.name != "train.txt":
            path.unlink()
    words = ("run", "bare", *LINKS, "--strategy", "lower", "--valid", "0.1", "--test", "0.2")
    for seed in ("0", "1"):
        assert cli(*words, "--seed", seed, "--out", f"seed {seed}").code == 0
    code, out, err = cli("compare", "seed 0", "seed 1", "--json")
    assert code == 0 and len(json.loads(out)) == 2
    assert err.startswith("warning: seed 0 and seed 1 hold out other sets of the same graph")
    shutil.copytree("plain/", "longer")
    Path("new.tsv").write_text("e1\tlikes\tnewcomer\n")
    assert cli("learn", "longer", "new.tsv", "--device", "cpu").code == 0
    code, out, err = cli("compare", "plain", "longer")
    assert code == 0 and err.startswith("warning: plain has learned 3 parts and longer 4")
    assert err.count("warning") == 1


def test_runs_are_compared_by_labels(cli: Cli) -> None:
    """One graph, read in another order and divided otherwise: a warning, no refusal."""
    facts = [f"e{i}\tplus {k}\te{(i + k) % 20}" for i in range(20) for k in (1, 2, 5)]
    for name, lines in {"there": facts, "back": facts[::-1], "other": facts[1:]}.items():
        Path(f"{name}.tsv").write_text("\n".join(lines), encoding="utf-8")
        words = ("--strategy", "lower", "--test", "0.2", "--out", f"run {name}", "--json")
        assert cli("run", f"{name}.tsv", *LINKS, *words).code == 0
    code, out, err = cli("compare", "run there", "run back")
    assert code == 0 and "retention" in out and "hold out other sets" in err
    refused(cli("compare", "run there", "run other"), "different graphs")
    for name, order in {"nodes": 1, "rows": -1}.items():
        Path(name + " of it").mkdir()
        rows = [f"n{i},{'red' if i % 2 else 'blue'},{i % 2},1" for i in range(12)][::order]
        ends = [f"n{i},n{(i + 2) % 12}" for i in range(12)][::order]
        Path(name + " of it/nodes.csv").write_text("\n".join(["node,class,x,y", *rows]))
        Path(name + " of it/edges.csv").write_text("\n".join(["source,target", *ends]))
        words = ("--strategy", "lower", "--test", "0.3", "--out", f"run {name}", "--json")
        assert cli("run", f"{name} of it", *NODES, *words).code == 0
    code, _, err = cli("compare", "run nodes", "run rows")
    assert code == 0, err

"""`dicgrl info`: what a run is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dicgrl import (
    Learner,
)
from tests.cli.helpers import Cli, refused
from tests.stores import edited

pytestmark = pytest.mark.usefixtures("trained_runs_here")


@pytest.mark.parametrize("run", ["divided", "plain", "nodes", "merged"])
def test_info_says_what_a_run_is_and_what_its_parts_brought(run: str, cli: Cli) -> None:
    found = json.loads(cli("info", run, "--json").out)
    learner = Learner.load(run, device="cpu")
    assert found["settings"] == json.loads(json.dumps(learner.settings.as_dict()))
    assert found["whole"] == (run == "merged")
    assert found["bytes"] == sum(p.stat().st_size for p in Path(run).rglob("*") if p.is_file())
    kinds = ("nodes", "classes") if run == "nodes" else ("entities", "relations")
    vocabularies = [getattr(learner.trainer.graph, kind) for kind in kinds]
    for kind, vocabulary in zip(kinds, vocabularies, strict=True):
        assert sum(part[f"new_{kind}"] for part in found["parts"]) == len(vocabulary)
    results = json.loads((Path(run) / "results.json").read_text(encoding="utf-8"))
    for part, expected in zip(found["parts"], results["parts"], strict=True):
        assert expected.items() <= part.items()
    code, out, _ = cli("info", run)
    assert code == 0 and f"{found['strategy']}, recipe {found['recipe']}" in out
    if run != "nodes":
        model = learner.trainer.model
        assert found["vector"] == {"active": model.active, "length": model.length}
        lengths = "8 of 16" if run == "divided" else "8"
        assert f"{lengths} numbers), {found['strategy']}" in out.replace("\n", " ")
    rows = [line for line in out.splitlines() if line.startswith("│")]
    assert len(rows) == len(found["parts"])
    metric = "accuracy" if run == "nodes" else "hits@10"
    assert f"{100 * results['parts'][-1]['whole'][metric]:.1f}" in rows[-1]


def test_info_on_what_is_no_run(cli: Cli) -> None:
    refused(cli("info", "ring"), "no run here")
    shutil.copytree("plain", "damaged")
    with edited("damaged") as database:
        database.connection.execute("UPDATE versions SET report = '[]' WHERE number = 2")
    refused(cli("info", "damaged"), "damaged")


def test_info_on_a_run_that_python_saved(cli: Cli) -> None:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu")
    learner.learn([("a", "likes", "b"), ("b", "likes", "c")])
    learner.save("by hand")
    found = json.loads(cli("info", "by hand", "--json").out)
    assert (found["dataset"], found["recipe"]) == ("by hand", "default")
    assert (found["parts"][0]["new_examples"], found["parts"][0]["new_entities"]) == (2, 3)
    assert "by hand: transe (plain, 4 numbers), lower" in cli("info", "by hand").out

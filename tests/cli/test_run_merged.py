"""`dicgrl run --merged`: output, exit codes, messages, files."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from dicgrl import Learner
from dicgrl.store.checkpoint import load_model
from tests.cli.helpers import Cli, Outcome, command, refused
from tests.stores import FILES

SMALL = ("--device", "cpu", "--set", "dim=8", "--set", "epochs=4", "--set", "validate_every=2")
SHARES = {"mrr", "hits@1", "hits@3", "hits@10"}
METRICS = SHARES | {f"{name}_others" for name in SHARES} | {"mean_rank"}
COUNT = {"train": 52, "valid": 4, "test": 4}


@pytest.fixture(autouse=True)
def ring(own_folder: Path) -> None:
    """A graph of two parts in the folder `ring`: 20 entities in a circle, three relations."""
    assert own_folder == Path.cwd()
    lines = [f"e{i}\tplus {k}\te{(i + k) % 20}\n" for i in range(20) for k in (1, 2, 5)]
    held_out = {"0/valid": lines[3:7], "0/test": lines[22:24], "1/test": lines[42:44]}
    train = [line for line in lines if not any(line in rows for rows in held_out.values())]
    for name, rows in {"0/train": train[:40], "1/train": train[40:], **held_out}.items():
        path = Path("ring") / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(rows), encoding="utf-8")


@pytest.fixture
def merged(cli: Cli) -> Cli:
    """Run `dicgrl run ring --merged` in this process, exit code included."""
    return partial(cli, "run", "ring", "--merged", *SMALL)


def results_of(outcome: Outcome) -> dict[str, Any]:
    """The one JSON object that a run printed; it is quiet otherwise."""
    assert (outcome.code, outcome.err) == (0, "")
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def test_a_run_prints_what_it_writes() -> None:
    words = ("--json", "--out", "runs/first", "--seed", "3")
    done = command("run", "ring", "--merged", *SMALL, *words)  # as a process, which is quiet
    results = results_of(Outcome(done.returncode, done.stdout, done.stderr))
    out = Path("runs/first")
    assert {path.name for path in out.iterdir()} == FILES
    assert json.loads((out / "results.json").read_text(encoding="utf-8")) == results
    assert len((out / "trace.jsonl").read_text(encoding="utf-8").splitlines()) == 4
    model = Learner.load(out, device="cpu").trainer.model
    assert (model.num_entities, model.num_relations) == (20, 3)

    assert (results["dataset"], results["task"]) == ("ring", "link-prediction")
    assert (results["model"], results["setting"]) == ("rotate", "whole")
    assert results["recipe"] == "default"  # there is none for this graph
    assert (results["seed"], results["device"], results["epochs"]) == (3, "cpu", 4)
    assert results["count"] == COUNT  # both parts
    assert results["settings"]["dim"] == 8 and results["settings"]["components"] == 0
    for split in ("validation", "test"):
        assert set(results[split]) == METRICS
        assert 0 < results[split]["mrr"] <= 1
    assert results["best_epoch"] in (2, 4)
    assert results["published"] == {}
    assert set(results["protocol"]) >= {"ranking", "candidates", "selection"}
    assert results["learn_seconds"] > 0 and results["evaluate_seconds"] > 0


@pytest.mark.parametrize("how", [("--merged",), ("--strategy", "lower")])
@pytest.mark.parametrize("name", ["films", "FB15k-237"])
def test_a_folder_that_is_called_like_a_dataset(cli: Cli, name: str, how: tuple[str]) -> None:
    Path("ring").rename(name)
    run = partial(cli, "run", f"./{name}", *how, *SMALL)
    results = results_of(run("--json"))
    assert (results["dataset"], results["recipe"], results["published"]) == (name, "default", {})
    refused(run("--recipe", "paper"), "no recipe 'paper' for data of your own")


def test_the_table(merged: Cli) -> None:
    code, out, err = merged()
    assert (code, err) == (0, "")
    assert "ring" in out and "rotate" in out and "MRR" in out
    assert [line for line in out.splitlines() if "validation" in line]
    assert [path.name for path in Path().iterdir()] == ["ring"]


def test_a_seed_gives_the_same_numbers_again(merged: Cli) -> None:
    def numbers(*arguments: str) -> tuple[Any, ...]:
        results = results_of(merged("--json", *arguments))
        return results["validation"], results["test"], results["best_epoch"]

    first, again, other = numbers("--seed", "5"), numbers("--seed", "5"), numbers("--seed", "6")
    assert first == again != other


@pytest.mark.parametrize("model", ["transe", "convkb"])
def test_disentangled_and_plain(merged: Cli, model: str) -> None:
    divided = results_of(merged("--json", "--model", model, "--disentangled", "--set", "top=2"))
    assert (divided["settings"]["components"], divided["settings"]["top"]) == (4, 2)
    assert divided["model"] == divided["settings"]["model"] == model
    plain = results_of(merged("--json", "--model", model, "--plain"))
    assert plain["settings"]["components"] == 0
    assert plain["test"] != divided["test"]


def test_settings_are_changed(merged: Cli) -> None:
    changes = ("loss=margin", "lr=0.02", "p=2", "attention=nodes", "components=4", "top=1")
    arguments = [word for change in changes for word in ("--set", change)]
    settings = results_of(merged("--json", "--model", "transe", *arguments))["settings"]
    assert (settings["loss"], settings["lr"], settings["p"]) == ("margin", 0.02, 2)
    assert (settings["attention"], settings["components"], settings["top"]) == ("nodes", 4, 1)


def test_triples_are_set_aside_where_asked(merged: Cli) -> None:
    for path in [*Path("ring").rglob("valid.txt"), *Path("ring").rglob("test.txt")]:
        path.unlink()
    done = merged("--json")  # so few epochs teach it nothing, and that is said
    bare = json.loads(done.out)
    assert done.err == f"warning: part 0: {bare['parts'][0]['warnings'][0]}\n"
    assert bare["validation"] is None and bare["test"] is None
    results = results_of(merged("--json", "--valid", "0.1", "--test", "0.1"))
    assert results["count"]["valid"] > 0 and results["count"]["test"] > 0
    assert set(results["test"]) == METRICS


@pytest.mark.parametrize(
    ("arguments", "mentioned"),
    [
        (("--model", "trans"), ("model", "'trans'", "did you mean 'transe'?")),
        (("--recipe", "bset"), ("recipe", "'bset'", "best")),
        (("--recipe", "paper"), ("recipe 'paper'", "data of your own", "--recipe best")),
        (("--set", "margn=3"), ("setting", "'margn'", "did you mean 'margin'?")),
        (("--set", "loss=softmargn"), ("loss", "'softmargn'", "did you mean 'softmargin'?")),
        (("--set", "epochs=many"), ("epochs='many'", "a whole number")),
        (("--set", "lr=-1"), ("lr=-1", "at least 0")),
        (("--set", "lr"), ("'lr'", "key=value")),
        (("--set", "components=3", "--set", "top=4"), ("top=4", "components=3")),
        (("--model", "convkb", "--set", "filters=-1"), ("filters=-1", "at least 1")),
        (("--model", "convkb", "--set", "dropout=1.5"), ("dropout=1.5", "below 1")),
        (("--device", "tpu"), ("device 'tpu'", "auto, cpu or cuda")),
    ],
    ids=lambda value: "-".join(value) if value[0].startswith("--") else "",
)
def test_a_mistake_is_one_line(
    merged: Cli, arguments: tuple[str, ...], mentioned: tuple[str, ...]
) -> None:
    refused(merged("--out", "runs/never", *arguments), *mentioned)
    assert not Path("runs").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_gpu_that_is_not_there(merged: Cli) -> None:
    refused(merged("--device", "cuda"), "no CUDA device here", "--device cpu")


def test_a_run_that_diverges_ends_with_1_and_keeps_the_last_good_model(merged: Cli) -> None:
    wild = ("--model", "transe", "--set", "lr=1e30", "--set", "p=2", "--json")
    outcome = merged("--out", "runs/wild", *wild)
    # One step an epoch: the first one is that large, the second one meets what it did.
    where = "not finite at step 2 (epoch 2)"
    refused(outcome, "training diverged", where, "last good weights", code=1)
    out = Path("runs/wild")
    kept = {"store.sqlite", "trace.jsonl", "model.json", "model.safetensors"}
    assert {path.name for path in out.iterdir()} == kept
    model, _ = load_model(out)
    assert model.num_entities == 20
    for values in (model.entities.rows, model.relations.rows):
        assert values.isfinite().all() and values.abs().max() < 10


@pytest.fixture
def merged_nodes(cli: Cli) -> Cli:
    """Run `dicgrl run circles --merged`: two circles of ten nodes, a class each."""
    folder = Path("circles")
    folder.mkdir()
    rows = [
        f"n{i},{'red' if i < 10 else 'blue'},{('train', 'valid', 'train', 'test')[i % 4]},"
        f"{i % 3},{int(i < 10)}\n"
        for i in range(20)
    ]
    (folder / "nodes.csv").write_text("node,class,split,size,round\n" + "".join(rows))
    edges = [f"n{i},n{i - i % 10 + (i + 1) % 10}\n" for i in range(20)]
    (folder / "edges.csv").write_text("source,target\n" + "".join(edges))

    return partial(cli, "run", "circles", "--merged", "--device", "cpu", "--set", "epochs=4")


def test_a_run_on_a_network_prints_what_it_writes(merged_nodes: Cli) -> None:
    results = results_of(merged_nodes("--json", "--out", "runs/nodes", "--seed", "3"))
    out = Path("runs/nodes")
    assert {path.name for path in out.iterdir()} == FILES
    assert json.loads((out / "results.json").read_text(encoding="utf-8")) == results
    assert (results["dataset"], results["task"]) == ("circles", "node-classification")
    assert (results["model"], results["recipe"]) == ("gat", "default")  # unless another is asked
    assert (results["seed"], results["epochs"]) == (3, 4)
    assert results["count"] == {"train": 10, "valid": 5, "test": 5}
    assert results["protocol"]["graph"] == "accumulated"
    assert set(results["validation"]) == {"accuracy", "loss"}
    assert set(results["test"]) == {"accuracy"}
    for split in ("validation", "test"):
        assert 0 <= results[split]["accuracy"] <= 1
    model = Learner.load(out, device="cpu").trainer.model
    assert model.num_classes == 2 and model.configuration()["num_features"] == 2


@pytest.mark.parametrize("model", ["gat", "sage"])
def test_disentangled_and_plain_on_a_network(merged_nodes: Cli, model: str) -> None:
    arguments = ("--json", "--model", model, "--set", "batch=4", "--set", "graph=part")
    divided = results_of(merged_nodes(*arguments, "--disentangled", "--set", "top=2"))
    assert (divided["settings"]["components"], divided["settings"]["top"]) == (8, 2)
    assert divided["model"] == model and divided["protocol"]["graph"] == "part"
    plain = results_of(merged_nodes(*arguments))
    assert plain["settings"]["components"] == 0
    assert plain["validation"]["loss"] != divided["validation"]["loss"]


def test_the_table_of_a_network(merged_nodes: Cli) -> None:
    code, out, err = merged_nodes()
    assert (code, err) == (0, "")
    assert "circles" in out and "gat" in out and "accuracy" in out.lower() and "MRR" not in out


def test_a_model_of_the_other_task_is_one_line(merged_nodes: Cli) -> None:
    refused(merged_nodes("--model", "transe", "--out", "runs/never"), "transe", "network", "gat")
    refused(merged_nodes("--set", "negatives=3"), "setting", "'negatives'")
    assert not Path("runs").exists()


def test_a_model_of_nodes_on_a_knowledge_graph_is_one_line(cli: Cli) -> None:
    refused(cli("run", "ring", "--merged", "--model", "gat"), "gat", "knowledge graph")

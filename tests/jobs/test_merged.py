"""All parts merged: files, numbers, divergence."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from dicgrl import (
    KnowledgeStream,
    Learner,
    UserError,
)
from dicgrl.common.devices import pick_device
from dicgrl.datasets.synthetic import aspect_graph
from dicgrl.graph import KnowledgeStreamBuilder
from dicgrl.jobs.merged import run_merged
from dicgrl.models import KnowledgeModel
from dicgrl.recipes import Recipe
from dicgrl.settings import Settings
from dicgrl.store.checkpoint import load_model
from dicgrl.store.run_folder import RunFolder
from dicgrl.trainers import LinkTrainer
from dicgrl.trainers.protocol import LINK_PROTOCOL
from dicgrl.training import DivergedError, EpochReport
from tests.stores import FILES

SMALL: dict[str, Any] = {
    "dim": 8,
    "epochs": 4,
    "batch": 64,
    "lr": 0.05,
    "negatives": 4,
    "margin": 3.0,
    "validate_every": 2,
}


@pytest.fixture(scope="module")
def stream() -> KnowledgeStream:
    graph = aspect_graph(entities=40, aspects=2, relations_per_aspect=2, levels=4, triples=400)
    return graph.stream


def recipe_of(**changes: Any) -> Recipe:
    return Recipe("best", Settings().changed(SMALL | changes), {"mrr": 30.5})


def link_run(stream: KnowledgeStream, recipe: Recipe) -> LinkTrainer:
    found = LinkTrainer(recipe.settings, 0, torch.device("cpu"))
    found.take(stream.merged()[0])
    return found


def run(stream: KnowledgeStream, recipe: Recipe, **arguments: Any) -> dict[str, Any]:
    return run_merged(stream, recipe, device="cpu", **arguments)


@pytest.mark.parametrize(
    "changes", [{}, {"components": 4, "top": 2}, {"model": "convkb", "filters": 4}]
)
def test_a_run_leaves_its_files_and_a_model_that_scores_the_same(
    stream: KnowledgeStream, tmp_path: Path, changes: dict[str, Any]
) -> None:
    out = tmp_path / "deep" / "run"
    recipe = recipe_of(**changes)
    heard: list[EpochReport] = []
    results = run(stream, recipe, seed=3, out=out, monitor=heard.append)
    assert {path.name for path in out.iterdir()} == FILES
    assert json.loads((out / "results.json").read_text()) == json.loads(json.dumps(results))
    trace = [json.loads(line) for line in (out / "trace.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in trace] == [1, 2, 3, 4] == [entry.epoch for entry in heard]
    assert [line["validation"] is None for line in trace] == [True, False, True, False]
    assert all(math.isfinite(line["loss"]) for line in trace)

    # The saved model gives the numbers of the results: it is the one that was measured.
    again = Learner.load(out, device="cpu").trainer
    assert again.measure(again.examples("test")) == results["test"]
    assert again.measure(again.examples("valid")) == results["validation"]


def test_a_run_is_not_overwritten(stream: KnowledgeStream, tmp_path: Path) -> None:
    run(stream, recipe_of(), out=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UserError, match="already holds a run"):
        run(stream, recipe_of(), seed=1, out=tmp_path)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_results_say_what_was_done(stream: KnowledgeStream, tmp_path: Path) -> None:
    recipe = recipe_of()
    results = run(stream, recipe, seed=7, out=tmp_path)
    part = stream.merged()[0]
    assert results["dataset"] == "synthetic"
    assert (results["model"], results["recipe"], results["setting"]) == ("transe", "best", "whole")
    assert (results["seed"], results["device"]) == (7, "cpu")
    assert Settings(**results["settings"]) == recipe.settings
    assert results["published"] == {"mrr": 30.5}
    assert results["count"] == {
        "train": len(part.train),
        "valid": len(part.valid),
        "test": len(part.test),
    }
    assert results["epochs"] == 4 and results["best_epoch"] in (2, 4)
    assert results["learn_seconds"] > 0 and results["evaluate_seconds"] > 0
    for split in ("validation", "test"):
        shares = {"mrr", "hits@1", "hits@3", "hits@10"}
        others = {f"{name}_others" for name in shares}
        assert set(results[split]) == shares | others | {"mean_rank"}
        assert 0 < results[split]["mrr"] <= 1
    assert set(results["protocol"]) == set(LINK_PROTOCOL)
    config = RunFolder(tmp_path).config()
    for key in ("dataset", "task", "model", "recipe", "setting", "seed", "settings", "protocol"):
        assert config[key] == results[key]


def test_training_helps(stream: KnowledgeStream) -> None:
    start = link_run(stream, recipe_of())
    before = start.measure(start.examples("test"))["mrr"]
    after = run(stream, recipe_of(epochs=20))["test"]["mrr"]
    assert after > before + 0.05


def test_every_known_triple_is_filtered() -> None:
    # a is the head of one triple of each set; of the 5 entities only a and e compete with d.
    builder = KnowledgeStreamBuilder("filtered")
    rows = builder.rows(["a", "a", "a", "e"], ["r"] * 4, ["b", "c", "d", "b"])
    builder.add(rows[[0, 3]], rows[1:2], rows[2:3])
    run = link_run(builder.build(), recipe_of())
    for table in run.model.tables().values():
        table.rows.zero_()  # all the same: the middle rank of what is left
    test, valid = run.examples("test"), run.examples("valid")
    ranks = run.ranks(test)
    assert ranks.candidates.tolist() == [[5], [3]]
    assert run.measure(test)["mean_rank"] == ((1 + 5) / 2 + (1 + 3) / 2) / 2
    assert run.measure(valid)["mean_rank"] == ((1 + 5) / 2 + (1 + 3) / 2) / 2


def numbers(results: dict[str, Any]) -> dict[str, Any]:
    return {key: results[key] for key in ("test", "validation", "epochs", "best_epoch")}


@pytest.mark.parametrize(
    "changes", [{}, {"components": 4, "top": 2, "model": "convkb", "filters": 4}]
)
def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(
    stream: KnowledgeStream, changes: dict[str, Any]
) -> None:
    recipe = recipe_of(**changes)
    first, same, other = (numbers(run(stream, recipe, seed=seed)) for seed in (1, 1, 2))
    assert first == same
    assert first["test"] != other["test"]


def test_the_parts_of_a_stream_are_merged(stream: KnowledgeStream) -> None:
    parts = stream.split("order", [0.6, 0.4])
    assert len(parts) == 2
    results = run(parts, recipe_of(epochs=1))
    assert results["count"]["train"] == sum(len(part.train) for part in parts)
    assert results["count"]["test"] == sum(len(part.test) for part in parts)


def test_nothing_is_written_unless_asked(
    stream: KnowledgeStream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(stream, recipe_of(epochs=1))
    assert list(tmp_path.iterdir()) == []


def test_a_graph_without_validation_and_test_triples() -> None:
    builder = KnowledgeStreamBuilder("bare")
    train = builder.rows(["a", "b", "c"], ["r", "r", "s"], ["b", "c", "a"])
    builder.add(train, train[:0], train[:0])
    results = run(builder.build(), recipe_of())
    assert results["validation"] is None and results["test"] is None
    assert results["epochs"] == results["best_epoch"] == 4


@pytest.mark.parametrize(
    "changes", [{"lr": 1e30, "p": 2}, {"lr": 1e30, "model": "convkb", "filters": 4}]
)
def test_a_run_that_diverges_leaves_the_last_good_model(
    stream: KnowledgeStream, tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(DivergedError, match=r"not finite at step \d+"):
        run(stream, recipe_of(**changes), out=tmp_path)
    assert not (tmp_path / "results.json").exists()
    assert (tmp_path / "store.sqlite").exists() and (tmp_path / "trace.jsonl").exists()
    model, _ = load_model(tmp_path)
    assert model.num_entities == stream.merged()[0].num_entities
    for table in model.tables().values():
        assert all(values.isfinite().all() for values in table.snapshot().values())
    ids = torch.arange(model.num_entities)
    assert model.score(ids, ids * 0, ids).isfinite().all()
    # Nothing good came after the start.
    start = KnowledgeModel(**model.configuration())
    start.grow(model.num_entities, model.num_relations)
    assert torch.equal(start.entities.rows, model.entities.rows)


def test_fewer_validation_triples_are_looked_at_where_asked(
    stream: KnowledgeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    original = LinkTrainer.measure

    def watched(self: LinkTrainer, triples: torch.Tensor) -> dict[str, float]:
        seen.append(len(triples))
        return original(self, triples)

    monkeypatch.setattr(LinkTrainer, "measure", watched)
    results = run(stream, recipe_of(validate_at_most=3, validate_every=4))
    assert seen == [3, results["count"]["valid"]]
    seen.clear()
    run(stream, recipe_of(validate_at_most=0, validate_every=4))
    assert seen[0] == results["count"]["valid"]


def test_devices() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(UserError, match="device 'tpu': expected auto, cpu or cuda"):
        pick_device("tpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_missing_gpu_is_said(stream: KnowledgeStream) -> None:
    with pytest.raises(UserError, match="no CUDA device here; use --device cpu"):
        run_merged(stream, recipe_of(), device="cuda")

"""Runs that releases up to 0.1 wrote: their settings are in an older layout, all else is as now.

There the configuration held the settings of all strategies and losses, and those of the scorer
apart from them. `dim` was the length of a whole vector, also of one that is divided.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dicgrl import Learner
from dicgrl.common.atomic import write_json
from dicgrl.jobs.learn import learn_facts
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.sealed import checksum, read_sealed, write_sealed
from tests.learner.helpers import assert_same
from tests.runs import measured, read_json, recipe_of, run
from tests.tiny import learner_of, stream_of, taught

# As a configuration of then has them, those of other strategies with values of their own.
STRATEGIES: dict[str, Any] = {
    "strategy": "lower", "later_epochs": 0, "later_rate": 1.0, "validate_on": "seen",
    "start": "auto", "budget": "20%,5x", "strength": 300.0, "orders": 2, "weight1": 0.5,
    "weight2": 0.25, "refresh": 0, "fan": 32, "selection": "sample", "arrive_epochs": 1,
    "shield": "activated", "shield_rank": 30, "guard": False, "arrive_last": False, "pace": 3.0,
    "max_drift": 0.0, "average": False,
}  # fmt: skip
LINKS: dict[str, Any] = {
    "model": "transe", "dim": 8, "components": 0, "top": 4, "attention": "relation",
    "routing": "learned", "order": "component", "options": {"p": 1}, "loss": "selfadversarial",
    "margin": 9.0, "temperature": 1.0, "negatives": 32, "weighting": "frequency", "beta": 0.1,
    "epochs": 2, "batch": 256, "lr": 0.005, "halve_every": 0, "decay": 1.0, "weight_decay": 0.0,
    "clip": 0.0, "dense_rate": 1.0, "validate_every": 5, "patience": 0, "validate_at_most": 2000,
}  # fmt: skip
NODES: dict[str, Any] = {
    "model": "gat", "hidden": 4, "heads": 8, "layers": 2, "dropout": 0.4, "components": 8,
    "top": 4, "routing": "learned", "features": "l2", "graph": "accumulated", "batch": 0,
    "neighbours": 10, "beta": 0.1, "epochs": 2, "lr": 0.01, "halve_every": 0, "decay": 0.0,
    "weight_decay": 0.0005, "clip": 0.0, "validate_every": 1, "patience": 50,
}  # fmt: skip
RUNS = [("links", "lower"), ("links", "ewc"), ("links", "dicgrl"), ("nodes", "dicgrl")]
RELEASED = {"format": "dicgrl-run-2"}


def as_released(folder: Path) -> None:
    """Give the files of a run the layout of then."""
    for place in folder.glob("part-*"):
        part, report = (read_sealed(place / name) for name in ("part.json", "report.json"))
        if "model.json" in part["files"]:
            part["files"]["model.json"] = model_as_released(place / "model.json")
        write_sealed(place / "part.json", part | RELEASED)
        write_sealed(place / "report.json", report | RELEASED)
    config = RunFolder(folder).config() | RELEASED
    settings = (LINKS if config["model"] == "transe" else NODES) | STRATEGIES
    now = dict(config["settings"])
    if "options" in settings:
        settings["options"] = {"p": now.pop("p")}
    assert now.keys() - settings.keys() <= {"dense_rate"}  # networks did not have it
    config["settings"] = settings | {name: now[name] for name in now.keys() & settings.keys()}
    config["settings"] |= whole_length(config["settings"])
    write_sealed(folder / "config.json", config)
    if (folder / "results.json").exists():
        results = read_json(folder / "results.json")
        results["settings"] |= whole_length(results["settings"])
        write_json(folder / "results.json", results)


def model_as_released(path: Path) -> str:
    """Write the description of a model as it was then; its checksum."""
    description = read_json(path)
    if "length" in description["model"]:
        description["model"]["dim"] = description["model"].pop("length")
    write_json(path, description)
    return checksum(path)


def whole_length(settings: dict[str, Any]) -> dict[str, Any]:
    """What `dim` was then."""
    if not settings["components"] or "dim" not in settings:
        return {}
    assert settings["dim"] % settings["top"] == 0
    return {"dim": settings["dim"] // settings["top"] * settings["components"]}


@pytest.mark.parametrize(("kind", "strategy"), RUNS)
def test_it_is_loaded_and_learns_on(kind: str, strategy: str, tmp_path: Path) -> None:
    learner = taught(learner_of(kind, strategy), 2)
    learner.save(tmp_path)
    as_released(tmp_path)
    loaded = Learner.load(tmp_path, device="cpu")
    assert loaded.settings == learner.settings
    assert_same(loaded, learner)
    if kind == "links":
        question = [("e1", "plus 1", None)]
        assert loaded.predict_links(question) == learner.predict_links(question)
    else:
        assert loaded.predict(node="n3") == learner.predict(node="n3")
    taught(loaded).save(tmp_path)
    assert_same(Learner.load(tmp_path, device="cpu"), taught(learner))


@pytest.mark.parametrize(("kind", "strategy"), RUNS)
def test_it_is_resumed_and_has_an_overview(kind: str, strategy: str, tmp_path: Path) -> None:
    stream, recipe = stream_of(kind), recipe_of(kind, strategy)
    run(stream[:2], recipe, out=tmp_path)
    as_released(tmp_path)
    overview = RunFolder(tmp_path).overview()
    assert len(overview["parts"]) == 2
    if kind == "links":
        assert overview["settings"]["dim"] == overview["vector"]["active"] == recipe.settings.dim
        assert overview["vector"]["length"] == (16 if strategy == "dicgrl" else 8)
        assert RunFolder(tmp_path).results()["settings"]["dim"] == recipe.settings.dim
    resumed = run(stream, recipe, out=tmp_path, resume=True)
    assert measured(resumed) == measured(run(stream, recipe))


def test_facts_become_its_next_part(tmp_path: Path) -> None:
    out, facts = tmp_path / "run", tmp_path / "facts.tsv"
    run(stream_of("links")[:2], recipe_of("links", "ewc"), out=out)
    as_released(out)
    facts.write_text("e1\tlikes\tnewcomer\n", encoding="utf-8")
    results = learn_facts(out, facts, device="cpu").results
    assert len(results["parts"]) == 3 and len(RunFolder(out).results()["parts"]) == 3
    assert Learner.load(out, device="cpu").predict("e1", "likes")


def test_it_becomes_one_of_this_version_with_its_names(tmp_path: Path) -> None:
    learner = taught(learner_of("links", "dicgrl"), 2)
    learner.save(tmp_path)
    as_released(tmp_path)
    loaded = Learner.load(tmp_path, device="cpu")
    loaded.learn([("e1", "plus 1", "e7")], names={"e1": "one"})
    loaded.save(tmp_path)
    config = read_json(tmp_path / "config.json")
    assert config["format"] != RELEASED["format"]
    assert config["settings"]["dim"] == learner.settings.dim
    again = Learner.load(tmp_path, device="cpu")
    assert again.settings == learner.settings and again.names["e1"] == "one"

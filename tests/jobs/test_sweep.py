"""Sweeps: every combination once, on validation data alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest

import dicgrl
import dicgrl.jobs.sweep
from dicgrl import (
    KnowledgeStream,
    Learner,
    NetworkStream,
    UserError,
    load_stream,
)
from dicgrl.datasets.synthetic import aspect_graph
from dicgrl.errors import FailureError
from dicgrl.graph import Stream
from dicgrl.jobs.sweep import Sweep, run_sweep, validation_value, without_test
from dicgrl.jobs.sweep_grid import parse_grid
from dicgrl.jobs.sweep_recipe import recipe_text
from dicgrl.jobs.sweep_study import Trial
from dicgrl.recipes import Recipe, load_recipe
from dicgrl.settings import Settings
from dicgrl.training import DivergedError

GRID = {"lr": ["0.1", "0.2", "0.3"], "top": ["1", "2"]}
BASE = Recipe("best", Settings(strategy="lower", components=2, top=2, dim=4))
PARTS = ([("a", "r", "b"), ("b", "r", "a")], [("c", "r", "a"), ("c", "r", "b")])
STREAM = KnowledgeStream.from_labels("two", PARTS, valid=0.5)
UNJUDGED = KnowledgeStream.from_labels("two", PARTS)


class Objective:
    """Stands for training: 0.2 is the best rate and 2 the best top."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[float, int, int]] = []
        self.interrupt_at = 0
        monkeypatch.setattr(dicgrl.jobs.sweep, "validation_value", self)

    def __call__(
        self, stream: Stream, settings: Settings, *, merged: bool, seed: int, device: str
    ) -> float:
        del stream, merged, device
        self.asked.append((settings.lr, settings.top, seed))
        if len(self.asked) == self.interrupt_at:
            raise KeyboardInterrupt
        if settings.lr == 0.3:
            raise DivergedError(1, 1, "loss")
        return settings.top / 10 + (0.5 if settings.lr == 0.2 else 0) + seed / 100


@pytest.fixture
def objective(monkeypatch: pytest.MonkeyPatch) -> Objective:
    return Objective(monkeypatch)


def sweep(
    study: Path | None = None, grid: Mapping[str, list[str]] = GRID, **named: int | None
) -> Sweep:
    return run_sweep(STREAM, BASE, grid, device="cpu", study=study, **named)  # type: ignore[arg-type]


def test_every_combination_once_best_first(objective: Objective) -> None:
    found = sweep(seeds=2)
    assert sorted(objective.asked) == sorted(
        (lr, top, seed)
        for lr in (0.1, 0.2, 0.3)
        for top in (1, 2)
        for seed in ((0, 1) if lr < 0.3 else (0,))  # diverged at its first seed
    )
    assert [trial.value for trial in found.trials[:4]] == pytest.approx(
        [0.705, 0.605, 0.205, 0.105]
    )
    assert found.trials[0].values == {"lr": "0.2", "top": "2"}
    assert {trial.state for trial in found.trials[4:]} == {"diverged"}
    assert (found.settings.lr, found.settings.components) == (0.2, 2)


def test_some_of_the_combinations(objective: Objective) -> None:
    found = sweep(trials=3)
    assert len(found.trials) == len(objective.asked) == len(set(objective.asked)) == 3
    assert len(sweep(trials=50).trials) == 6


def test_settings_that_exclude_each_other_are_passed_over(objective: Objective) -> None:
    found = sweep(grid={"components": ["1", "2"], "lr": ["0.1"]})  # top is 2
    assert len(objective.asked) == 1
    assert [trial.state for trial in found.trials] == ["complete", "impossible"]
    with pytest.raises(FailureError, match=r"none of 1 combinations .* top=2 of components=1"):
        sweep(grid={"components": ["1"]})
    with pytest.raises(FailureError, match="none of 2 combinations"):
        sweep(grid={"lr": ["0.3"], "top": ["1", "2"]})


def test_it_goes_on_where_it_stopped(objective: Objective, tmp_path: Path) -> None:
    study = tmp_path / "new" / "study.db"
    objective.interrupt_at = 3
    with pytest.raises(KeyboardInterrupt):
        sweep(study)
    interrupted = objective.asked[2]
    found = sweep(study)
    assert len(found.trials) == 6
    assert len(objective.asked) == 7 and objective.asked.count(interrupted) == 2
    again = sweep(study)
    assert len(objective.asked) == 7  # nothing is left to do
    assert again.trials == found.trials


def test_a_study_of_something_else_is_refused(objective: Objective, tmp_path: Path) -> None:
    study = tmp_path / "study.db"
    grid = {"lr": ["0.1", "0.2"]}
    sweep(study, grid, trials=1)
    assert len(sweep(study, grid, trials=2).trials) == 2  # more of the same
    with pytest.raises(UserError, match=r"study.db: the sweep there has another seeds"):
        sweep(study, grid, seeds=2)
    with pytest.raises(UserError, match="another grid"):
        sweep(study, {"lr": ["0.1"]})
    other = KnowledgeStream.from_labels("two", [*PARTS, [("d", "r", "b")]], valid=0.5)
    with pytest.raises(UserError, match="another data"):
        run_sweep(other, BASE, grid, device="cpu", study=study)
    # One of a version in which `dim` had another meaning.
    (name,) = optuna.get_all_study_names(f"sqlite:///{study}")
    kept = optuna.load_study(study_name=name, storage=f"sqlite:///{study}")
    kept.set_user_attr(
        "about", {k: v for k, v in kept.user_attrs["about"].items() if k != "format"}
    )
    with pytest.raises(UserError, match="another format"):
        sweep(study, grid, trials=2)


@pytest.mark.parametrize("what", ["text", "folder", "truncated", "question mark"])
def test_what_is_no_study_is_one_message(what: str, objective: Objective, tmp_path: Path) -> None:
    study = tmp_path / ("a?b.db" if what == "question mark" else "study.db")
    if what == "text":
        study.write_text("a\tr\tb\n" * 500)
    elif what == "folder":
        study.mkdir()
    elif what == "truncated":
        sweep(study, {"lr": ["0.1"]})
        study.write_bytes(study.read_bytes()[:5000])
    with pytest.raises(UserError, match="stud") as refused:
        sweep(study)
    assert "\n" not in str(refused.value)


def test_a_combination_that_a_strategy_refuses_is_impossible() -> None:
    base = Recipe("best", Settings(strategy="dicgrl", components=2, top=2, dim=4, epochs=1))
    found = run_sweep(STREAM, base, {"components": ["0", "2"]}, device="cpu")
    assert [trial.state for trial in found.trials] == ["complete", "impossible"]


def test_merged_parts_need_no_components_whatever_learns_what_follows() -> None:
    base = Recipe("best", Settings(strategy="dicgrl", components=2, top=2, dim=4, epochs=1))
    found = run_sweep(STREAM, base, {"components": ["0", "2"]}, merged=True, device="cpu")
    assert [trial.state for trial in found.trials] == ["complete", "complete"]


def test_unknown_settings_are_refused_before_anything_is_learned(objective: Objective) -> None:
    with pytest.raises(UserError, match="lr='fast': expected a number"):
        sweep(grid={"lr": ["1e-3", "fast"]})
    with pytest.raises(UserError, match="unknown setting 'learning'"):
        sweep(grid={"learning": ["1"]})
    assert not objective.asked


def test_values_with_commas_reach_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def learn(stream: Stream, settings: Settings, **named: object) -> float:
        del stream, named
        tried.append(settings.budget)
        return 1.0 if "," in settings.budget else 0.0

    monkeypatch.setattr(dicgrl.jobs.sweep, "validation_value", learn)
    base = Recipe("best", Settings(strategy="emr", dim=4))
    found = run_sweep(STREAM, base, parse_grid(["budget=5%,5x;10%"]), device="cpu")
    assert sorted(tried) == ["10%", "5%,5x"] and found.settings.budget == "5%,5x"


def test_settings_that_no_trial_has_a_use_for_are_refused(objective: Objective) -> None:
    with pytest.raises(UserError, match="budget has no effect with strategy lower"):
        sweep(grid={"budget": ["5%", "10%"]})
    plain = Recipe("best", Settings(strategy="lower", dim=4))
    with pytest.raises(UserError, match="top has no effect on a plain model"):
        run_sweep(STREAM, plain, {"top": ["1", "2"]}, device="cpu")
    assert not objective.asked
    grid = {"top": ["1", "2"], "components": ["0", "2"]}  # some are divided
    assert len(run_sweep(STREAM, plain, grid, device="cpu").trials) == 4
    grid = {"budget": ["5%", "10%"], "strategy": ["lower", "emr"]}  # some replay
    assert len(run_sweep(STREAM, plain, grid, device="cpu").trials) == 4


def test_grids() -> None:
    assert parse_grid(["a=1, 2,1", " b = x"]) == {"a": ["1", "2"], "b": ["x"]}
    assert parse_grid(["budget=5%,5x; 10%", "b=1;2"]) == {
        "budget": ["5%,5x", "10%"],
        "b": ["1", "2"],
    }
    for text in ("a", "a=", "=1", "a=1,,2", "a=1;;2", "a=1,2;"):
        with pytest.raises(UserError, match="expected key=value,value"):
            parse_grid([text])
    with pytest.raises(UserError, match="is given twice"):
        parse_grid(["a=1", "a=2"])


def small_links() -> KnowledgeStream:
    graph = aspect_graph(entities=40, triples=600).stream
    return graph.split("arrival", [0.7, 0.3], valid=0.1, test=0.1)


def small_nodes() -> NetworkStream:
    stream = load_stream("film-genres")
    assert isinstance(stream, NetworkStream)
    return stream[:2]


def poisoned(stream: Stream) -> Stream:
    """Test sets of ids that do not exist: whoever looks at them fails."""
    parts = tuple(replace(part, test=np.full_like(part.test, 1 << 30)) for part in stream)
    return replace(stream, parts=parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("whole", [False, True], ids=["parts", "whole"])
@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_the_test_sets_are_never_read(kind: str, whole: bool) -> None:
    strategy = None if whole else "emr"
    if kind == "links":
        stream: Stream = small_links()
        recipe = load_recipe("best", "films", "transe", strategy=strategy)
        recipe = Recipe("best", recipe.settings.changed({"dim": 8, "epochs": 2}))
    else:
        stream = small_nodes()
        recipe = load_recipe("best", "film-genres", "gat", strategy=strategy)
        recipe = Recipe("best", recipe.settings.changed({"hidden": 2, "heads": 2, "epochs": 2}))
    grid = {"lr": ["0.01", "0.05"]}
    clean, other = (
        run_sweep(given, recipe, grid, merged=whole, device="cpu")
        for given in (stream, poisoned(stream))
    )
    assert other.trials == clean.trials
    assert all(trial.value for trial in clean.trials)


def test_the_objective_is_the_mean_over_the_parts_after_the_last() -> None:

    stream = without_test(small_links())
    settings = Settings(strategy="lower", dim=8, epochs=3, lr=0.05)
    learner = Learner(settings=settings, device="cpu")
    for part in stream:
        learner.learn(part)
    run = learner.trainer
    by_part = [run.measure(run.examples("valid", i, i + 1))["hits@10"] for i in range(2)]
    assert validation_value(stream, settings, device="cpu") == pytest.approx(sum(by_part) / 2)
    assert by_part[0] != by_part[1]


def test_without_validation_data_there_is_nothing_to_choose_by() -> None:
    with pytest.raises(UserError, match="two: no validation data"):
        validation_value(UNJUDGED, Settings(dim=4, epochs=1), device="cpu")


def test_without_validation_data_nothing_is_tried(objective: Objective, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="two: no validation data to choose settings by; see --valid"
    ):
        run_sweep(UNJUDGED, BASE, GRID, device="cpu", study=tmp_path / "study.db")
    assert not objective.asked and not list(tmp_path.iterdir())


def best(settings: Settings, merged: bool = False) -> Sweep:
    return Sweep("films", "hits@10", merged, 1, [Trial({"lr": "0.2"}, 0.5, "complete")], settings)


def test_the_chosen_settings_come_back_from_their_file(tmp_path: Path) -> None:
    path = tmp_path / "chosen.toml"
    divided = Settings(strategy="dicgrl", components=4, top=2, lr=1e-5, budget="20%")
    divided = divided.changed({"p": 2})
    plain = Settings("sage", "emr", hidden=3, dropout=0.3)
    for settings, has_parts in ((divided, True), (plain, False)):
        path.write_text(recipe_text(best(settings)), encoding="utf-8")
        loaded = load_recipe(
            str(path),
            "anything",
            settings.model,
            disentangled=has_parts,
            strategy=settings.strategy,
        )
        assert loaded.settings == settings and loaded.name == str(path)
    whole = Settings("convkb", "fresh", lr=0.5)
    path.write_text(recipe_text(best(whole, merged=True)), encoding="utf-8")
    assert load_recipe(str(path), "anything", "convkb").settings == whole


def test_recipe_files_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(UserError, match=r"mine.toml: no such recipe file"):
        load_recipe(str(path), "films", "transe")
    path.write_text("[settings")
    with pytest.raises(UserError, match=r"mine.toml: not a recipe"):
        load_recipe(str(path), "films", "transe")
    path.write_text('model = "convkb"\n[settings]\nfilters = 3\n')
    with pytest.raises(UserError, match="is a recipe of convkb; use --model convkb"):
        load_recipe(str(path), "films", "transe")
    path.write_text("[settings]\nfilter = 3\n")
    with pytest.raises(UserError, match="unknown setting 'filter'"):
        load_recipe(str(path), "films", "transe")

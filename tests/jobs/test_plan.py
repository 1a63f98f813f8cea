"""Plans find mistakes before anything runs; `dicgrl.run` does what the command does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dicgrl
from dicgrl import UserError
from dicgrl.jobs.plan import plan_runs
from tests.runs import files_in, measured, recipe_of, run
from tests.tiny import LINKS, NODES, circles, ring, write_ring

SMALL: dict[str, Any] = LINKS | {"epochs": 1}


def test_a_plan_is_made_without_learning_or_writing(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    plan = plan_runs(ring(), strategies=["lower", "emr", "lower"], changes=SMALL, out=out)
    assert [planned.title for planned in plan.runs] == ["ring rotate lower", "ring rotate emr"]
    assert [planned.out for planned in plan.runs] == [out / "lower", out / "emr"]
    assert {planned.recipe.settings.epochs for planned in plan.runs} == {1}
    assert not out.exists()
    (merged,) = plan_runs(ring(), merged=True, out=out).runs
    assert merged.merged and merged.out == out and merged.title == "ring rotate"


@pytest.mark.parametrize(
    ("asked", "mentioned"),
    [
        ({"strategies": ["lower", "dicgl"]}, "did you mean 'dicgrl'"),
        ({"strategies": ["lower"], "merged": True}, "leave out one of the two"),
        ({"strategies": ["lower"], "changes": {"budget": "5%"}}, "budget has no effect"),
        ({"strategies": ["lower"], "changes": ["budget=5%"]}, "budget has no effect"),
        ({"changes": {"epoch": 3}}, "did you mean 'epochs'"),
        ({"changes": {"strategy": "emr"}}, "use --strategy emr"),
        ({"strategies": ["dicgrl"], "disentangled": False}, "disentangled model"),
        ({"model": "gat"}, "knowledge graph"),
        ({"resume": True}, "--resume is about the parts in a run folder"),
        ({"keep": "last", "merged": True, "out": Path("x")}, "leave out --merged"),
        ({"keep": "least", "out": Path("x")}, "did you mean 'last'"),
        ({"device": "tpu"}, "device 'tpu'"),
        ({"recipe": "papr"}, "did you mean 'paper'"),
    ],
)
def test_a_mistake_is_found_by_the_plan(asked: dict[str, Any], mentioned: str) -> None:
    with pytest.raises(UserError, match=mentioned):
        plan_runs(ring(), **asked)


def test_folders_that_hold_something_else_are_found_by_the_plan(begun: Path) -> None:
    before = files_in(begun.parent)
    for asked, mentioned in (
        ({"out": begun}, "already holds a run"),
        ({"out": begun, "merged": True}, "already holds a run; choose another folder$"),
        ({"out": begun, "strategies": ["lower", "emr"]}, "need a folder of their own"),
        ({"out": begun.parent}, "holds the runs run"),
    ):
        with pytest.raises(UserError, match=mentioned):
            plan_runs(ring(), **asked)  # type: ignore[arg-type]
    assert files_in(begun.parent) == before


def test_python_runs_as_the_jobs_do(tmp_path: Path) -> None:
    told: list[int] = []
    results = dicgrl.run(
        ring(),
        "lower",
        model="transe",
        out=tmp_path / "run",
        device="cpu",
        on_part=lambda so_far: told.append(len(so_far["parts"])),
        **LINKS,
    )
    assert measured(results)["parts"] == measured(run(ring(), recipe_of("links")))["parts"]
    stored = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(results)) and told == [1, 2, 3]
    again = dicgrl.run(
        ring(), "lower", model="transe", out=tmp_path / "run", resume=True, device="cpu", **LINKS
    )
    assert measured(again) == measured(results)


def test_python_compares_strategies_and_reads_data(tmp_path: Path) -> None:
    place = write_ring(tmp_path / "ring")
    found = dicgrl.run(place, ["lower", "emr"], device="cpu", **SMALL)
    assert [each["strategy"] for each in found] == ["lower", "emr"]
    (alone,) = dicgrl.run(str(place), ["lower"], device="cpu", **SMALL)
    assert measured(alone) == measured(found[0])


def test_python_merges_parts() -> None:
    epochs: list[int] = []
    settings = NODES | {"epochs": 2}
    results = dicgrl.run(
        circles(),
        merged=True,
        device="cpu",
        on_epoch=lambda part, report: epochs.append(10 * part + report.epoch),
        **settings,
    )
    assert (results["setting"], results["model"], epochs) == ("whole", "gat", [1, 2])


def test_a_stream_has_its_held_out_sets() -> None:
    with pytest.raises(UserError, match="split the stream"):
        dicgrl.run(ring(), test=0.1)

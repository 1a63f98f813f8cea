"""Cells are run once, go on after an interruption, and fail alone."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from dicgrl.errors import UserError
from dicgrl.research.cells import Cell, cell_path, load_cell, run_cell
from dicgrl.research.engine import run_cells
from tests import children
from tests.research.conftest import SMALL

DIM = ("dim=8", "arrive_epochs=1", *SMALL)


def record(folder: Path, cell: Cell, device: str, at_once: int) -> None:
    """Stands for `run_cell`: notes the seed, as a finished cell does; seeds from 90 on fail."""
    del device
    if cell.seed == 99:
        os._exit(7)  # as the system ends a process that takes too much memory
    if cell.seed == 98:
        raise ValueError("unlucky " * 100_000)
    if cell.seed >= 90:
        raise ValueError(f"seed {cell.seed} is unlucky")
    path = cell_path(folder, cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {
        "format": "dicgrl-cell-2",
        "identity": cell.identity(),
        "finished": "2026-11-15T10:00:00+00:00",
        "at_once": at_once,
        "results": {"seed": cell.seed, "ran": os.getpid()},
    }
    path.write_text(json.dumps(stored))


def interrupt(folder: Path, cell: Cell, device: str, at_once: int) -> None:
    if cell.seed == 2:
        raise KeyboardInterrupt
    record(folder, cell, device, at_once)


def seeds(*numbers: int) -> list[Cell]:
    return [Cell("ring", "transe", "lower", seed=number) for number in numbers]


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    first = run_cells(seeds(0, 1), tmp_path, device="cpu", run=record)
    assert [cell.seed for cell in first.ran] == [0, 1] and not first.kept
    again = run_cells(seeds(0, 1, 2, 0), tmp_path, device="cpu", run=record)
    assert [cell.seed for cell in again.kept] == [0, 1]
    assert [cell.seed for cell in again.ran] == [2]


def test_an_interruption_keeps_what_was_finished(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_cells(seeds(0, 1, 2, 3), tmp_path, device="cpu", run=interrupt)
    resumed = run_cells(seeds(0, 1, 2, 3), tmp_path, device="cpu", run=record)
    assert [cell.seed for cell in resumed.kept] == [0, 1]
    assert [cell.seed for cell in resumed.ran] == [2, 3]


def test_a_failing_cell_fails_alone(tmp_path: Path) -> None:
    outcome = run_cells(seeds(0, 90, 1), tmp_path, device="cpu", run=record)
    assert [cell.seed for cell in outcome.ran] == [0, 1]
    assert list(outcome.failed.values()) == ["ValueError: seed 90 is unlucky"]
    assert next(iter(outcome.failed)).seed == 90


@pytest.mark.parametrize("jobs", [1, 2])
def test_when_the_time_is_up_no_further_cell_begins(tmp_path: Path, jobs: int) -> None:
    outcome = run_cells(seeds(0, 1), tmp_path, device="cpu", jobs=jobs, minutes=0, run=record)
    assert not outcome.ran and [cell.seed for cell in outcome.left] == [0, 1]
    outcome = run_cells(seeds(0, 1), tmp_path, device="cpu", minutes=9, run=record)
    assert not outcome.left and [cell.seed for cell in outcome.ran] == [0, 1]


def test_several_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Processes that start without importing PyTorch anew, as they do with "spawn".
    server = children.context()
    monkeypatch.setattr("multiprocessing.get_context", lambda _: server)
    begun: list[str] = []
    ended: list[str] = []

    class Watch:
        def __init__(self, count: int) -> None:
            assert count == 3

        def __enter__(self) -> tuple[object, object]:
            return (lambda cell: begun.append(str(cell))), (lambda cell: ended.append(str(cell)))

        def __exit__(self, *_: object) -> None: ...

    cells = seeds(0, 98, 99)
    outcome = run_cells(
        cells,
        tmp_path,
        device="cpu",
        jobs=2,
        watch=Watch,  # type: ignore[arg-type]
        run=record,
    )
    assert [cell.seed for cell in outcome.ran] == [0]
    reasons = {cell.seed: reason for cell, reason in outcome.failed.items()}
    # A long reason is cut: nobody waits for its end.
    assert reasons[98].startswith("ValueError: unlucky unlucky") and len(reasons[98]) < 10_000
    assert reasons[99] == "its process ended with exit code 7"
    assert sorted(begun) == sorted(ended) == sorted(map(str, cells))
    for cell in outcome.ran:
        done = load_cell(tmp_path, cell)
        assert done is not None and done.at_once == 2
        assert done.results["ran"] != os.getpid()


def test_a_cell_of_other_settings_is_not_taken(tmp_path: Path) -> None:
    (cell,) = seeds(0)
    record(tmp_path, cell, "cpu", 1)
    assert load_cell(tmp_path, cell) is not None
    for other in (
        replace(cell, changes=("lr=0.5",)),
        replace(cell, seed=1),
        replace(cell, strategy="emr"),
        replace(cell, dataset="square"),
    ):
        assert other.key() != cell.key()
        assert load_cell(tmp_path, other) is None
    # Whatever the name of the file says, what is inside decides.
    stranger = replace(cell, changes=("lr=0.5",))
    cell_path(tmp_path, cell).rename(cell_path(tmp_path, stranger))
    assert load_cell(tmp_path, stranger) is None


def test_the_same_settings_are_the_same_cell() -> None:
    as_default = Cell("ring", "transe", "dicgrl", "disentangled")
    as_change = replace(as_default, changes=("components=4", "top=3"))
    assert as_default.key() == as_change.key()


@pytest.mark.parametrize(
    ("model", "strategy", "known"),
    [("transe", "lower", True), ("transe", "dicgrl", False), ("gat", "dicgrl", True)],
)
def test_a_cell_of_an_earlier_version(
    tmp_path: Path, model: str, strategy: str, known: bool
) -> None:
    """There `dim` of a divided model was the whole length of its vectors."""
    form = "disentangled" if strategy == "dicgrl" else "plain"
    cell = Cell("ring", model, strategy, form, seed=1)
    record(tmp_path, cell, "cpu", 1)
    assert load_cell(tmp_path, cell) is not None
    path = cell_path(tmp_path, cell)
    stored = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(stored | {"format": "dicgrl-cell-1"}), encoding="utf-8")
    assert (load_cell(tmp_path, cell) is not None) == known


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "dicgrl-cell-0"}'])
def test_a_damaged_cell_is_run_again(tmp_path: Path, text: str) -> None:
    (cell,) = seeds(0)
    record(tmp_path, cell, "cpu", 1)
    cell_path(tmp_path, cell).write_text(text)
    assert load_cell(tmp_path, cell) is None
    assert run_cells([cell], tmp_path, device="cpu", run=record).ran == [cell]


@pytest.mark.parametrize("strategy", ["lower", "dicgrl"])
def test_a_real_cell(links: str, tmp_path: Path, strategy: str) -> None:
    form = "disentangled" if strategy == "dicgrl" else "plain"
    cell = Cell(links, "transe", strategy, form, changes=DIM)
    run_cell(tmp_path, cell, "cpu")
    done = load_cell(tmp_path, cell)
    assert done is not None
    assert [part["part"] for part in done.results["parts"]] == [0, 1, 2]
    assert done.results["settings"] == cell.effective()
    assert [path.suffix for path in (tmp_path / "cells").iterdir()] == [".json"]


def test_a_setting_that_a_later_version_adds_leaves_what_is_finished(tmp_path: Path) -> None:
    cell = Cell("films", "transe", "dicgrl", "disentangled", changes=("shield_rank=0",))
    record(tmp_path, cell, "cpu", 1)
    path = cell_path(tmp_path, cell)
    stored = json.loads(path.read_text())

    def load_with(settings: dict[str, object]) -> bool:
        path.write_text(json.dumps(stored | {"results": {"settings": settings}}))
        return load_cell(tmp_path, cell) is not None

    before = {name: value for name, value in cell.effective().items() if name != "shield_rank"}
    assert "shield_rank" not in stored["identity"]["settings"]
    assert load_with(before) and load_with(cell.effective())
    assert not load_with(before | {"shield_rank": 5})  # the default was another one then
    assert replace(cell, changes=("shield_rank=5",)).key() != cell.key()


def test_parts_of_an_interrupted_cell_are_not_learned_again(
    links: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dicgrl import Learner

    cell = Cell(links, "transe", "lower", changes=DIM)
    run_cell(tmp_path / "whole", cell, "cpu")
    learned: list[int] = []
    learn = Learner.learn

    def counted(self: Learner, part: object, **named: object) -> object:
        learned.append(self.num_parts)
        if learned == [0, 1]:
            raise KeyboardInterrupt
        return learn(self, part, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Learner, "learn", counted)
    with pytest.raises(KeyboardInterrupt):
        run_cell(tmp_path, cell, "cpu")
    assert load_cell(tmp_path, cell) is None
    run_cell(tmp_path, cell, "cpu")
    assert learned == [0, 1, 1, 2]
    done, straight = load_cell(tmp_path, cell), load_cell(tmp_path / "whole", cell)
    assert done is not None and straight is not None
    for part, same in zip(done.results["parts"], straight.results["parts"], strict=True):
        assert part["tests"] == same["tests"]


def test_a_mistake_elsewhere_leaves_an_unfinished_run_as_it_is(
    links: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit today may fit tomorrow, and what was learned is not learned again."""
    from dicgrl import Learner

    cell = Cell(links, "transe", "lower", changes=DIM)
    begun: list[int] = []
    learn = Learner.learn

    def refused(self: Learner, part: object, **named: object) -> object:
        begun.append(self.num_parts)
        if self.num_parts == 2:
            raise UserError("this needs more memory")
        return learn(self, part, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Learner, "learn", refused)
    for _ in range(2):
        with pytest.raises(UserError, match="more memory"):
            run_cell(tmp_path, cell, "cpu")
    assert begun == [0, 1, 2, 2]


def test_a_damaged_unfinished_run_is_begun_anew(links: str, tmp_path: Path) -> None:
    cell = Cell(links, "transe", "lower", changes=DIM)
    left = cell_path(tmp_path, cell).with_suffix(".run")
    left.mkdir(parents=True)
    (left / "config.json").write_text("{")
    run_cell(tmp_path, cell, "cpu")
    assert load_cell(tmp_path, cell) is not None


def test_a_path_has_no_recipe_of_a_dataset(tmp_path: Path) -> None:
    for name in ("films", "FB15k-237"):
        dataset = Cell(name, "transe", "lower").settings()
        own = Cell(str(tmp_path / name), "transe", "lower").settings()
        assert (dataset.name, own.name) == ("best", "default")
        assert own.settings != dataset.settings and own.published == {}

"""Equal care: benchmarks/trials.py gives every row as much, and its files say what was found."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest

from dicgrl.research.rows import fair_cells, label_of

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = SimpleNamespace(**run_path(str(ROOT / "benchmarks" / "trials.py")))
FILES = sorted((ROOT / "docs" / "results").glob("trials-*.json"))
STREAMS = [("films", "transe"), ("cora", "gat")]
every_stream = pytest.mark.parametrize(("name", "model"), STREAMS)


@every_stream
def test_every_row_has_as_many_trials(name: str, model: str) -> None:
    plans = list(SCRIPT.planned(name, model, (), ()))
    counts = Counter(plan["row"] for plan, _ in plans)
    assert set(counts.values()) == {3}
    wanted = {label_of(cell) for cell in fair_cells(name, model)} | {"warm", "fresh"}
    assert set(counts) == wanted


@every_stream
def test_rows_differ_in_what_they_do_with_a_later_part_alone(name: str, model: str) -> None:
    """Of the first trial: epochs and losses of the first part, active size and budget."""
    first = [s for plan, s in SCRIPT.planned(name, model, (), ()) if not plan["values"]]
    settings = [each.as_dict() for each in first]
    sizes = [SCRIPT._active(each) for each in first]
    assert max(sizes) - min(sizes) <= 4  # whole components
    for key in ("epochs", "negatives", "margin", "dropout"):
        assert len({each[key] for each in settings if key in each}) <= 1, key
    budgets = {each["budget"].partition(",")[0] for each in settings if "budget" in each}
    assert len(budgets) == 1
    assert all("start" in each for each in settings)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_has_the_trials_that_the_script_plans(path: Path) -> None:
    file = json.loads(path.read_text(encoding="utf-8"))
    task = SCRIPT.task_of_model(file["model"]).recipe
    found: dict[str, list[dict[str, str]]] = {}
    for trial in file["trials"]:
        found.setdefault(trial["row"], []).append(trial["values"])
    assert list(found) == [row for row in SCRIPT.OWN if row in found]
    for row, values in found.items():  # what is not finished yet has the first ones
        assert values == SCRIPT.trials_of(row, task)[: len(values)], row

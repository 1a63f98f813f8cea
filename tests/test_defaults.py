"""The command line and Python take the same unless another is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dicgrl import Learner
from dicgrl.datasets import load_stream
from dicgrl.jobs.choose import chosen_recipe
from dicgrl.recipes import default_settings
from dicgrl.tasks import DEFAULT_STRATEGY, task_named


@pytest.mark.parametrize("name", ["link-prediction", "node-classification"])
def test_every_task_has_a_model(name: str) -> None:
    settings = default_settings(task_named(name).default_model, DEFAULT_STRATEGY)
    learner = Learner(settings=settings, device="cpu")
    assert learner.task.name == name


def test_python_takes_the_defaults() -> None:
    settings = Learner(device="cpu").settings
    assert settings.model == task_named("link-prediction").default_model
    assert settings.strategy == DEFAULT_STRATEGY


def test_known_graphs_start_with_the_model_of_their_tables_and_yours_with_the_default(
    tmp_path: Path,
) -> None:
    file = tmp_path / "films.tsv"
    file.write_text("a\tr\tb\n", encoding="utf-8")
    films = load_stream("films")
    own = load_stream(file)
    assert chosen_recipe(films, "films", strategy="fresh").settings.model == "transe"
    assert chosen_recipe(own, str(file), strategy="fresh").settings.model == "rotate"
    assert Learner(dataset="films", device="cpu").settings.model == "transe"


def test_the_command_line_knows_them_without_pytorch() -> None:
    code = (
        "import sys, dicgrl.cli, dicgrl.tasks; "
        "print(dicgrl.tasks.DEFAULT_STRATEGY, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["fresh", "False"]

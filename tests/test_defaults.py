"""The command line and Python take the same unless another is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dicgrl import Learner
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


def test_the_command_line_knows_them_without_pytorch() -> None:
    code = (
        "import sys, dicgrl.cli, dicgrl.tasks; "
        "print(dicgrl.tasks.DEFAULT_STRATEGY, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["fresh", "False"]

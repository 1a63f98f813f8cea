"""The command line and Python take the same unless another is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest
from dicgrl.defaults import DEFAULT_STRATEGY, default_model

from dicgrl import Learner, Task
from dicgrl.recipes import default_settings


@pytest.mark.parametrize("task", Task)
def test_every_task_has_a_model(task: Task) -> None:
    settings = default_settings(default_model(task), DEFAULT_STRATEGY)
    learner = Learner(settings=settings, device="cpu")
    assert learner.task is task


def test_python_takes_the_defaults() -> None:
    settings = Learner(device="cpu").settings
    assert settings.model == default_model(Task.LINK_PREDICTION)
    assert settings.strategy == DEFAULT_STRATEGY


def test_the_command_line_knows_them_without_pytorch() -> None:
    code = (
        "import sys, dicgrl.cli, dicgrl.defaults; "
        "print(dicgrl.defaults.DEFAULT_STRATEGY, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["dicgrl", "False"]

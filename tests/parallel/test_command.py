"""`torchrun -m dicgrl`: the command of one process, done by two; killed, refused, gone on with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dicgrl import Learner
from dicgrl.store.run_folder import RunFolder
from tests.parallel.launch import environment, torchrun
from tests.runs import measured
from tests.stores import assert_same_stores
from tests.tiny import write_ring

SMALL = ("--device", "cpu", "--seed", "4", "--set", "dim=8", "--set", "batch=16", "--json")
SMALL = (*SMALL, "--set", "epochs=4", "--set", "validate_every=1", "--set", "effort=50%")

# Kills the second process in its 20th step, the first time that it is started.
DEADLY = """
import os, signal
from dicgrl.parallel import objective

steps, settle = [], objective.Step.settle

def counted(self, model):
    steps.append(model.num_entities)
    if os.environ["RANK"] + os.environ["TORCHELASTIC_RESTART_COUNT"] == "10" and len(steps) == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    settle(self, model)

objective.Step.settle = counted
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two processes that nobody disturbed."""
    place = tmp_path_factory.mktemp("finished")
    write_ring(place / "ring")
    done = torchrun("dicgrl", "run", "ring", *SMALL, "--out", "run", cwd=place)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["parts"], "the first prints, and nobody else"
    return place / "run"


def results_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return found


def test_a_killed_process_is_started_again_and_the_run_goes_on(
    finished: Path, tmp_path: Path
) -> None:
    """From the last commit, to the same numbers and the same store."""
    write_ring(tmp_path / "ring")
    (tmp_path / "deadly.py").write_text(DEADLY, encoding="utf-8")
    words = ("--plugin", "deadly.py", "run", "ring", *SMALL, "--out", "run")
    done = torchrun("dicgrl", *words, restarts=1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "exitcode: -9" in done.stderr
    assert measured(results_of(tmp_path / "run")) == measured(results_of(finished))
    assert_same_stores(tmp_path / "run", finished)


def test_one_process_goes_on_with_what_two_have_learned_and_two_with_that(finished: Path) -> None:
    learner = Learner.load(finished, device="cpu")
    parts = learner.num_parts
    tests = results_of(finished)["parts"][-1]["tests"]
    learner.evaluate()
    assert learner.tests[-1] == tests, "one process measures what two have measured"
    learner.learn([("e1", "plus 2", "one")])
    learner.save(finished)

    facts = finished.parent / "facts.tsv"
    facts.write_text("one\tplus 2\ttwo\ntwo\tplus 7\te3\n", encoding="utf-8")
    done = torchrun("dicgrl", "learn", str(finished), str(facts), "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert "2 entities" not in done.stdout and "1 entity and 1 relation arrived" in done.stdout
    again = Learner.load(finished, device="cpu")
    assert again.num_parts == parts + 2
    assert not RunFolder(finished).verify().damage
    entities = again.trainer.model.entities
    assert len(entities.rows) == len(learner.trainer.model.entities.rows) + 1
    steps = [each.trainer.model.entities.state("steps", 1).sum() for each in (learner, again)]
    assert steps[1] > steps[0], "the optimiser goes on with its state"
    again.evaluate()
    assert again.tests[-1] == results_of(finished)["parts"][-1]["tests"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "ring", "--strategy", "ewc"), "strategy ewc"),
        (("predict", "run", "e1", "plus 1"), "torchrun is for run and learn"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    write_ring(tmp_path / "ring")
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "WORLD_SIZE": "2"}
    meeting["MASTER_PORT"] = str(20_000 + os.getpid() % 10_000 + len(words))
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "dicgrl", *words],
            cwd=tmp_path,
            env=environment() | meeting | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    told = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [2, 2], told
    errors = "".join(error for _, error in told)
    assert errors.count("error:") == 1 and said in errors, errors
    assert "Traceback" not in errors


def test_a_run_that_is_refused_is_not_gone_on_with_by_processes_that_are_started_again(
    finished: Path, tmp_path: Path
) -> None:
    write_ring(tmp_path / "ring")
    shutil.copytree(finished, tmp_path / "run")
    shutil.copytree(finished, tmp_path / "before")
    words = ("run", "ring", *SMALL, "--out", "run")
    done = torchrun("dicgrl", *words, restarts=1, cwd=tmp_path)
    assert done.returncode == 1 and not done.stdout, done.stderr
    assert done.stderr.count("already holds a run") == 1, done.stderr
    assert_same_stores(tmp_path / "run", tmp_path / "before")


def test_of_several_strategies_none_is_learned_where_one_cannot_be(tmp_path: Path) -> None:
    write_ring(tmp_path / "ring")
    words = ("run", "ring", *SMALL, "--strategy", "fresh,ewc", "--out", "runs")
    done = torchrun("dicgrl", *words, cwd=tmp_path)
    assert done.returncode == 1 and "strategy ewc" in done.stderr, done.stderr
    assert not (tmp_path / "runs").exists()

"""What holds while a part is learned, whatever the strategy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from dicgrl import Learner
from dicgrl.errors import UserError
from dicgrl.models import NetworkModel
from dicgrl.training import DivergedError
from tests.tiny import (
    STRATEGIES,
    learner_of,
    ring,
    stream_of,
    taught,
)


def test_a_learner_that_failed_goes_no_further_and_the_saved_one_does(tmp_path: Path) -> None:
    learner = taught(learner_of("links", lr=0.05), 1)
    learner.save(tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.learn(ring()[1], monitor=stop)
    for act in (
        lambda: learner.learn(ring()[1]),
        learner.evaluate,
        lambda: learner.save(tmp_path),
    ):
        with pytest.raises(UserError, match="part 1 was not learned completely"):
            act()
    assert files == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    taught(Learner.load(tmp_path, device="cpu"))

    wild = learner_of("links", lr=1e30, p=2)
    with pytest.raises(DivergedError):
        wild.learn(ring()[0])
    with pytest.raises(UserError, match="part 0"):
        wild.evaluate()


def test_a_half_learned_model_does_not_answer() -> None:
    learner = taught(learner_of("links"), 1)
    with pytest.raises(ZeroDivisionError):
        learner.learn(stream_of("links")[1], monitor=lambda _: 1 // 0)
    with pytest.raises(UserError, match="not learned completely"):
        learner.predict("e1", "plus 1")
    with pytest.raises(UserError, match="not learned completely"):
        learner.score([("e1", "plus 1", "e2")])


@pytest.mark.parametrize("strategy", STRATEGIES[1:])
@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_a_part_that_nothing_validates_is_learned_to_the_end(kind: str, strategy: str) -> None:
    """Older validation data would choose the epoch that learned least of it."""
    later: dict[str, Any] = {} if strategy == "upper" else {"later_epochs": 3}
    if strategy in ("warm", "fresh"):
        later = {"effort": "75%", "validate_on": "seen"}
    if strategy == "fresh":
        later["passes"] = 3
    learner = taught(learner_of(kind, strategy, epochs=4, patience=1, **later), 1)
    part = stream_of(kind)[1]
    report = learner.learn(replace(part, valid=part.valid[:0]))
    if strategy == "upper":  # all that it learns is new to it
        assert report.validation is not None
    else:
        assert report.validation is None and report.best_epoch == 3


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_what_was_learned_is_looked_at_as_it_is(kind: str) -> None:
    """In training mode it would drop neurons for threads that ask at the same time."""
    assert not taught(learner_of(kind), 2).trainer.model.training


def test_models_that_are_made_meanwhile_do_not_disturb_a_training() -> None:
    """Dropout and start values draw from a generator that all threads share."""

    def weights(beside: Callable[[], None]) -> list[torch.Tensor]:
        learner = learner_of("nodes", epochs=30, dropout=0.5)
        busy, done = threading.Event(), threading.Event()

        def make_models() -> None:
            busy.set()
            while not done.is_set():
                beside()

        thread = threading.Thread(target=make_models)
        thread.start()
        busy.wait()
        taught(learner, 1)
        done.set()
        thread.join()
        return [p.detach().clone() for p in learner.trainer.model.parameters()]

    alone = weights(lambda: time.sleep(0.01))
    crowded = weights(lambda: NetworkModel("gat", num_features=3) and None)
    assert all(map(torch.equal, alone, crowded))

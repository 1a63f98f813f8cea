"""What a model would say once facts had arrived: as if they had, and nothing of it stays."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dicgrl.graph.change import FORGET, LEARN, REPLACE, Change
from dicgrl.strategies.foresight import foreseen
from dicgrl.strategies.start import start_from_neighbours
from dicgrl.trainers import LinkTrainer
from tests.tiny import learner_of, taught

NEW = [("neu", "plus 1", "e3"), ("e4", "plus 2", "neu"), ("neu", "is new to", "newer")]


@pytest.mark.parametrize("kind", ["links", "divided"])
def test_a_fork_is_what_the_trainer_would_have_become(kind: str) -> None:
    base, other = (taught(learner_of(kind, "fresh"), 2, evaluate=False) for _ in range(2))
    before = {name: table.rows.clone() for name, table in base.trainer.model.tables().items()}
    facts = len(base.trainer.graph.train)
    for _ in range(3):  # again and again, from the same one
        fork = foreseen(base.trainer, Change(LEARN, base.intake(NEW).part))
        assert isinstance(fork, LinkTrainer)
    other.trainer.undergo(Change(LEARN, other.intake(NEW).part))
    start_from_neighbours(other.trainer)
    assert np.array_equal(fork.graph.train, other.trainer.graph.train)
    placed = fork.graph.entities.ids(["neu"])
    rows = [t.model.entity_rows_of(torch.from_numpy(placed)) for t in (fork, other.trainer)]
    assert torch.equal(
        fork.model.entities.rows[rows[0]], other.trainer.model.entities.rows[rows[1]]
    )
    assert len(base.trainer.graph.train) == facts and "neu" not in base.trainer.graph.entities
    for name, table in base.trainer.model.tables().items():
        assert torch.equal(table.rows, before[name])
    base.learn(NEW)  # it goes on as if nothing had been
    assert base.num_entities == other.num_entities


def test_what_is_taken_back_is_not_known_in_the_fork_alone() -> None:
    base = taught(learner_of("links", "fresh"), 2, evaluate=False)
    row = base.trainer.graph.train[:1].copy()
    gone = {"triples": row}
    for change in (Change(FORGET, None, gone), Change(REPLACE, base.intake(NEW).part, gone)):
        fork = foreseen(base.trainer, change)
        assert isinstance(fork, LinkTrainer)
        assert not fork.graph.contains(row)[0] and base.trainer.graph.contains(row)[0]
    assert foreseen(taught(learner_of("nodes"), 1).trainer, Change(LEARN)) is None

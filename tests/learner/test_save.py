"""A learner that is saved and loaded goes on as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dicgrl import Learner
from dicgrl.errors import UserError
from tests.learner.helpers import assert_same
from tests.tiny import (
    RIVALS,
    STRATEGIES,
    learner_of,
    taught,
)


def test_a_file_is_no_place_for_a_learner(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for place in (tmp_path / "notes.txt", tmp_path / "notes.txt" / "run"):
        with pytest.raises(UserError, match=r"notes\.txt: is a file; expected a folder"):
            taught(learner_of("links"), 1).save(place)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(
    ("kind", "strategy"),
    [(kind, name) for kind in ("links", "divided", "nodes") for name in STRATEGIES]
    + [("links", name) for name in RIVALS],
)
def test_a_loaded_learner_goes_on_like_one_that_was_never_saved(
    kind: str, strategy: str, parts: int, tmp_path: Path
) -> None:
    held = {"strength": 100.0} if strategy == "ewc" else {}
    steady = taught(learner_of(kind, strategy, **held), parts)
    steady.save(tmp_path / "run")
    loaded = Learner.load(tmp_path / "run", device="cpu")
    assert_same(steady, loaded)
    assert loaded.evaluation() == steady.evaluation()
    if kind == "nodes":
        assert loaded.predict(node="n3") == steady.predict(node="n3")
    else:
        question = [("e1", "plus 1", "e5"), ("e0", "plus 2", "e9")]
        assert loaded.score(question) == steady.score(question)
    assert_same(taught(steady), taught(loaded))


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_the_strategy_that_is_loaded_remembers(kind: str, tmp_path: Path) -> None:
    """Otherwise the test above would not notice if it did not."""
    # Looked at when all is over: in the first step there is nothing yet to be pulled back from.
    held = taught(learner_of(kind, "ewc", strength=100.0, validate_every=3), 1)
    held.save(tmp_path / "run")
    forgetful = Learner.load(tmp_path / "run", device="cpu")
    forgetful.strategy.restore({})
    for table in forgetful.trainer.model.tables().values():
        table.state("fisher").zero_()
    taught(held, 2)
    taught(forgetful, 2)
    if kind == "links":
        assert not torch.equal(
            held.trainer.model.entities.rows, forgetful.trainer.model.entities.rows
        )
    else:
        mine, theirs = (dict(x.trainer.model.named_parameters()) for x in (held, forgetful))
        assert any(not torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_saving_after_every_part_and_loading_every_time(kind: str, tmp_path: Path) -> None:
    steady = taught(learner_of(kind, "dicgrl"))
    learner = learner_of(kind, "dicgrl")
    for parts in range(3):
        learner.save(tmp_path / "run")
        learner = taught(Learner.load(tmp_path / "run", device="cpu"), parts + 1)
    learner.save(tmp_path / "run")
    assert_same(steady, learner)
    learner.save(tmp_path / "copy")
    assert_same(steady, Learner.load(tmp_path / "copy", device="cpu"))
    assert_same(steady, Learner.load(tmp_path / "run", device="cpu"))


def test_what_is_measured_after_saving_is_kept_when_saved_again(tmp_path: Path) -> None:
    steady = taught(learner_of("links", "emr"))
    learner = taught(learner_of("links", "emr"), 1, evaluate=False)
    learner.save(tmp_path)
    learner.evaluate()
    learner.save(tmp_path)
    assert_same(taught(Learner.load(tmp_path, device="cpu")), steady)

    late = taught(learner_of("links", "emr"), 1, evaluate=False)
    late.save(tmp_path / "late")
    late.evaluate()
    taught(late, 2)
    late.save(tmp_path / "late")
    assert_same(taught(Learner.load(tmp_path / "late", device="cpu")), steady)


def test_names_and_unlearned_learners_are_saved(tmp_path: Path) -> None:
    learner = Learner("transe", "lower", device="cpu", names={"q1": "Älien"}, dim=4, epochs=2)
    learner.save(tmp_path)
    again = Learner.load(tmp_path, device="cpu")
    assert again.num_parts == 0 and again.names == {"q1": "Älien"}
    assert_same(taught(again, 1), taught(learner, 1))


def test_what_ewc_remembers_is_the_same_after_a_first_part_from_disk(tmp_path: Path) -> None:
    whole = taught(learner_of("links", "ewc"), 1, evaluate=False)
    taught(learner_of("links"), 1, evaluate=False).save(tmp_path / "first")
    shared = Learner.load(tmp_path / "first", device="cpu").fork(whole.settings)
    for name, table in whole.trainer.model.tables().items():
        fisher = shared.trainer.model.tables()[name].state("fisher")
        assert torch.equal(table.state("fisher"), fisher) and fisher.any()

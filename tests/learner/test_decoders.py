"""Every decoder does what a learner promises, plain and divided into components."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dicgrl import Learner, UserError
from tests.learner.helpers import assert_same
from tests.tiny import DIVIDED, LINKS, taught

DECODERS = ("distmult", "complex", "rotate")
every_decoder = pytest.mark.parametrize("model", DECODERS)
every_form = pytest.mark.parametrize("divided", [False, True], ids=["plain", "divided"])


def learner_of(model: str, strategy: str = "fresh", *, divided: bool = False) -> Learner:
    return Learner(model, strategy, device="cpu", **LINKS, **(DIVIDED if divided else {}))


@every_decoder
@every_form
@pytest.mark.parametrize("strategy", ["fresh", "ewc"])
def test_it_goes_on_from_disk_as_if_nothing_had_happened(
    model: str, strategy: str, divided: bool, tmp_path: Path
) -> None:
    steady = taught(learner_of(model, strategy, divided=divided), 2)
    steady.save(tmp_path / "run")
    assert_same(taught(steady), taught(Learner.load(tmp_path / "run", device="cpu")))


@every_decoder
@every_form
def test_it_answers_questions(model: str, divided: bool, tmp_path: Path) -> None:
    learner = taught(learner_of(model, divided=divided))
    answers = learner.predict(head="e1", relation="plus 1", k=5)
    assert len(answers) == 5
    ranked = [answer.score for answer in answers]
    assert ranked == sorted(ranked, reverse=True)
    asked = [("e1", "plus 1", answer.label) for answer in answers]
    assert learner.score(asked) == pytest.approx(ranked, rel=1e-4, abs=1e-5)
    assert len(learner.predict(head="e1", tail="e2", k=2)) == 2  # relations
    assert len(learner.similar("e1", k=3)) == 3
    learner.export(tmp_path / "vectors")
    relations = np.load(tmp_path / "vectors" / "relations.npy")
    entities = np.load(tmp_path / "vectors" / "entities.npy")
    assert relations.shape[2] == entities.shape[2] // (2 if model == "rotate" else 1)
    if divided:
        explanation = learner.explain("e1", "plus 1", "e5")
        assert len(explanation.components) == DIVIDED["top"]


@pytest.mark.parametrize("model", ["complex", "rotate"])
def test_a_complex_number_is_not_torn_apart(model: str) -> None:
    with pytest.raises(
        UserError, match=f"dim=7: {model} takes 2 numbers together.* dim=8 suits it"
    ):
        Learner(model, dim=7, device="cpu")
    with pytest.raises(UserError, match="a component would have 5; dim=12 suits it"):
        Learner(model, dim=10, components=4, top=2, device="cpu")
    Learner(model, dim=9, components=4, top=2, device="cpu")  # rounded up to components of 8

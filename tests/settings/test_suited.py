"""A model may say which settings suit it; whoever names a value has the last word."""

from __future__ import annotations

import pytest
from torch import Tensor

from dicgrl import Learner
from dicgrl.models import Scorer
from dicgrl.recipes import default_settings
from dicgrl.settings import Settings

NAME = "suited-of-the-tests"


class Suited(Scorer):
    defaults = {"margin": 1.5, "temperature": 2.0, "negatives": 3}  # noqa: RUF012

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return (head * relation * tail).sum(-1)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Scorer.registry, NAME, Suited)


def test_a_model_begins_with_what_suits_it() -> None:
    settings = Settings(NAME)
    assert (settings.margin, settings.temperature, settings.negatives) == (1.5, 2.0, 3)
    assert Settings().margin == 9.0
    assert Learner(NAME, "lower", device="cpu").settings.margin == 1.5
    assert repr(settings) == f"Settings({NAME!r}, 'lower')"


def test_a_value_that_is_named_counts() -> None:
    assert Settings(NAME, margin=2.0).margin == 2.0
    assert Settings(NAME).parsed(["margin=2.5"]).margin == 2.5
    assert Settings(NAME).changed({"margin": 9.0}).margin == 9.0
    assert default_settings(NAME, "lower").temperature == 0.5  # the recipe's


def test_what_suits_it_may_have_no_use_with_another_loss() -> None:
    settings = Settings(NAME, loss="softmax")
    assert "margin" not in settings and settings.negatives == 3
    assert settings.changed({"loss": "margin"}).margin == 1.5


def test_another_model_begins_with_its_own() -> None:
    settings = Settings(NAME, dim=16, margin=7.0)
    other = settings.changed({"model": "transe"})
    assert (other.margin, other.negatives, other.dim) == (9.0, 64, 16)
    assert other.changed({"model": NAME}).margin == 1.5
    assert settings.parsed(["model=complex"]).loss == "softmax"
    assert Settings("complex").parsed(["model=transe", "margin=3"]).margin == 3.0


def test_stored_settings_come_back_as_they_were() -> None:
    for settings in (Settings(NAME, margin=9.0), Settings("complex", n3=0.0), Settings("rotate")):
        assert Settings.from_dict(settings.as_dict()) == settings


@pytest.mark.parametrize("model", ["distmult", "complex"])
def test_products_begin_with_a_softmax(model: str) -> None:
    settings = default_settings(model, "fresh")
    assert settings.loss == "softmax" and settings.n3 > 0 and "margin" not in settings
    assert settings.changed({"loss": "selfadversarial"}).margin == 0.0  # products know no zero
    assert default_settings("rotate", "fresh").margin < default_settings("transe", "fresh").margin

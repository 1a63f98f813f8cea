"""Settings of a learner: put together from sections, read from texts, changed, kept as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import UserError
from dicgrl.common.options import option
from dicgrl.models import Components, KnowledgeModel, Scorer
from dicgrl.models.division import EncoderSettings, VectorSettings
from dicgrl.models.scorer import ScorerSettings
from dicgrl.settings import Settings
from dicgrl.strategies.base import LaterSettings
from dicgrl.training import Schedule
from tests.settings.known import TASKS


def test_texts_become_values_of_the_right_type() -> None:
    settings = Settings().parsed(
        ["lr=1", " dim = 64 ", "loss=margin", "margin=5", "components=8", "p=2"]
    )
    assert settings.lr == 1.0 and type(settings.lr) is float
    assert settings.dim == 64 and type(settings.dim) is int
    assert settings.loss == "margin"
    assert (settings.margin, settings.components, settings.p) == (5.0, 8, 2)
    assert Settings().parsed([]) == Settings()
    assert Settings().parsed(["lr=1e-4", "lr=0.1"]).lr == 0.1  # the last one counts


def test_texts_become_values_of_node_classification() -> None:
    settings = Settings("gat").parsed(
        ["model=sage", "hidden=16", "lr=1", "dropout=0", "batch=512", "features=row", "graph=part"]
    )
    assert (settings.model, settings.hidden, settings.batch) == ("sage", 16, 512)
    assert type(settings.lr) is float and type(settings.dropout) is float
    assert (settings.features, settings.graph) == ("row", "part")


@pytest.mark.parametrize("strategy", ["ewc", "dicgrl"])
@pytest.mark.parametrize("model", [*TASKS, "convkb"])
def test_every_setting_can_be_given_as_text(model: str, strategy: str) -> None:
    settings = Settings(model, strategy)
    names = settings.as_dict().keys() & settings.names()
    for name in names:
        assert settings.parsed([f"{name}={getattr(settings, name)}"]) == settings
    texts = [f"{name}={getattr(settings, name)}" for name in sorted(names)]
    assert settings.parsed(texts) == settings


def test_a_fraction_is_taken_where_a_recipe_has_a_whole_number() -> None:
    recipe = Settings().changed({"margin": 9, "lr": 1})
    assert recipe.parsed(["margin=9.5", "lr=0.5"]).margin == 9.5


def test_settings_follow_the_model() -> None:
    convkb = Settings().parsed(["model=convkb", "filters=7", "dropout=0.25"])
    assert (convkb.filters, convkb.dropout) == (7, 0.25)
    assert "filters" not in convkb.changed({"model": "transe"})  # they mean nothing there
    changed = convkb.changed({"model": "convkb", "dropout": 0.5})
    assert (changed.filters, changed.dropout) == (7, 0.5)
    assert convkb.changed({"model": "transe"}).changed({"model": "convkb"}).filters == 50
    assert set(Scorer.registry["transe"].Settings.options()) == {"p"}
    assert set(Scorer.registry["convkb"].Settings.options()) == {
        "filters",
        "dropout",
        "filters_start",
    }
    wide = Settings("gat", hidden=16, heads=2)
    assert wide.changed({"model": "sage"}) == Settings("sage", hidden=16, heads=2)


def test_settings_follow_the_strategy_and_the_loss() -> None:
    replaying = Settings("transe", "emr", budget="5%", dim=16)
    assert replaying.changed({"strategy": "gem"}).budget == "5%"
    assert "budget" not in replaying.changed({"strategy": "lower"})
    assert replaying.changed({"strategy": "lower"}).dim == 16
    assert "temperature" in Settings() and "temperature" not in Settings(loss="margin")
    assert Settings(temperature=2.0).changed({"loss": "margin"}) == Settings(loss="margin")


def test_the_type_of_a_setting_is_that_of_the_component_that_has_it() -> None:
    """Two components may have settings of one name."""
    assert Settings("convkb").parsed(["dropout=0.5"]).dropout == 0.5
    assert Settings("gat").parsed(["dropout=0.5"]).dropout == 0.5
    with pytest.raises(UserError, match=r"^dropout=1\.0: expected"):
        Settings("convkb").parsed(["dropout=1"])


def test_changing_leaves_the_original() -> None:
    original = Settings().changed({"p": 2})
    changed = original.changed({"p": 1, "dim": 10})
    assert (original.p, original.dim) == (2, 200)
    assert (changed.p, changed.dim) == (1, 10)
    nodes = Settings("gat")
    assert nodes.changed({"hidden": 32}).hidden == 32
    assert nodes == Settings("gat")


def test_a_change_may_be_meant_for_another_strategy() -> None:
    """As in `dicgrl run --strategy lower,ewc --set strength=2`; `check_use` comes later."""
    asked = {"strength": 2.0, "epochs": 3}
    assert Settings("transe", "lower").changed(asked) == Settings("transe", "lower", epochs=3)
    assert Settings("transe", "ewc").changed(asked).strength == 2.0
    with pytest.raises(UserError, match=r"^strength has no effect with strategy lower; ewc uses"):
        Settings("transe", "lower", strength=2.0)


def test_what_is_carried_may_be_of_other_models_and_losses() -> None:
    carried = {"filters": 3, "temperature": 2.0, "loss": "margin", "dim": 8}
    assert Settings().changed(carried, carried=True) == Settings(dim=8, loss="margin")
    with pytest.raises(UserError, match=r"^filters has no effect with this model; convkb uses it"):
        Settings().changed({"filters": 3})
    with pytest.raises(UserError, match=r"^unknown setting 'nonsense'"):
        Settings().changed({"nonsense": 3}, carried=True)


@given(st.integers(1, 500), st.integers(1, 62), st.data())
def test_dim_is_what_a_triple_uses_plain_or_divided(
    dim: int, components: int, data: st.DataObject
) -> None:
    top = data.draw(st.integers(1, components))
    assert Settings(dim=dim).of(VectorSettings).length == dim
    vectors = Settings(dim=dim, components=components, top=top).of(VectorSettings)
    assert dim <= vectors.active < dim + 4 * top
    assert vectors.active == dim or dim % top
    model = KnowledgeModel("transe", vectors.length, vectors.division())
    assert (model.active, model.count) == (vectors.active, components)


def test_the_division_is_that_of_the_settings() -> None:
    assert Settings().of(VectorSettings).division() is None
    settings = Settings().parsed(
        ["components=4", "top=3", "attention=nodes", "routing=published", "order=weight"]
    )
    assert settings.of(VectorSettings).division() == Components(
        4, 3, "nodes", "published", "weight"
    )
    assert (settings.of(VectorSettings).active, settings.of(VectorSettings).length) == (204, 272)
    assert Settings("gat").of(EncoderSettings).division() is None
    nodes = Settings("gat").parsed(["components=4", "top=3", "routing=published"])
    assert nodes.of(EncoderSettings).division() == Components(4, 3, "nodes", "published")


def test_the_schedule_is_that_of_the_settings() -> None:
    changes = {"epochs": 3, "batch": 4, "lr": 0.5, "halve_every": 6, "patience": 9, "clip": 1.5}
    for model in TASKS:
        schedule = Settings(model).changed(changes).of(Schedule)
        assert {name: getattr(schedule, name) for name in changes} == changes
        assert schedule.dense_rate == 1
        assert Schedule.options().keys() <= Settings(model).as_dict().keys()


def test_later_parts_have_their_own_epochs_and_rate() -> None:
    def later(settings: Settings) -> Schedule:
        return settings.of(LaterSettings).later(settings.of(Schedule))

    settings = Settings(epochs=80, lr=0.2, later_epochs=5, later_rate=0.1)
    assert (settings.of(Schedule).epochs, settings.of(Schedule).lr) == (80, 0.2)
    assert later(settings).epochs == 5 and later(settings).lr == pytest.approx(0.02)
    assert later(Settings(epochs=80)) == Settings(epochs=80).of(Schedule)


@pytest.mark.parametrize(
    "settings",
    [
        Settings("transe", "dicgrl", p=2, components=8),
        Settings("convkb", "emr", filters=3, budget="2x", loss="margin"),
        Settings("sage", "ewc", components=8, batch=64),
    ],
    ids=str,
)
def test_settings_survive_json(settings: Settings) -> None:
    stored = json.loads(json.dumps(settings.as_dict()))
    assert Settings.from_dict(stored) == settings
    assert Settings(**stored) == settings


def test_numbers_that_mean_the_same_are_taken() -> None:
    given: dict[str, Any] = {"dim": np.int64(16), "margin": 9, "budget": 500, "shield": 0}
    settings = Settings("transe", "dicgrl", **given)
    same = Settings("transe", "dicgrl", dim=16, margin=9.0, budget="500", shield="0")
    assert settings == same
    assert json.loads(json.dumps(settings.as_dict()))["dim"] == 16
    assert type(settings.margin) is float
    tuned = Settings(lr=np.float32(0.5), p=np.int64(2))
    assert json.loads(json.dumps(tuned.as_dict())) | {"lr": 0.5, "p": 2} == tuned.as_dict()
    convkb = Settings("convkb", dropout=np.float32(0.25))
    assert json.loads(json.dumps(convkb.as_dict()))["dropout"] == 0.25
    assert type(Settings("gat", dropout=np.float64(0.5)).as_dict()["dropout"]) is float


def test_settings_show_what_differs_from_the_defaults() -> None:
    assert repr(Settings("gat", "emr", budget="5%")) == "Settings('gat', 'emr', budget='5%')"
    assert eval(repr(Settings(p=2))) == Settings(p=2)


def test_looking_at_settings_of_a_scorer_draws_no_random_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Scorer, "registry", dict(Scorer.registry))

    class Drawn(Scorer, name="drawn-of-the-tests"):
        @dataclass(frozen=True)
        class Settings(ScorerSettings):
            scale: float = option(1.0, "Scale of the scores.")

        def __init__(self, dim: int, scale: float = 1.0) -> None:
            super().__init__(dim)
            self.layer = torch.nn.Linear(dim, 1)
            self.scale = scale

    before = torch.get_rng_state()
    assert Settings("drawn-of-the-tests", scale=2.0).scale == 2.0
    assert torch.equal(torch.get_rng_state(), before)

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import Learner, UserError
from dicgrl.models import Components, Scorer
from dicgrl.settings import (
    OF_COMPONENTS,
    STRATEGIES,
    USED_BY,
    ContinualSettings,
    LinkSettings,
    NodeSettings,
    check_use,
    examples_within,
    scorer_options,
)
from dicgrl.strategies import Strategy
from dicgrl.training import Schedule
from tests.tiny import learner_of, taught


def test_texts_become_values_of_the_right_type() -> None:
    settings = LinkSettings().parsed(
        ["lr=1", " dim = 64 ", "loss=margin", "margin=5", "components=8", "p=2"]
    )
    assert settings.lr == 1.0 and type(settings.lr) is float
    assert settings.dim == 64 and type(settings.dim) is int
    assert settings.loss == "margin"
    assert (settings.margin, settings.components) == (5.0, 8)
    assert dict(settings.options) == {"p": 2}
    assert LinkSettings().parsed([]) == LinkSettings()
    assert LinkSettings().parsed(["lr=1e-4", "lr=0.1"]).lr == 0.1  # the last one counts


@pytest.mark.parametrize("name", [f.name for f in fields(LinkSettings) if f.name != "options"])
def test_every_setting_can_be_given_as_text(name: str) -> None:
    value = getattr(LinkSettings(), name)
    assert LinkSettings().parsed([f"{name}={value}"]) == LinkSettings()


def test_a_fraction_is_taken_where_a_recipe_has_a_whole_number() -> None:
    recipe = LinkSettings().changed({"margin": 9, "lr": 1})
    assert recipe.parsed(["margin=9.5", "lr=0.5"]).margin == 9.5


def test_options_follow_the_model() -> None:
    convkb = LinkSettings().parsed(["model=convkb", "filters=7", "dropout=0.25"])
    assert dict(convkb.options) == {"filters": 7, "dropout": 0.25}
    assert dict(convkb.changed({"model": "transe"}).options) == {}  # filters mean nothing there
    assert dict(convkb.changed({"model": "convkb", "dropout": 0.5}).options) == {
        "filters": 7,
        "dropout": 0.5,
    }
    assert dict(convkb.changed({"options": {"filters": 3}}).options)["filters"] == 3
    assert scorer_options("transe") == {"p": int}
    assert scorer_options("convkb") == {"filters": int, "dropout": float}


def test_changing_leaves_the_original() -> None:
    original = LinkSettings().changed({"p": 2})
    changed = original.changed({"p": 1, "dim": 10})
    assert dict(original.options) == {"p": 2} and original.dim == 200
    assert dict(changed.options) == {"p": 1} and changed.dim == 10


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["lerning=3"], "unknown setting 'lerning'"),
        (["negativs=3"], "did you mean 'negatives'"),
        (["filters=3"], "unknown setting 'filters'"),  # of convkb, not of transe
        (["model=convkb", "filter=3"], "did you mean 'filters'"),
        (["model=trense"], "did you mean 'transe'"),
        (["loss=softmargn"], "did you mean 'softmargin'"),
        (["lr"], "'lr': expected key=value"),
        (["lr=fast"], "lr='fast': expected a number"),
        (["dim=1.5"], "dim='1.5': expected a whole number"),
        (["p=two"], "p='two': expected a whole number"),
        (["options=x"], "options='x'"),
        (["dim=0"], "dim=0: expected at least 1"),
        (["negatives=0"], "negatives=0"),
        (["batch=-1"], "batch=-1"),
        (["epochs=0"], "epochs=0"),
        (["validate_every=0"], "validate_every=0"),
        (["lr=0"], "lr=0.0: expected a finite number above 0"),
        (["lr=-1"], "lr=-1.0"),
        (["lr=nan"], "lr=nan"),
        (["lr=inf"], "lr=inf"),
        (["margin=nan"], "margin=nan"),
        (["beta=-0.1"], "beta=-0.1"),
        (["patience=-1"], "patience=-1"),
        (["halve_every=-5"], "halve_every=-5"),
        (["validate_at_most=-1"], "validate_at_most=-1"),
        (["weight_decay=-1"], "weight_decay=-1"),
        (["components=-2"], "components=-2"),
        (["components=8", "top=9"], "top=9 of components=8"),
        (["components=7"], "dim=200 cannot be divided into components=7"),
        (["components=8", "attention=edge"], "attention='edge'"),
        (["components=8", "routing=hard"], "routing='hard'"),
        (["p=3"], "p=3: TransE measures"),
        (["model=convkb", "filters=-1"], "filters=-1: expected at least 1"),
        (["model=convkb", "filters=0"], "filters=0"),
        (["model=convkb", "dropout=1.5"], "dropout=1.5: expected at least 0 and below 1"),
        (["model=convkb", "dropout=1"], "dropout=1.0"),
        (["model=convkb", "dropout=-0.1"], "dropout=-0.1"),
        (["model=convkb", "dropout=nan"], "dropout=nan"),
    ],
)
def test_what_makes_no_sense_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        LinkSettings().parsed(texts)


@pytest.mark.parametrize("changes", [{"nonsense": 1}, {"options": {"filters": 3}}])
def test_unknown_changes_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="unknown"):
        LinkSettings().changed(changes)


def test_division_and_schedule_carry_the_settings() -> None:
    assert LinkSettings().division() is None
    settings = LinkSettings().parsed(
        ["components=4", "top=3", "attention=nodes", "routing=published", "order=weight"]
    )
    assert settings.division() == Components(4, 3, "nodes", "published", "weight")
    changes = {"epochs": 3, "batch": 4, "lr": 0.5, "halve_every": 6, "patience": 9}
    schedule = LinkSettings().changed(changes).schedule()
    assert {name: getattr(schedule, name) for name in changes} == changes
    assert {f.name for f in fields(Schedule)} <= {f.name for f in fields(LinkSettings)}


def test_settings_survive_json() -> None:
    settings = LinkSettings().parsed(["p=2", "components=8"])
    assert LinkSettings(**json.loads(json.dumps(settings.as_dict()))) == settings


def is_explained(settings: type, name: str) -> bool:
    """By the class itself, or by the one that it names as the place of the others."""
    own = inspect.cleandoc(settings.__doc__ or "")
    shared = inspect.cleandoc(ContinualSettings.__doc__ or "")
    return f"\n    {name}: " in own or (
        "`ContinualSettings`" in own and f"\n    {name}: " in shared
    )


@pytest.mark.parametrize("name", [f.name for f in fields(LinkSettings)])
def test_every_setting_of_link_prediction_is_explained(name: str) -> None:
    assert is_explained(LinkSettings, name)


# Node classification.


def test_texts_become_values_of_node_classification() -> None:
    settings = NodeSettings().parsed(
        ["model=sage", "hidden=16", "lr=1", "dropout=0", "batch=512", "features=row", "graph=part"]
    )
    assert (settings.model, settings.hidden, settings.batch) == ("sage", 16, 512)
    assert type(settings.lr) is float and type(settings.dropout) is float
    assert (settings.features, settings.graph) == ("row", "part")


@pytest.mark.parametrize("name", sorted(NodeSettings().names()))
def test_every_setting_of_node_classification_can_be_given_as_text(name: str) -> None:
    value = getattr(NodeSettings(), name)
    assert NodeSettings().parsed([f"{name}={value}"]) == NodeSettings()


@pytest.mark.parametrize("name", [f.name for f in fields(NodeSettings)])
def test_every_setting_of_node_classification_is_explained(name: str) -> None:
    assert is_explained(NodeSettings, name)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["hiden=3"], "did you mean 'hidden'"),
        (["dim=8"], "unknown setting 'dim'"),  # of link prediction
        (["negatives=8"], "unknown setting 'negatives'"),
        (["model=gta"], "did you mean 'gat'"),
        (["model=transe"], "unknown model 'transe'"),
        (["features=l1"], "features='l1': expected l2, row, none"),
        (["graph=all"], "graph='all': expected accumulated, part"),
        (["dropout=1"], "dropout=1.0: expected at least 0 and below 1"),
        (["dropout=-0.1"], "dropout=-0.1"),
        (["dropout=nan"], "dropout=nan"),
        (["hidden=0"], "hidden=0: expected at least 1"),
        (["heads=0"], "heads=0"),
        (["layers=0"], "layers=0"),
        (["neighbours=0"], "neighbours=0"),
        (["epochs=0"], "epochs=0"),
        (["validate_every=0"], "validate_every=0"),
        (["batch=-1"], "batch=-1: expected at least 0"),
        (["batch=1.5"], "batch='1.5': expected a whole number"),
        (["beta=-1"], "beta=-1.0"),
        (["beta=inf"], "beta=inf: expected a finite number"),
        (["clip=-1"], "clip=-1.0"),
        (["halve_every=-1"], "halve_every=-1"),
        (["weight_decay=-1"], "weight_decay=-1.0"),
        (["patience=-1"], "patience=-1"),
        (["components=-1"], "components=-1"),
        (["components=4", "top=5"], "top=5 of components=4"),
        (["components=4", "top=0"], "top=0 of components=4"),
        (["components=8", "routing=hard"], "routing='hard'"),
        (["lr=0"], "lr=0.0: expected a finite number above 0"),
        (["lr"], "'lr': expected key=value"),
    ],
)
def test_what_makes_no_sense_for_nodes_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        NodeSettings().parsed(texts)


def test_division_and_schedule_of_node_classification() -> None:
    assert NodeSettings().division() is None
    divided = NodeSettings().parsed(["components=4", "top=3", "routing=published"])
    assert divided.division() == Components(4, 3, "nodes", "published")
    changes = {"epochs": 3, "batch": 4, "lr": 0.5, "halve_every": 6, "patience": 9, "clip": 1.5}
    schedule = NodeSettings().changed(changes).schedule()
    assert {name: getattr(schedule, name) for name in changes} == changes
    assert schedule.dense_rate == 1  # all parameters are dense here


def test_changing_settings_of_node_classification_leaves_the_original() -> None:
    original = NodeSettings()
    assert original.changed({"hidden": 32}).hidden == 32
    assert original == NodeSettings()
    with pytest.raises(UserError, match="unknown setting 'nonsense'"):
        original.changed({"nonsense": 1})


def test_settings_of_node_classification_survive_json() -> None:
    settings = NodeSettings().parsed(["components=8", "model=sage", "batch=64"])
    assert NodeSettings(**json.loads(json.dumps(settings.as_dict()))) == settings


# How parts are learned.


@given(
    st.floats(0, 300).map(lambda x: round(x, 2)),
    st.sampled_from(["%", "x", ""]),
    st.integers(0, 5000),
    st.integers(0, 5000),
)
def test_a_budget_is_a_share_a_multiple_or_a_number_and_never_more_than_there_is(
    number: float, unit: str, old: int, new: int
) -> None:
    number = number if unit else round(number)  # half an example is none
    wanted = {"%": number * old / 100, "x": number * new, "": number}[unit]
    found = examples_within(f" {number}{unit.upper()} ", old, new)
    assert abs(found - min(wanted, old)) <= 0.5 + 1e-9 * old
    assert 0 <= found <= old
    assert examples_within("all", old, new) == examples_within("100%", old, new) == old
    assert examples_within("0", old, new) == 0


@pytest.mark.parametrize(
    "text", ["", "many", "-1", "-5%", "nan", "inf", "nan%", "1e999x", "10%%", "0.1"]
)
@pytest.mark.parametrize("name", ["budget", "shield"])
def test_a_budget_that_makes_no_sense_is_refused(text: str, name: str) -> None:
    for settings in (LinkSettings, NodeSettings):
        with pytest.raises(UserError, match=f"{name}=.*expected 10% .of the history., 2x"):
            settings(**{name: text})


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["orders=3"], "orders=3: expected 1 or 2"),
        (["orders=0"], "orders=0"),
        (["selection=best"], "unknown selection 'best'"),
        (["start=zero"], "unknown start 'zero'"),
        (["validate_on=test"], "unknown validate_on 'test'"),
        (["strength=-1"], "strength=-1"),
        (["strength=nan"], "strength=nan"),
        (["later_rate=inf"], "later_rate=inf"),
        (["max_drift=-0.1"], "max_drift=-0.1"),
        (["fan=-1"], "fan=-1"),
    ],
)
def test_continual_settings_that_make_no_sense_are_refused(texts: list[str], message: str) -> None:
    for settings in (LinkSettings(), NodeSettings()):
        if texts[0].partition("=")[0] in settings.names():
            with pytest.raises(UserError, match=message):
                settings.parsed(texts)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"components": "8"}, "components='8': expected a whole number"),
        ({"epochs": 2.0}, "epochs=2.0: expected a whole number"),
        ({"top": True}, "top=True: expected a whole number"),
        ({"lr": "fast"}, "lr='fast': expected a number"),
        ({"lr": None}, "lr=None: expected a number"),
        ({"guard": "no"}, "guard='no': expected true or false"),
        ({"model": 3}, "model=3: expected a text"),
        ({"budget": 0.1}, "budget=0.1: expected a text such as '10%'"),
    ],
)
def test_values_of_another_type_are_refused(changes: dict[str, Any], message: str) -> None:
    """They come from Python and from recipe files; `--set` reads texts by type."""
    for settings in (LinkSettings, NodeSettings):
        with pytest.raises(UserError, match=message):
            settings(**changes)


def test_numbers_that_mean_the_same_are_taken() -> None:
    settings = LinkSettings(dim=np.int64(16), margin=9, budget=500, shield=0)  # type: ignore[arg-type]
    assert settings == LinkSettings(dim=16, margin=9.0, budget="500", shield="0")
    assert json.loads(json.dumps(settings.as_dict()))["dim"] == 16
    assert type(settings.margin) is float
    tuned = LinkSettings(lr=np.float32(0.5), options={"p": np.int64(2)})  # type: ignore[arg-type]
    assert json.loads(json.dumps(tuned.as_dict()))["lr"] == 0.5
    assert json.loads(json.dumps(tuned.as_dict()))["options"] == {"p": 2}
    convkb = Settings(model="convkb", options={"dropout": np.float32(0.25)})
    assert json.loads(json.dumps(convkb.as_dict()))["options"] == {"dropout": 0.25}
    assert type(NodeSettings(dropout=np.float64(0.5)).as_dict()["dropout"]) is float


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": 1.0}, "p=1.0: expected a whole number"),
        ({"p": "1"}, "p='1': expected a whole number"),
        ({"p": True}, "p=True: expected a whole number"),
        (3, "options=3: expected names and values"),
    ],
)
def test_options_of_another_type_are_refused(options: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        LinkSettings(options=options)


def test_looking_at_options_draws_no_random_numbers() -> None:
    class Drawn(Scorer, name="drawn-of-the-tests"):
        def __init__(self, dim: int, scale: float = 1.0) -> None:
            super().__init__(dim)
            self.layer = torch.nn.Linear(dim, 1)
            self.scale = scale

    before = torch.get_rng_state()
    try:
        Settings(model="drawn-of-the-tests", options={"scale": 2.0})
    finally:
        del Scorer.registry["drawn-of-the-tests"]
    assert torch.equal(torch.get_rng_state(), before)


def test_later_parts_have_their_own_epochs_and_rate() -> None:
    settings = LinkSettings(epochs=80, lr=0.2, later_epochs=5, later_rate=0.1)
    assert (settings.schedule().epochs, settings.schedule().lr) == (80, 0.2)
    later = settings.later_schedule()
    assert later.epochs == 5 and later.lr == pytest.approx(0.02)
    assert LinkSettings(epochs=80).later_schedule() == LinkSettings(epochs=80).schedule()


OTHER: dict[str, Any] = {  # another value for every setting that some have no use for
    "later_epochs": 2,
    "later_rate": 0.3,
    "validate_on": "part",
    "budget": "3",
    "strength": 1e3,
    "weight1": 3.0,
    "weight2": 2.0,
    "refresh": 1,
    "fan": 1,
    "selection": "sample",
    "arrive_epochs": 2,
    "shield": "all",
    "shield_rank": 3,
    "guard": True,
    "arrive_last": True,
    "pace": 0.5,
    "max_drift": 1e-6,
    "average": True,
    "top": 1,
    "attention": "nodes",
    "routing": "published",
    "order": "weight",
    "beta": 9.0,
    "orders": 1,
}


def same_model(kind: str, strategy: str, changes: dict[str, Any]) -> bool:
    """Whether changed settings lead to the same weights and answers in the same way."""
    settings = learner_of(kind, strategy, epochs=4).settings
    changes = {name: value for name, value in changes.items() if name in settings.as_dict()}
    one, other = (
        taught(Learner(settings=each, device="cpu"))
        for each in (settings, settings.changed(changes))
    )
    mine, theirs = one.trainer.model, other.trainer.model
    pairs = zip(mine.tables().values(), theirs.tables().values(), strict=True)
    weights = mine.state_dict()
    same = weights.keys() == theirs.state_dict().keys()
    same = same and all(torch.equal(weights[k], v) for k, v in theirs.state_dict().items())
    same = same and all(torch.equal(a.rows, b.rows) for a, b in pairs)
    took = [[(r.epochs, r.best_epoch, r.validation) for r in each.reports] for each in (one, other)]
    return same and one.tests == other.tests and one.before == other.before and took[0] == took[1]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["divided", "nodes"])
def test_what_a_strategy_has_no_use_for_changes_nothing(kind: str, strategy: str) -> None:
    idle = {name for name, users in USED_BY.items() if strategy not in users}
    assert same_model(kind, strategy, {name: OTHER[name] for name in idle})


@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        (strategy, name)
        for name in ("later_epochs", "later_rate", "validate_on", "budget", "strength", "weight1")
        for strategy in USED_BY[name]
    ],
)
def test_what_a_strategy_has_a_use_for_changes_something(strategy: str, name: str) -> None:
    assert not same_model("divided", strategy, {name: OTHER[name]})


def test_what_a_plain_model_has_no_use_for_changes_nothing() -> None:
    assert same_model("links", "lower", {name: OTHER[name] for name in OF_COMPONENTS})


def test_every_setting_of_later_parts_has_its_users() -> None:
    for_all = {"strategy", "start", "orders"}
    assert USED_BY.keys() == {f.name for f in fields(ContinualSettings)} - for_all
    assert {user for users in USED_BY.values() for user in users} < set(STRATEGIES)
    assert set(STRATEGIES) <= Strategy.registry.keys()
    assert OTHER.keys() == USED_BY.keys() | set(OF_COMPONENTS)


@pytest.mark.parametrize("model", ["transe", "gat"])
def test_a_setting_without_use_cannot_be_asked_for(model: str) -> None:
    with pytest.raises(UserError, match=r"^strength has no effect with strategy upper; ewc uses"):
        Learner(model, "upper", strength=100.0, device="cpu")
    with pytest.raises(UserError, match=r"^budget .* strategy frozen; emr, gem, dicgrl use it"):
        Learner(model, "frozen", budget="50%", device="cpu")
    with pytest.raises(UserError, match=r"^top has no effect on a plain model; components=8"):
        Learner(model, "lower", top=2, device="cpu")
    assert Learner(model, "lower", components=4, top=2, device="cpu").settings.top == 2
    carried = Learner(model, "lower", device="cpu").settings.changed({"top": 2, "budget": "5%"})
    assert Learner(settings=carried, device="cpu").settings == carried  # as a recipe does


def test_a_strategy_of_ones_own_may_use_any_setting() -> None:
    check_use(USED_BY, [("mine", True)])
    check_use(["budget", "top"], [("lower", False), ("dicgrl", True)])  # one of them is enough
    with pytest.raises(UserError, match=r"^budget has no effect with strategy lower, upper; "):
        check_use(["budget"], [("lower", False), ("upper", True), ("lower", True)])


def test_what_is_refused_for_networks_has_no_effect_on_them() -> None:
    """All of it at once changes no answer and no weight; on links it does."""
    asked: dict[str, Any] = {
        "arrive_epochs": 2,
        "shield_rank": 3,
        "guard": True,
        "arrive_last": True,
        "pace": 0.5,
        "max_drift": 1e-6,
    }
    assert asked.keys() == set(NodeSettings.without_effect)
    for kind in ("nodes", "links"):
        plain = learner_of(kind, "dicgrl").settings
        as_ever = taught(Learner(settings=plain, device="cpu"))
        changed = taught(Learner(settings=plain.changed(asked), device="cpu"))
        one, other = as_ever.trainer.model.state_dict(), changed.trainer.model.state_dict()
        tables = zip(
            as_ever.trainer.model.tables().values(),
            changed.trainer.model.tables().values(),
            strict=True,
        )
        same = all(torch.equal(one[name], other[name]) for name in one)
        same &= all(torch.equal(mine.rows, theirs.rows) for mine, theirs in tables)
        assert same == (kind == "nodes")
        assert (as_ever.tests == changed.tests) == (kind == "nodes")


@pytest.mark.parametrize("name", NodeSettings.without_effect)
def test_what_has_no_effect_cannot_be_asked_for(name: str) -> None:
    default = getattr(NodeSettings(), name)
    text = f"{name}={str(default).lower()}"
    with pytest.raises(UserError, match=f"^{name} has no effect on a network"):
        NodeSettings().parsed([text])
    with pytest.raises(UserError, match=f"^{name} has no effect on a network"):
        Learner("gat", "dicgrl", **{name: default})
    assert name not in NodeSettings().names()
    assert LinkSettings().parsed([text]) == LinkSettings()
    assert NodeSettings().changed({name: default}) == NodeSettings()  # as a recipe does

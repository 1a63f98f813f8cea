"""Who uses a setting: what a strategy or a model has no use for cannot be asked for."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dicgrl import Learner, UserError
from dicgrl.settings import Form, Settings, check_use, strategies_using
from dicgrl.strategies import Strategy
from dicgrl.tasks import task_of_model
from tests.settings.known import TASKS, needing, of_strategies
from tests.tiny import STRATEGIES, learner_of, taught

OTHER: dict[str, Any] = {  # another value for every setting that some have no use for
    "later_epochs": 2,
    "later_rate": 0.3,
    "validate_on": "part",
    "budget": "3",
    "strength": 1e3,
    "memory_margin": 2.0,
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
    "dense_rate": 0.1,
    "adam": "dense",
    "moments": "new",
    "optimizer": "rowwise",
    "idle_pace": 0.5,
    "effort": "50%",
    "passes": 1,
    "old_pace": 0.9,
}
USERS = of_strategies()


def same_model(settings: Settings, changes: dict[str, Any]) -> bool:
    """Whether changed settings lead to the same weights and answers in the same way."""
    changed = settings.changed(changes)
    one, other = (taught(Learner(settings=each, device="cpu")) for each in (settings, changed))
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
def test_a_strategy_has_only_settings_of_its_own(kind: str, strategy: str) -> None:
    settings = learner_of(kind, strategy).settings
    for name, users in USERS.items():
        assert (name in settings) == (strategy in users)
        if strategy not in users:  # meant for another one
            assert settings.changed({name: OTHER[name]}) == settings


@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        (strategy, name)
        for name in (
            *("later_epochs", "later_rate", "validate_on", "budget", "strength", "weight1"),
            *("effort", "passes", "old_pace"),
        )
        for strategy in USERS[name]
    ],
)
def test_what_a_strategy_has_a_use_for_changes_something(strategy: str, name: str) -> None:
    short: dict[str, Any] = {}
    if strategy == "dicgrl":
        short = {"later_epochs": 4, "arrive_epochs": 4, "budget": "all"}
    if strategy == "fresh":
        short = {"effort": "all"}
    settings = learner_of("divided", strategy, epochs=4, **short).settings
    assert not same_model(settings, {name: OTHER[name]})


def test_what_a_plain_model_has_no_use_for_changes_nothing() -> None:
    settings = learner_of("links", "lower", epochs=4).settings
    idle = needing("components", "transe") & settings.as_dict().keys()
    assert idle == {"top", "attention", "routing", "order", "beta"}
    assert same_model(settings, {name: OTHER[name] for name in idle})


def test_the_users_of_a_setting_are_those_that_declare_it() -> None:
    assert {name for name, users in USERS.items() if users == list(STRATEGIES)} == {"start"}
    assert USERS["budget"] == ["emr", "gem", "dicgrl"]
    assert USERS["strength"] == ["ewc"]
    assert USERS["effort"] == ["warm", "fresh"]
    assert USERS["passes"] == USERS["old_pace"] == ["fresh"]
    assert USERS["later_epochs"] == ["lower", "ewc", "emr", "gem", "dicgrl"]
    assert set(USERS["later_rate"]) == {*USERS["later_epochs"], *USERS["effort"]}
    assert set(USERS["validate_on"]) == {"upper", *USERS["later_rate"]}
    for name, users in USERS.items():
        assert set(strategies_using(name)) >= set(users)
    assert set(STRATEGIES) <= Strategy.registry.keys()
    some = USERS.keys() - {"start"}
    assert OTHER.keys() == some | needing("components", "transe") | needing("rows", "transe")


@pytest.mark.parametrize("model", TASKS)
def test_a_setting_without_use_cannot_be_asked_for(model: str) -> None:
    with pytest.raises(UserError, match=r"^strength has no effect with strategy upper; ewc uses"):
        Learner(model, "upper", strength=100.0, device="cpu")
    with pytest.raises(UserError, match=r"^budget .* frozen; emr, gem, arrival, dicgrl use it"):
        Learner(model, "frozen", budget="50%", device="cpu")
    with pytest.raises(UserError, match=r"^top has no effect on a plain model; components=8"):
        Learner(model, "lower", top=2, device="cpu")
    assert Learner(model, "lower", components=4, top=2, device="cpu").settings.top == 2
    carried = Learner(model, "lower", device="cpu").settings.changed({"top": 2, "budget": "5%"})
    assert Learner(settings=carried, device="cpu").settings == carried  # as a recipe does


@pytest.mark.parametrize("model", TASKS)
def test_of_several_strategies_one_that_uses_a_setting_is_enough(model: str) -> None:
    task = task_of_model(model)
    check_use(
        USERS, task, [Form(name, name == "dicgrl") for name in ("dicgrl", "ewc", "gem", "fresh")]
    )
    check_use(["budget", "top"], task, [Form("lower", False), Form("dicgrl", True)])
    forms = [Form("lower", False), Form("upper", True), Form("lower", True)]
    with pytest.raises(UserError, match=r"^budget has no effect with strategy lower, upper; "):
        check_use(["budget"], task, forms)


def test_what_is_refused_for_networks_has_no_effect_on_them() -> None:
    """All of it at once changes no answer and no weight; on links it does."""
    asked = {name: OTHER[name] for name in needing("rows", "gat")}
    assert len(asked) == 12
    for strategy in ("dicgrl", "fresh"):
        for kind in ("nodes", "links"):
            settings = learner_of(kind, strategy).settings
            assert same_model(settings, asked) == (kind == "nodes")


@pytest.mark.parametrize("name", sorted(needing("rows", "gat")))
def test_what_has_no_effect_cannot_be_asked_for(name: str) -> None:
    strategy = USERS.get(name, ["dicgrl"])[0]
    nodes, links = Settings("gat", strategy), Settings("transe", strategy)
    default = getattr(nodes, name)
    text = f"{name}={str(default).lower()}"
    with pytest.raises(UserError, match=f"^{name} has no effect on a network"):
        nodes.parsed([text])
    with pytest.raises(UserError, match=f"^{name} has no effect on a network"):
        Learner("gat", strategy, **{name: default})
    assert name not in nodes.names()
    assert links.parsed([text]) == links
    assert nodes.changed({name: default}) == nodes  # as a recipe does

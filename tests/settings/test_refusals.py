"""What makes no sense is refused, with a message that says what was expected."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import UserError
from dicgrl.settings import Settings
from dicgrl.strategies.budget import examples_within
from tests.settings.known import TASKS


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["lerning=3"], "unknown setting 'lerning'"),
        (["negativs=3"], "did you mean 'negatives'"),
        (["bugdet=3"], "did you mean 'budget'"),  # of other strategies
        (["filters=3"], "^filters has no effect with this model; convkb uses it"),
        (["temperature=3", "loss=margin"], "^temperature has no effect with this loss; selfadv"),
        (["model=convkb", "filter=3"], "did you mean 'filters'"),
        (["model=trense"], "did you mean 'transe'"),
        (["model=gat"], r"unknown model 'gat'\. Known: complex, convkb, distmult, rotate, transe"),
        (["loss=softmargn"], "did you mean 'softmargin'"),
        (["strategy=dicgl"], "did you mean 'dicgrl'"),
        (["lr"], "'lr': expected key=value"),
        (["lr=fast"], "lr='fast': expected a number"),
        (["dim=1.5"], "dim='1.5': expected a whole number"),
        (["p=two"], "p='two': expected a whole number"),
        (["options=x"], "unknown setting 'options'"),
        (["dim=0"], "dim=0: expected at least 1"),
        (["negatives=0"], "negatives=0"),
        (["batch=-1"], "batch=-1: expected at least 0"),
        (["epochs=-1"], "epochs=-1: expected at least 0"),
        (["validate_every=0"], "validate_every=0"),
        (["lr=-1"], "lr=-1.0: expected at least 0"),
        (["lr=nan"], "lr=nan"),
        (["lr=inf"], "lr=inf"),
        (["margin=nan"], "margin=nan"),
        (["beta=-0.1"], "beta=-0.1"),
        (["decay=2"], "decay=2.0: expected 0 to 1"),
        (["patience=-1"], "patience=-1"),
        (["halve_every=-5"], "halve_every=-5"),
        (["validate_at_most=-1"], "validate_at_most=-1"),
        (["weight_decay=-1"], "weight_decay=-1"),
        (["weighting=odd"], "unknown weighting 'odd'"),
        (["components=-2"], "components=-2"),
        (["components=8", "top=9"], "top=9 of components=8"),
        (["components=8", "attention=edge"], "attention='edge'"),
        (["components=8", "routing=hard"], "routing='hard'"),
        (["p=3"], "p=3: expected 1 or 2"),
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
        Settings().parsed(texts)


def test_the_schedule_of_links_may_be_left_to_the_number_of_triples() -> None:
    settings = Settings().parsed(["epochs=0", "batch=0", "lr=0"])
    assert (settings.epochs, settings.batch, settings.lr) == (0, 0, 0.0)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["hiden=3"], "did you mean 'hidden'"),
        (["dim=8"], "unknown setting 'dim'"),  # of link prediction
        (["negatives=8"], "unknown setting 'negatives'"),
        (["model=gta"], "did you mean 'gat'"),
        (["model=transe"], r"unknown model 'transe'\. Known: gat, sage"),
        (["features=l1"], "unknown features 'l1'.*l2, none, row"),
        (["graph=all"], "unknown graph 'all'.*accumulated, part"),
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
        (["lr=0"], "lr=0.0: expected a number above 0"),
        (["lr"], "'lr': expected key=value"),
    ],
)
def test_what_makes_no_sense_for_nodes_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Settings("gat").parsed(texts)


@pytest.mark.parametrize("model", TASKS)
@pytest.mark.parametrize(
    ("strategy", "text", "message"),
    [
        ("dicgrl", "orders=3", "orders=3: expected 1 or 2"),
        ("dicgrl", "orders=0", "orders=0"),
        ("dicgrl", "selection=best", "unknown selection 'best'"),
        ("frozen", "start=zero", "unknown start 'zero'"),
        ("upper", "validate_on=test", "unknown validate_on 'test'"),
        ("ewc", "strength=-1", "strength=-1"),
        ("ewc", "strength=nan", "strength=nan"),
        ("lower", "later_rate=inf", "later_rate=inf"),
        ("dicgrl", "fan=-1", "fan=-1"),
        ("fresh", "passes=-1", "passes=-1: expected at least 0"),
        ("fresh", "later_rate=-1", "later_rate=-1"),
        ("fresh", "validate_on=test", "unknown validate_on 'test'"),
        ("warm", "effort=most", "effort='most': expected a share such as 10%"),
        ("dicgrl", "shield=some", "shield='some': .* 500 or all, or activated"),
    ],
)
def test_settings_of_strategies_that_make_no_sense_are_refused(
    model: str, strategy: str, text: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        Settings(model, strategy).parsed([text])


@pytest.mark.parametrize("pace", ["-0.1", "1.1", "nan"])
def test_a_pace_of_old_rows_that_makes_no_sense_is_refused(pace: str) -> None:
    with pytest.raises(UserError, match=f"old_pace={pace}: expected"):
        Settings("transe", "fresh").parsed([f"old_pace={pace}"])


def test_a_drift_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UserError, match=r"max_drift=-0\.1: expected at least 0"):
        Settings("transe", "dicgrl").parsed(["max_drift=-0.1"])


@pytest.mark.parametrize("model", TASKS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"components": "8"}, "components='8': expected a whole number"),
        ({"epochs": 2.0}, "epochs=2.0: expected a whole number"),
        ({"top": True}, "top=True: expected a whole number"),
        ({"lr": "fast"}, "lr='fast': expected a number"),
        ({"lr": None}, "lr=None: expected a number"),
        ({"guard": "no"}, "guard='no': expected true or false"),
        ({"model": 3}, "model=3, .*: expected names"),
        ({"budget": 0.1}, "budget=0.1: expected a text such as '10%'"),
    ],
)
def test_values_of_another_type_are_refused(
    model: str, changes: dict[str, Any], message: str
) -> None:
    """They come from Python and from recipe files; `--set` reads texts by type."""
    with pytest.raises(UserError, match=message):
        Settings(**{"model": model, "strategy": "dicgrl"} | changes)
    with pytest.raises(UserError, match=message):
        Settings(model, "dicgrl").changed(changes)


@pytest.mark.parametrize("value", [1.0, "1", True])
def test_values_of_a_scorer_of_another_type_are_refused(value: Any) -> None:
    with pytest.raises(UserError, match=f"^p={value!r}: expected a whole number"):
        Settings(p=value)


@pytest.mark.parametrize("model", TASKS)
def test_unknown_changes_are_refused(model: str) -> None:
    with pytest.raises(UserError, match="unknown setting 'nonsense'"):
        Settings(model).changed({"nonsense": 1})
    with pytest.raises(UserError, match="unknown setting 'nonsense'"):
        Settings(model, nonsense=1)


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
@pytest.mark.parametrize(
    ("strategy", "name"),
    [("dicgrl", "budget"), ("dicgrl", "shield"), ("fresh", "effort"), ("warm", "effort")],
)
def test_an_amount_that_makes_no_sense_is_refused(text: str, strategy: str, name: str) -> None:
    for model in TASKS:
        with pytest.raises(UserError, match=f"{name}=.*expected a share such as 10%, 2x"):
            Settings(model, strategy, **{name: text})
        with pytest.raises(UserError, match=f"{name}=.*expected a share such as 10%, 2x"):
            Settings(model, strategy, **{name: f"10%,{text}"})

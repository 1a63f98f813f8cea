"""No value of a setting, however absurd, is anything but taken or refused in one message."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicgrl import UserError
from dicgrl.common.options import MOST_REAL, MOST_WHOLE
from dicgrl.jobs.sweep_grid import parse_grid
from dicgrl.recipes import SECTIONS, load_recipe
from dicgrl.settings import Settings
from tests.settings.known import TASKS

LONGEST = 1_000  # of a message, which may list every setting

WHOLE = st.one_of(
    st.integers(),
    st.integers(1, 500).map(lambda digits: 10**digits),
    st.integers(1, 500).map(lambda digits: -(10**digits)),
)
REAL = st.one_of(st.floats(), st.sampled_from([1e308, -1e308, 1e39, 5e-324]))
TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(["", "all", "1e400%"])
#: Values as TOML writes them; the hexadecimal ones have more digits than Python would print.
SIMPLE = st.one_of(
    WHOLE.map(str),
    st.integers(1, 6_000).map(lambda digits: "0x" + "f" * digits),
    REAL.map(lambda x: repr(x) if math.isfinite(x) else str(x)),
    TEXT.map(json.dumps),
    st.sampled_from(["true", "false", "1979-05-27", "12:30:00", "1979-05-27T07:32:00Z"]),
)
TOML = st.recursive(
    SIMPLE,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda values: f"[{', '.join(values)}]")
        | inner.map(lambda value: f"{{ key = {value} }}")
    ),
    max_leaves=4,
)


def names(model: str) -> list[str]:
    return sorted(Settings(model).names() | {"options", "nonsense", "", "self", "\0", "__class__"})


def check(found: Settings) -> None:
    """What is taken is of its kind and can be counted with."""
    for value in found.as_dict().values():
        assert isinstance(value, int | float | str | bool)
        if isinstance(value, int | float):
            assert math.isfinite(value) and abs(value) <= (
                MOST_WHOLE if isinstance(value, int) else MOST_REAL
            )


def said(error: UserError, mentioned: str = "") -> str:
    assert mentioned in str(error)
    assert 0 < len(str(error)) <= LONGEST and "\n" not in str(error)
    return str(error)


@pytest.mark.parametrize("model", TASKS)
@settings(max_examples=150)
@given(data=st.data())
def test_a_recipe_with_any_values(model: str, data: st.DataObject) -> None:
    strategy = data.draw(st.sampled_from(["dicgrl", "fresh", "ewc"]))
    sections = ["", *SECTIONS, f"strategies.{strategy}", "published.plain"]
    section = data.draw(st.sampled_from(sections))
    lines = data.draw(st.dictionaries(st.sampled_from(names(model)), TOML, max_size=3))
    text = "\n".join([f"[{section}]"] if section else [])
    text += "".join(f"\n{json.dumps(name)} = {value}" for name, value in lines.items())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own.toml"
        path.write_text(text, encoding="utf-8")
        try:
            found = load_recipe(str(path), "", model, disentangled=True, strategy=strategy)
        except UserError as error:
            said(error, "own.toml")
        else:
            check(found.settings)
            json.dumps(found.published)


@pytest.mark.parametrize("model", TASKS)
@settings(max_examples=150)
@given(data=st.data())
def test_a_change_and_a_grid_with_any_text(model: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names(model)))
    value = data.draw(TEXT | WHOLE.map(str) | REAL.map(repr) | st.just("9" * 6_000))
    base = Settings(model, "dicgrl", components=4, top=2)
    try:
        check(base.parsed([f"{name}={value}"]))
    except UserError as error:
        said(error)
    try:
        for key, values in parse_grid([f"{name}={value}"]).items():
            for each in values:
                base.check_value(key, each)
    except UserError as error:
        said(error)


OBJECTS = [10**400, -(10**400), 16**6_000, [[]] * 1_000, {"a": 1}, None, 1e308, math.nan, b"\0"]


@pytest.mark.parametrize("value", OBJECTS, ids=range(len(OBJECTS)))
@pytest.mark.parametrize("name", ["dim", "lr", "loss", "guard", "budget", "components"])
def test_any_object(name: str, value: Any) -> None:
    with pytest.raises(UserError) as error:
        Settings("transe", "dicgrl").changed({name: value})
    assert said(error.value).startswith((f"{name}=", f"unknown {name}"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("weight_decay=1e308", "weight_decay=1e+308: expected at least 0 and at most 1e+38"),
        ("dim=" + "9" * 400, "expected at least 1 and at most 1e+12"),
        ("lr=1e38", "lr=1e+38 times dense_rate=1.0: expected at most 3e+37"),
    ],
)
def test_the_message_says_the_bound(change: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        Settings().parsed([change])
    assert message in str(error.value)
    with pytest.raises(UserError, match="layers=1000000: expected 1 to 1000"):
        Settings("gat").parsed(["layers=1000000"])


def test_stored_options_that_are_no_table() -> None:
    stored = Settings("transe").as_dict() | {"options": "abc"}
    with pytest.raises(UserError, match="options='abc': expected settings by name"):
        Settings.from_dict(stored)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 5_000 + "]" * 5_000, "not a recipe"),
        ("a = " + "{ a = " * 2_000 + "1" + " }" * 2_000, "not a recipe"),
        ("#" * (1 << 20) + "\n[settings]", "larger than 1 MiB"),
        ('[settings]\noptions = "abc"', "unknown setting 'options'"),
        ('[settings]\nstrategy = "ewc"', "strategy is not a setting of a recipe; use --strategy"),
        ('[strategies.fresh]\nmodel = "convkb"', "model is not a setting of a recipe; use --model"),
        ("[published.plain]\nmrr = 1979-05-27", "published: expected numbers"),
        ("model = 5", "model=5: expected a name"),
    ],
)
def test_a_file_that_is_no_recipe(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        load_recipe(str(path), "", "transe", strategy="fresh")
    assert said(error.value).startswith(f"{path}: ") and message in str(error.value)

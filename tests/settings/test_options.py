"""A section of settings: what a component declares is all that is known of its settings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dicgrl import UserError
from dicgrl.common.options import Option, Section, Sections, option
from dicgrl.settings import Settings
from tests.settings.known import TASKS, sections_of


def _even(name: str, value: int) -> None:
    if value % 2:
        raise UserError(f"{name}={value}: expected an even number")


@dataclass(frozen=True)
class Cooking(Section):
    """Settings of the tests."""

    minutes: int = option(4, "How long.", least=2, most=60, check=_even)
    heat: float = option(0.5, "How hot.", above=0, below=1)
    sort: str = option("boiled", "What it becomes.", choices=("boiled", "fried"))
    eggs: int = option(1, "How many.", choices=(1, 2))
    salt: bool = option(False, "Whether there is salt.")
    amount: str = option("10%", "Of what there is.", numbers=True)

    def check(self) -> None:
        if self.salt and self.sort == "fried":
            raise UserError("salt of fried eggs: too much")


@dataclass(frozen=True)
class Slow(Cooking):
    """The same, slower."""

    minutes: int = option(10, "How long, at least.", least=10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"minutes": 1}, "minutes=1: expected 2 to 60"),
        ({"minutes": 61}, "minutes=61: expected 2 to 60"),
        ({"minutes": 5}, "minutes=5: expected an even number"),
        ({"minutes": 4.0}, "minutes=4.0: expected a whole number"),
        ({"minutes": True}, "minutes=True: expected a whole number"),
        ({"heat": 0}, "heat=0.0: expected a number above 0 and below 1"),
        ({"heat": 1}, "heat=1.0: expected a number above 0 and below 1"),
        ({"heat": float("nan")}, "heat=nan: expected a finite number"),
        ({"heat": "hot"}, "heat='hot': expected a number"),
        ({"sort": "fied"}, "unknown sort 'fied'; did you mean 'fried'"),
        ({"sort": 1}, "sort=1: expected a text"),
        ({"eggs": 3}, "eggs=3: expected 1 or 2"),
        ({"salt": 1}, "salt=1: expected true or false"),
        ({"amount": 0.1}, "amount=0.1: expected a text such as '10%'"),
        ({"salt": True, "sort": "fried"}, "salt of fried eggs"),
    ],
)
def test_what_is_out_of_bounds_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        Cooking(**changes)


def test_values_become_plain_ones_of_their_kind() -> None:
    given = Cooking(minutes=np.int64(6), heat=np.float32(0.25), amount=500)  # type: ignore[arg-type]
    assert given == Cooking(6, 0.25, amount="500")
    assert json.loads(json.dumps(given.as_dict())) == given.as_dict()
    assert type(given.minutes) is int and type(given.heat) is float


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("minutes", "6", 6), ("heat", "1e-2", 0.01), ("salt", "True", True), ("sort", "x", "x")],
)
def test_a_text_is_read_by_the_kind_of_the_default(name: str, text: str, value: Any) -> None:
    assert Cooking.options()[name].parsed(text) == value


@pytest.mark.parametrize(
    ("name", "text"), [("minutes", "6.0"), ("heat", "hot"), ("salt", "1"), ("salt", "")]
)
def test_a_text_of_another_kind_is_refused(name: str, text: str) -> None:
    with pytest.raises(UserError, match=f"^{name}={text!r}: expected"):
        Cooking.options()[name].parsed(text)


def test_a_derived_section_has_its_own_default_and_bounds() -> None:
    assert Slow().minutes == 10 and Slow().heat == Cooking().heat
    assert Slow.options()["minutes"].bounds == "at least 10"
    assert Cooking.options()["minutes"].bounds == "2 to 60"
    assert list(Slow.options()) == list(Cooking.options())


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({}, ""),
        ({"least": 0}, "at least 0"),
        ({"least": 0, "most": 1}, "0 to 1"),
        ({"least": 0, "below": 1}, "at least 0 and below 1"),
        ({"above": 0}, "a number above 0"),
        ({"most": 62}, "at most 62"),
    ],
)
def test_bounds_are_said_in_words(bounds: dict[str, float], words: str) -> None:
    assert Option("x", 0.5, "", **bounds).bounds == words


def test_several_sections_are_read_as_one() -> None:
    @dataclass(frozen=True)
    class Pan(Section):
        width: int = option(3, "In hands.")

    both = Sections(Cooking(6), Pan())
    assert (both.minutes, both.width, both.of(Pan)) == (6, 3, Pan())
    assert "width" in both and "depth" not in both
    assert both.as_dict() == Cooking(6).as_dict() | {"width": 3}
    assert both == Sections(Cooking(6), Pan()) != Sections(Cooking(8), Pan())
    assert hash(both) == hash(Sections(Cooking(6), Pan()))
    with pytest.raises(AttributeError, match="depth"):
        _ = both.depth


def test_two_sections_with_one_name_are_refused() -> None:
    with pytest.raises(UserError, match=r"^minutes is a setting of both Cooking and Slow"):
        Sections(Cooking(), Slow())


@pytest.mark.parametrize("model", TASKS)
def test_every_setting_of_the_package_is_explained(model: str) -> None:
    for section in sections_of(Settings(model).task):
        assert (section.__doc__ or "").strip()
        for name, known in section.options().items():
            assert known.help.endswith("."), name


@pytest.mark.parametrize("model", TASKS)
def test_every_default_of_the_package_is_within_its_bounds(model: str) -> None:
    for section in sections_of(Settings(model).task):
        for known in section.options().values():
            assert known.checked(known.default) == known.default
            if known.kind is not bool:
                assert known.parsed(str(known.default)) == known.default

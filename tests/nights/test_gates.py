from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.errors import UserError
from dicgrl.nights.gates import PLAIN, Compared, Gate, judged

METRICS = ("mrr", "hits@1", "hits@3", "hits@10")


def judge(text: str, *found: Compared, doubts: tuple[str, ...] = ()) -> dict[str, object]:
    return judged(Gate.of(text), lambda *_: found, doubts)


@pytest.mark.parametrize(
    ("text", "now", "then", "fails"),
    [
        ("mrr-drop 5%", 0.94, 1.0, True),
        ("mrr-drop 5%", 0.96, 1.0, False),
        ("mrr-drop 5%", 0.095, 0.1, False),  # exactly 5 %
        ("mrr-drop 0.05", 0.30, 0.36, True),
        ("mrr-drop 0.05", 0.32, 0.36, False),
        ("MRR-drop 5 %", 0.5, 1.0, True),
        ("mrr-drop 5%", 1.0, 0.5, False),
        ("moved-rise 50%", 0.4, 0.2, True),
        ("moved-rise 50%", 0.3, 0.2, False),
        ("mrr < 40%", 0.39, None, True),
        ("mrr<40%", 0.40, None, False),
        ("newcomers > .5", 0.6, None, True),
        ("facts > 1000", 1000.0, None, False),
    ],
)
def test_a_gate_fails_beyond_its_amount(
    text: str, now: float, then: float | None, fails: bool
) -> None:
    found = judge(text, Compared(now, then, "version 1"))
    assert found["failed"] is fails
    assert found["now"] == now and found.get("then") == then


def test_the_worst_of_several_times_counts() -> None:
    found = judge("mrr-drop 10%", Compared(0.5, 0.5, "a"), Compared(0.5, 0.9, "b"))
    assert found["failed"] and found["when"] == "b"


@pytest.mark.parametrize("text", ["mrr-drop 5%", "mrr < 1%"])
def test_what_cannot_be_compared_does_not_fail(text: str) -> None:
    for found in (judge(text), judge(text, Compared(None, 0.5, "a"))):
        assert not found["failed"] and found["skipped"]
    first_night = judge("mrr-drop 5%", Compared(0.5))
    assert not first_night["failed"] and first_night["skipped"]


def test_doubts_are_a_gate() -> None:
    assert judge("doubts", doubts=("it knows nothing",))["failed"]
    assert not judge("doubts")["failed"]


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ("", "mrr-drop 5%"),
        ("mrr", "mrr-drop 5%"),
        ("mrr-drop", "expected"),
        ("mrr-drop -5%", "expected"),
        ("mrr-drop 5% since monday", "last"),
        ("mrr < 5% since best", "since"),
        ("mrr-drop 1" + "0" * 400, "too large"),
        ("hits@7-drop 5%", "hits@10"),
        ("accuracy-drop 5%", "mrr"),
        ("mrr-drop 5", "mrr-drop 5%"),
    ],
)
def test_what_is_no_gate_is_refused_with_what_would_be(text: str, mentioned: str) -> None:
    with pytest.raises(UserError, match=mentioned.replace("%", "%")):
        Gate.of(text).check(METRICS, held_out=True)


def test_a_gate_on_held_out_facts_needs_some() -> None:
    with pytest.raises(UserError, match="--test"):
        Gate.of("mrr-drop 5%").check(METRICS, held_out=False)
    for name in ("foretold-mrr < 1%", *(f"{n} > 1%" for n in PLAIN if n != "retention")):
        Gate.of(name).check(METRICS, held_out=False)


@given(st.text(max_size=30))
def test_any_text_is_a_gate_or_refused(text: str) -> None:
    with contextlib.suppress(UserError):
        assert Gate.of(text).amount >= 0


@given(st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0, 1))
def test_a_drop_is_relative_with_a_percent_sign(now: float, then: float, amount: float) -> None:
    text = f"mrr-drop {amount * 100:.6f}%"
    fails = judge(text, Compared(now, then))["failed"]
    share = 1 - now / then
    if abs(share - amount) > 1e-6:
        assert fails == (share > amount)

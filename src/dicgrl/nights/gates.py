"""Gates: conditions under which a night is refused, such as `mrr-drop 5%`.

    GATE    = MEASURE-drop AMOUNT [since last | since training | since best]
            | MEASURE-rise AMOUNT [since last | since training | since best]
            | MEASURE < AMOUNT | MEASURE > AMOUNT
            | doubts
    AMOUNT  = a number, or per cent: of the earlier value for drop and rise, else of 1

Measures on held-out facts are compared on the questions that were measured both times. A gate that
has nothing to compare with, such as an earlier night on the first night, does not fail.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dicgrl.errors import UserError, shown, shown_value, unknown_name

SINCE = ("last", "training", "best")
DOUBTS = "doubts"
PLAIN = ("retention", "moved", "newcomers", "facts", "gain", "seconds")
"""Measures of a night besides those on held-out facts, and those that were foretold."""
FORETOLD = "foretold-"
_COUNTS = ("facts", "seconds", "moved", DOUBTS)  # may lie above 1

_FORM = re.compile(
    r"(?P<name>[\w@-]+?)"
    r"(?:-(?P<way>drop|rise)\s+|\s*(?P<sign>[<>])\s*)"
    r"(?P<amount>\d+(?:\.\d*)?|\.\d+)\s*(?P<percent>%)?"
    r"(?:\s+since\s+(?P<since>\w+))?"
)
_EXAMPLES = "such as 'mrr-drop 5%', 'hits@10 < 40%', 'mrr-drop 10% since training' or 'doubts'"


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate.

    Attributes:
        text: As it was given.
        name: What is measured.
        way: `drop`, `rise`, `<`, `>`, or `any` for doubts.
        amount: How much is too much.
        relative: Whether that is a share of the earlier value.
        since: What a drop or rise is compared with.
    """

    text: str
    name: str
    way: str
    amount: float = 0.0
    relative: bool = False
    since: str = "last"

    @classmethod
    def of(cls, text: str) -> Gate:
        """The gate that a text means.

        Raises:
            UserError: It means none.

        Example:
            >>> Gate.of("mrr-drop 5%").amount, Gate.of("h@10 < 40%").name
            (0.05, 'hits@10')
        """
        if not isinstance(text, str):
            raise UserError(f"not a gate: {shown_value(text)}; expected one {_EXAMPLES}")
        if text.strip().lower() == DOUBTS:
            return cls(text, DOUBTS, "any")
        found = _FORM.fullmatch(text.strip().lower())
        if found is None:
            raise UserError(f"not a gate: {shown(text)}; expected one {_EXAMPLES}")
        amount = float(found["amount"])
        if not math.isfinite(amount):
            raise UserError(f"not a gate: {shown(text)}; the amount is too large")
        since, way = found["since"], found["way"] or found["sign"]
        if since and way in "<>":
            raise UserError(f"not a gate: {shown(text)}; 'since' goes with -drop and -rise")
        if since and since not in SINCE:
            raise unknown_name("time of a gate: since", since, SINCE)
        name = re.sub(r"(^|-)h@", r"\1hits@", found["name"])
        percent = found["percent"] is not None
        relative = percent and found["way"] is not None
        return cls(text, name, way, amount / 100 if percent else amount, relative, since or "last")

    @property
    def is_compared(self) -> bool:
        """Whether an earlier value is needed."""
        return self.way in ("drop", "rise")

    @property
    def is_held_out(self) -> bool:
        """Whether it is about held-out facts."""
        named = self.name not in (*PLAIN, DOUBTS) and not self.name.startswith(FORETOLD)
        return named or self.name == "retention"

    def check(self, metrics: Collection[str], held_out: bool) -> None:
        """Refuse a gate about something that a run does not have.

        Args:
            metrics: What is measured of the run's held-out facts.
            held_out: Whether it holds facts out, and they are measured.

        Raises:
            UserError: It does not have it.
        """
        names = [*metrics, *(FORETOLD + name for name in metrics), *PLAIN, DOUBTS]
        if self.name not in names:
            raise unknown_name("measure of a gate:", self.name, names)
        if self.name not in _COUNTS and self.amount > 1:
            meant = f"{self.name}{'-' + self.way if self.is_compared else ' ' + self.way}"
            raise UserError(
                f"{self.text}: values of {self.name} lie between 0 and 1; did you mean "
                f"'{meant} {self.amount:g}%'?"
            )
        if self.is_held_out and not held_out:
            raise UserError(
                f"{self.text}: no held-out facts are measured; start the run with --test or "
                "--valid, and leave out --evaluate none"
            )


class Compared(NamedTuple):
    """A measure tonight and at an earlier time.

    Attributes:
        now: Its value tonight; None where there is none.
        then: Its value then; None where there is none.
        when: What that time is, in words.
    """

    now: float | None
    then: float | None = None
    when: str = ""


Look = Callable[[str, str], Sequence[Compared]]
"""Gives a measure by its name, and by what it is compared with: one, or several for `best`."""


def judged(gate: Gate, look: Look, doubts: Sequence[str]) -> dict[str, Any]:
    """What became of a gate, ready for JSON.

    Args:
        gate: The gate.
        look: Finds measures.
        doubts: What is doubtful about the model, in words.

    Returns:
        `gate`, whether it `failed`; `now`, `then` and `when` where it compares; `skipped`, why it
        says nothing.
    """
    if gate.way == "any":
        return {"gate": gate.text, "failed": bool(doubts), "now": len(doubts)}
    found = [c for c in look(gate.name, gate.since) if c.now is not None]
    if gate.is_compared:
        found = [c for c in found if c.then is not None]
    if not found:
        reason = "nothing to compare with yet" if gate.is_compared else "not measured tonight"
        return {"gate": gate.text, "failed": False, "skipped": reason}
    worst = max(found, key=lambda each: _excess(gate, each))
    told: dict[str, Any] = {"gate": gate.text, "failed": _excess(gate, worst) > 0}
    told |= {"now": worst.now}
    return told | ({"then": worst.then, "when": worst.when} if gate.is_compared else {})


def _excess(gate: Gate, found: Compared) -> float:
    """By how much a gate is passed; above 0 it fails. A rounding error fails no gate."""
    assert found.now is not None
    if gate.way == "<":
        return gate.amount - found.now - _ROUNDING
    if gate.way == ">":
        return found.now - gate.amount - _ROUNDING
    assert found.then is not None
    lost = found.then - found.now if gate.way == "drop" else found.now - found.then
    allowed = gate.amount * abs(found.then) if gate.relative else gate.amount
    return lost - allowed - _ROUNDING


_ROUNDING = 1e-12


def failed(gates: Sequence[Mapping[str, Any]]) -> list[str]:
    """The gates of a night that failed, as they were given."""
    return [str(gate["gate"]) for gate in gates if gate["failed"]]

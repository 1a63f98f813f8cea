"""Settings that live on their component: frozen dataclasses whose fields know their bounds.

A component (a strategy, a scorer, a loss, a schedule) has a `Section`. Everything else is derived
from it: what `--set key=value` accepts, the settings page, who uses a setting, what is refused.

Example:
    >>> @dataclass(frozen=True)
    ... class Replay(Section):
    ...     '''Settings of a replay.'''
    ...
    ...     share: float = option(0.1, "Share of the history.", least=0, most=1)
    >>> Replay(share=2)
    Traceback (most recent call last):
    dicgrl.errors.UserError: share=2.0: expected 0 to 1
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from numbers import Integral, Real
from typing import Any, TypeVar

from dicgrl.errors import UserError, shown, shown_value, unknown_name

#: Beyond these no setting makes sense: nothing counts so far, and float32 holds no more.
MOST_WHOLE, MOST_REAL = 10**12, 1e38
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
S = TypeVar("S", bound="Section")
Check = Callable[[str, Any], None]


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of one setting.

    Attributes:
        name: What it is called.
        default: Its default, whose type is that of all its values.
        help: What it means, in a sentence or two.
        least: The smallest value.
        most: The largest value; where none is given, `MOST_WHOLE` or `MOST_REAL`.
        above: A number that the value must exceed.
        below: A number that the value must stay below.
        choices: The values there are.
        needs: What a model must have for the setting to matter: `components`, `rows`.
        check: A further check, given the name and the value; it raises `UserError`.
        numbers: Whether a text may also be given as a whole number, such as budget=500.
    """

    name: str
    default: Any
    help: str
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[Any, ...] | None = None
    needs: str = ""
    check: Check | None = None
    numbers: bool = False

    @property
    def kind(self) -> type:
        """Type of the values."""
        return type(self.default)

    def parsed(self, text: str) -> Any:
        """What a text means as a value.

        Raises:
            UserError: It is of another kind.
        """
        try:
            if self.kind is bool:
                return {"true": True, "false": False}[text.lower()]
            return self.kind(text)
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{self.name}={shown(text)}: expected {_KINDS[self.kind]}") from None

    def checked(self, value: Any) -> Any:
        """A value as a plain one of its kind (NumPy's numbers are not), within its bounds.

        Raises:
            UserError: It is of another kind, or out of bounds.
        """
        value = self._plain(value)
        if self.choices is not None and value not in self.choices:
            if self.kind is str:
                raise unknown_name(self.name, value, self.choices)
            listed = " or ".join(map(str, self.choices))
            raise UserError(f"{self.name}={shown_value(value)}: expected {listed}")
        if self.kind in (int, float):
            self._check_bounds(value)
        if self.check is not None:
            self.check(self.name, value)
        return value

    def _plain(self, value: Any) -> Any:
        kind = self.kind
        if self.numbers and type(value) is int and abs(value) <= MOST_WHOLE:
            return str(value)
        if type(value) is kind:
            return value
        if kind is int and isinstance(value, Integral) and not isinstance(value, bool):
            return int(value)
        if kind is float and isinstance(value, Real) and not isinstance(value, bool):
            with contextlib.suppress(OverflowError):  # of a whole number of hundreds of digits
                return float(value)
            raise self._too_large(value)
        such = f" such as {self.default!r}" if self.numbers else ""
        raise UserError(f"{self.name}={shown_value(value)}: expected {_KINDS[kind]}{such}")

    def _check_bounds(self, value: float) -> None:
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{self.name}={value}: expected a finite number")
        within = (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )
        if not within:
            raise UserError(f"{self.name}={shown_value(value)}: expected {self.bounds}")
        if abs(value) > self._largest:
            raise self._too_large(value)

    @property
    def _largest(self) -> float:
        return MOST_WHOLE if self.kind is int else MOST_REAL

    def _too_large(self, value: Any) -> UserError:
        bounds = self.bounds or f"{-self._largest:g} to {self._largest:g}"
        if self.most is None and self.below is None and self.bounds:
            bounds += f" and at most {self._largest:g}"
        return UserError(f"{self.name}={shown_value(value)}: expected {bounds}")

    @property
    def bounds(self) -> str:
        """The bounds in words; empty where there are none.

        Example:
            >>> Option("lr", 0.1, "", above=0).bounds
            'a number above 0'
        """
        if self.least is not None and self.most is not None:
            return f"{self.least:g} to {self.most:g}"
        words = []
        if self.least is not None:
            words.append(f"at least {self.least:g}")
        if self.above is not None:
            words.append(f"a number above {self.above:g}")
        if self.most is not None:
            words.append(f"at most {self.most:g}")
        if self.below is not None:
            words.append(f"below {self.below:g}")
        return " and ".join(words)


def option(
    default: Any,
    help: str,  # noqa: A002 - as in argparse and typer
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: Iterable[Any] | None = None,
    needs: str = "",
    check: Check | None = None,
    numbers: bool = False,
) -> Any:
    """A field of a `Section`; for the arguments see `Option`."""
    found = Option(
        "", default, help, least, most, above, below,
        None if choices is None else tuple(choices), needs, check, numbers,
    )  # fmt: skip
    return field(default=default, metadata={"option": found})


class Section:
    """Settings of one component: a frozen dataclass whose fields are made by `option`.

    Values are converted and checked when it is made; `check` looks at values that have to fit
    together. A subclass may give an inherited field another default: `effort: str = "10%"`.
    """

    def __post_init__(self) -> None:
        for name, known in self.options().items():
            object.__setattr__(self, name, known.checked(getattr(self, name)))
        self.check()

    def check(self) -> None:
        """Refuse values that do not fit together.

        Raises:
            UserError: They do not.
        """

    @classmethod
    def options(cls) -> dict[str, Option]:
        """The declarations of settings, by name.

        Example:
            >>> Section.options()
            {}
        """
        return dict(_options_of(cls)) if is_dataclass(cls) else {}

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, ready for JSON."""
        return {name: getattr(self, name) for name in self.options()}


@cache  # settings are put together again and again, from the same few classes
def _options_of(kind: type[Section]) -> Mapping[str, Option]:
    found = {}
    for each in fields(kind):  # type: ignore[arg-type]  # it is a dataclass
        known: Option = each.metadata.get("option") or _inherited(kind, each.name)
        found[each.name] = replace(known, name=each.name, default=each.default)
    return found


def _inherited(kind: type[Section], name: str) -> Option:
    """What the nearest class that says more than a default knows of a setting."""
    bases = [each for each in kind.__mro__[1:] if issubclass(each, Section)]
    return next(base.options()[name] for base in bases if name in base.options())


class Sections:
    """The settings of several components, read by name as if they were one.

    Args:
        sections: The sections; no two have a setting of the same name.

    Raises:
        UserError: Two of them have.

    Example:
        >>> @dataclass(frozen=True)
        ... class Pace(Section):
        ...     '''Settings of a pace.'''
        ...
        ...     lr: float = option(0.1, "Learning rate.", above=0)
        >>> settings = Sections(Pace(lr=0.5))
        >>> settings.lr, settings.of(Pace).lr
        (0.5, 0.5)
    """

    def __init__(self, *sections: Section) -> None:
        self._sections = sections
        _check_distinct(sections)
        self._flat: Mapping[str, Any] = {
            name: value for section in sections for name, value in section.as_dict().items()
        }

    def of(self, kind: type[S]) -> S:
        """The section of a kind, or of one derived from it.

        Raises:
            UserError: There is none: these are settings of another task or strategy.
        """
        for section in self._sections:
            if isinstance(section, kind):
                return section
        raise UserError(f"these settings have no {kind.__name__}: they are of another task")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._flat:
            raise AttributeError(f"{type(self).__name__} has no setting {name!r}")
        return self._flat[name]

    def __contains__(self, name: str) -> bool:
        return name in self._flat

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, ready for JSON."""
        return dict(self._flat)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sections) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(tuple(self._flat.items()))


def _check_distinct(sections: Iterable[Section]) -> None:
    """Refuse sections that share a name, of which a reader could mean either."""
    owners: dict[str, Section] = {}
    for section in sections:
        for name in section.options():
            if name in owners:
                both = " and ".join(type(each).__qualname__ for each in (owners[name], section))
                raise UserError(f"{name} is a setting of both {both}: rename one of them")
            owners[name] = section

"""All settings of a learner: each is declared by the component that uses it; users see a flat list.

The model names the task; the task, the model, the loss and the strategy each have a section of
their own (`common/options.py`). What can be set, who uses it and what is refused follows from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from dicgrl.common.options import Option, Section, Sections
from dicgrl.errors import UserError, shown, shown_value, unknown_name
from dicgrl.strategies import Strategy, strategy_named
from dicgrl.strategies.base import StrategySettings
from dicgrl.tasks import Task, task_of_model


class Form(NamedTuple):
    """What decides whether a setting has a use.

    Attributes:
        strategy: The strategy.
        divided: Whether the model is divided into components.
    """

    strategy: str
    divided: bool


class Settings(Sections):
    """All settings of a learner.

    Args:
        model: Name of the model; it says what the task is.
        strategy: Name of the strategy.
        **values: Settings that differ from their defaults, by name; a model may have defaults of
            its own (`Scorer.defaults`).

    Raises:
        UserError: There is no such setting here, or a value is out of bounds.

    Example:
        >>> settings = Settings("transe", "emr", dim=100, budget="5%")
        >>> settings.dim, settings.budget, settings.task.name
        (100, '5%', 'link-prediction')
    """

    def __init__(self, model: str = "transe", strategy: str = "lower", **values: Any) -> None:
        if not isinstance(model, str) or not isinstance(strategy, str):
            raise UserError(
                f"model={shown_value(model)}, strategy={shown_value(strategy)}: expected names"
            )
        self.task: Task = task_of_model(model)
        self.model = model
        self.strategy = strategy
        suited = self.task.suited(model)
        kinds = self._kinds({**suited, **values})
        known = {name for kind in kinds for name in kind.options()}
        for name in values:
            if name not in known:
                raise self._refusal(name)
        values = {name: value for name, value in suited.items() if name in known} | values
        super().__init__(
            *(kind(**{k: v for k, v in values.items() if k in kind.options()}) for kind in kinds)
        )

    def _kinds(self, values: Mapping[str, Any]) -> list[type[Section]]:
        """The sections that some values ask for."""
        task = self.task
        kinds = [task.models()[self.model], *task.sections()]
        defaults = {name: each for kind in kinds for name, each in kind.options().items()}
        for choice, components in task.choices().items():
            chosen = defaults[choice].checked(values.get(choice, defaults[choice].default))
            kinds.append(components[chosen])
        return [*kinds, strategy_named(self.strategy).Settings]

    def _refusal(self, name: str) -> UserError:
        """Why a setting that no section here has cannot be set."""
        users = strategies_using(name)
        if users:
            return _without_effect(name, "strategy", [self.strategy], users)
        for choice, components in (
            {"model": self.task.models()} | dict(self.task.choices())
        ).items():
            users = [each for each, kind in components.items() if name in kind.options()]
            if users:
                return _without_effect(name, choice, [], users)
        return unknown_name("setting", name, self.names())

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Settings as `as_dict` gave them, in this version or an earlier one.

        Settings of other strategies and models, which earlier versions stored, are left out.

        Raises:
            UserError: One of them is not known, or out of bounds.
        """
        values = dict(stored)
        apart = values.pop("options", {})  # earlier versions kept those of a scorer apart
        if not isinstance(apart, Mapping):
            raise UserError(f"options={shown_value(apart)}: expected settings by name")
        values |= apart
        begun = cls(values.pop("model"), values.pop("strategy", "lower"))
        return begun.changed(values, carried=True)

    def changed(self, changes: Mapping[str, Any], *, carried: bool = False) -> Self:
        """The settings with some values replaced.

        What only other strategies use is left out: one change may be meant for several of them, and
        `check_use` refuses what none uses.

        Args:
            changes: Values by name.
            carried: Whether they come from a recipe or a stored run, which may also carry settings
                of other models and losses.

        Example:
            >>> Settings("transe").changed({"dim": 100, "p": 2}).p
            2
        """
        given = dict(changes)
        model, strategy = given.pop("model", self.model), given.pop("strategy", self.strategy)
        bare = type(self)(model, strategy)
        models = self.task.models()
        if model not in models:  # a task cannot be changed
            raise unknown_name("model", model, models)
        inherited = self.as_dict()
        del inherited["model"], inherited["strategy"]
        if models[model] is not models[self.model]:
            for name in models[self.model].options():
                del inherited[name]
        if model != self.model:  # what suits one may not suit the other
            for name in {*self.task.suited(self.model), *self.task.suited(model)}:
                inherited.pop(name, None)
        merged = inherited | given
        kinds = bare._kinds({**self.task.suited(model), **merged})
        known = {name for kind in kinds for name in kind.options()}
        for name in given.keys() - known:
            elsewhere = bool(strategies_using(name))
            if carried:
                elsewhere |= name in bare.known_somewhere()
            if not elsewhere:
                raise bare._refusal(name)
        return type(self)(model, strategy, **{k: v for k, v in merged.items() if k in known})

    def parsed(self, texts: Iterable[str]) -> Self:
        """The settings with changes given as `key=value` texts.

        Example:
            >>> Settings().parsed(["lr=0.01", "loss=margin"]).lr
            0.01
        """
        changes: dict[str, str] = {}
        for text in texts:
            key, separator, value = text.partition("=")
            if not separator:
                raise UserError(f"--set {shown(text)}: expected key=value")
            changes[key.strip()] = value.strip()
            self.check_effect(key.strip())
        names: dict[str, Any] = {
            key: changes[key] for key in ("model", "strategy") if key in changes
        }
        meant = self.changed(names)
        return self.changed(
            {
                key: meant.value(key, text) if key not in names else text
                for key, text in changes.items()
            }
        )

    def value(self, name: str, text: str) -> Any:
        """What a text means as the value of a setting; the text where there is no such setting.

        Raises:
            UserError: It is of another kind.
        """
        known = self._option(name)
        return text if known is None else known.parsed(text)

    def check_value(self, name: str, text: str) -> None:
        """Refuse a text that can be no value of a setting, whatever the others are.

        Raises:
            UserError: It is of another kind, out of bounds, or an unknown name.
        """
        if name == "strategy":
            strategy_named(text)
        elif name == "model" and text not in self.task.models():
            raise unknown_name("model", text, self.task.models())
        elif known := self._option(name):
            known.checked(known.parsed(text))

    def _option(self, name: str) -> Option | None:
        """The declaration of a setting: found here, else in any other section of the task."""
        for section in self._sections:
            if name in section.options():
                return section.options()[name]
        return self.known_somewhere().get(name)

    def known_somewhere(self) -> dict[str, Option]:
        """All settings that some model, loss or strategy of the task has, by name."""
        found: dict[str, Option] = {}
        for kind in _kinds_of(self.task):
            found |= kind.options()
        return found

    def names(self) -> set[str]:
        """What can be set here, `model` and `strategy` included.

        Example:
            >>> sorted(Settings().names() - Settings("gat").names())[-2:]
            ['validate_at_most', 'weighting']
        """
        known = {
            name
            for name, each in self.known_somewhere().items()
            if self.task.has_rows or each.needs != "rows"
        }
        return known | {"model", "strategy"}

    def check_effect(self, name: str) -> None:
        """Refuse to change a setting of which the task makes no use; `check_use` looks at the rest.

        Raises:
            UserError: The task makes no use of it.
        """
        known = self._option(name)
        if known is not None and known.needs == "rows" and not self.task.has_rows:
            raise UserError(
                f"{name} has no effect on a {self.task.graph_is}, whose {self.task.examples} have "
                "no rows of their own"
            )

    def make_strategy(self) -> Strategy:
        """The strategy with its settings.

        Raises:
            UserError: It cannot work with the model.
        """
        kind = strategy_named(self.strategy)
        kind.check_model(self.form.divided, self.model)
        if kind.needs_gradients and "precision" in self and self.precision != "float32":
            raise UserError(
                f"strategy {self.strategy} needs precision=float32: it compares the gradients of "
                "whole tables; fresh, dicgrl and emr learn tables of any precision"
            )
        return kind(self.of(StrategySettings))

    @property
    def form(self) -> Form:
        """What `check_use` asks about."""
        return Form(self.strategy, "components" in self and self.components > 0)

    @property
    def later_names(self) -> set[str]:
        """Settings that say how later parts are learned: of no effect on a first part."""
        return {"strategy", *self.of(StrategySettings).options()}

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, ready for JSON."""
        return {"model": self.model, "strategy": self.strategy} | super().as_dict()

    def __repr__(self) -> str:
        default = type(self)(self.model, self.strategy).as_dict()
        changed = {k: v for k, v in self.as_dict().items() if v != default.get(k)}
        listed = [f"{name}={value!r}" for name, value in changed.items()]
        return f"Settings({', '.join([repr(self.model), repr(self.strategy), *listed])})"


def strategies_using(name: str) -> list[str]:
    """The strategies that have a setting of that name.

    Example:
        >>> strategies_using("strength")
        ['ewc']
    """
    return [each for each, kind in Strategy.registry.items() if name in kind.Settings.options()]


def check_use(names: Iterable[str], task: Task, forms: Iterable[Form]) -> None:
    """Refuse settings that were asked for and that would change nothing.

    Args:
        names: The settings; not those that a recipe carries.
        task: The task.
        forms: What is to have them.

    Raises:
        UserError: None of the forms uses a setting.

    Example:
        >>> from dicgrl.tasks import task_named
        >>> links = task_named("link-prediction")
        >>> check_use(["budget"], links, [Form("lower", False), Form("emr", False)])
        >>> check_use(["strength"], links, [Form("lower", False)])
        Traceback (most recent call last):
        dicgrl.errors.UserError: strength has no effect with strategy lower; ewc uses it
    """
    asked = list(dict.fromkeys(forms))
    strategies = list(dict.fromkeys(form.strategy for form in asked))
    options = {name: each for kind in _kinds_of(task) for name, each in kind.options().items()}
    for name in names:
        users = strategies_using(name)
        if users and not set(strategies) & set(users):
            raise _without_effect(name, "strategy", strategies, users)
        needs = options[name].needs if name in options else ""
        if needs == "components" and not any(form.divided for form in asked):
            raise UserError(
                f"{name} has no effect on a plain model; components=8, for example, divides it"
            )


def _kinds_of(task: Task) -> Iterator[type[Section]]:
    """All sections that settings of a task may have."""
    yield from task.models().values()
    yield from task.sections()
    for components in task.choices().values():
        yield from components.values()
    yield from (strategy.Settings for strategy in Strategy.registry.values())


def _without_effect(name: str, choice: str, given: list[str], users: list[str]) -> UserError:
    use = "use" if len(users) > 1 else "uses"
    with_this = f"{choice} {', '.join(given)}" if given else f"this {choice}"
    return UserError(f"{name} has no effect with {with_this}; {', '.join(users)} {use} it")

"""All settings of a run in one place: typed, checked, and read from `key=value` texts."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from dicgrl.common.seeding import seeded
from dicgrl.errors import UserError, unknown_name
from dicgrl.models import BACKBONES, Components, scorer
from dicgrl.training import LOSSES, Schedule

_NOT_NEGATIVE = (
    "components",
    "temperature",
    "beta",
    "halve_every",
    "weight_decay",
    "clip",
    "dense_rate",
    "patience",
    "validate_at_most",
)


class _Settings:
    """What settings of every task can do."""

    __slots__ = ()
    without_effect: ClassVar[tuple[str, ...]] = ()  # a recipe may carry them, --set may not

    def schedule(self) -> Schedule:
        """The part of the settings that the training loop takes."""
        own = {f.name for f in fields(self)}  # type: ignore[arg-type]
        return Schedule(
            **{f.name: getattr(self, f.name) for f in fields(Schedule) if f.name in own}
        )

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """The settings with some values replaced."""
        names = {f.name for f in fields(self)}  # type: ignore[arg-type]
        for key in changes:
            if key not in names:
                raise unknown_name("setting", key, names - set(self.without_effect))
        return replace(self, **changes)  # type: ignore[type-var]

    def parsed(self, texts: Iterable[str]) -> Self:
        """The settings with changes given as `key=value` texts.

        Example:
            >>> LinkSettings().parsed(["lr=0.01", "loss=margin"]).lr
            0.01
        """
        changes: dict[str, Any] = {}
        for text in texts:
            key, separator, value = text.partition("=")
            if not separator:
                raise UserError(f"--set {text!r}: expected key=value")
            changes[key.strip()] = value.strip()
            self.check_effect(key.strip())
        model = changes.get("model", "")
        return self.changed({key: self.value(key, text, model) for key, text in changes.items()})

    def value(self, key: str, text: str, model: str = "") -> Any:
        """What a text means as the value of a setting; the text where there is no such setting.

        Args:
            key: The setting.
            text: Its value.
            model: The model whose settings these will be; theirs unless given.

        Raises:
            UserError: It is of another kind.
        """
        kind = self._types({"model": model} if model else {}).get(key)
        return text if kind is None else _parse(key, text, kind)

    def _types(self, changes: Mapping[str, str]) -> dict[str, type]:  # noqa: ARG002
        default = type(self)()  # a recipe may have put 9 where 9.5 is possible
        return {f.name: type(getattr(default, f.name)) for f in fields(self)}  # type: ignore[arg-type]

    def names(self) -> set[str]:
        """What can be changed: settings, and arguments of the scorer where there is one.

        Example:
            >>> sorted(LinkSettings().names() - NodeSettings().names())[-2:]
            ['validate_at_most', 'weighting']
        """
        return set(self._types({})) - set(self.without_effect)

    def check_effect(self, name: str) -> None:
        """Refuse to change a setting of which the task makes no use; `check_use` looks at the rest.

        Raises:
            UserError: The task makes no use of it.
        """
        if name in self.without_effect:
            raise UserError(
                f"{name} has no effect on a network, whose nodes have no rows of their own"
            )

    @property
    def form(self) -> tuple[str, bool]:
        """The strategy, and whether the model is divided: what `check_use` asks about."""
        return self.strategy, self.components > 0  # type: ignore[attr-defined]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    def _check_types(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            value = _plain(each.name, getattr(self, each.name), type(each.default))
            object.__setattr__(self, each.name, value)

    def _check(self, at_least_one: Iterable[str], not_negative: Iterable[str]) -> None:
        for least, names in ((1, at_least_one), (0, not_negative)):
            for name in names:
                value = getattr(self, name)
                if not math.isfinite(value):
                    raise UserError(f"{name}={value}: expected a finite number")
                if value < least:
                    raise UserError(f"{name}={value}: expected at least {least}")
        if not 0 <= self.decay <= 1:  # type: ignore[attr-defined]
            raise UserError(f"decay={self.decay}: expected 0 to 1")  # type: ignore[attr-defined]
        if not 0 < self.lr < math.inf:  # type: ignore[attr-defined]
            raise UserError(f"lr={self.lr}: expected a finite number above 0")  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class ContinualSettings(_Settings):
    """How new parts are learned; shared by both tasks. The epochs of later parts are separate.

    Attributes:
        strategy: frozen, lower, upper, ewc, emr, gem or dicgrl.
        later_epochs: Epochs of every part but the first; 0 for as many as the first. For dicgrl
            with arrive_epochs they are those of the update that follows, and 0 leaves it out where
            every new example speaks of something new; otherwise it takes arrive_epochs.
        later_rate: Learning rate of later parts as a multiple of lr.
        validate_on: Validation data that later parts are selected by: seen (of all parts so far),
            part (of the newest part) or none (they are learned to the end).
        start: Start of new rows: random, neighbours (what the graph says about them; in a network,
            what its nodes say about a new class), or auto (neighbours for dicgrl and what derives
            from it, else random).
        budget: Old examples that may be replayed for one part: 10% (of the history), 2x (times the
            new part), 500 (examples) or all; with commas between them, the least of several.
        strength: Strength of ewc's penalty.
        orders: Orders of neighbours that dicgrl activates, 1 or 2.
        weight1: Weight of activated neighbours of order 1.
        weight2: Weight of activated neighbours of order 2.
        refresh: Epochs after which dicgrl activates anew, with what is left of its budget; 0 for
            never.
        fan: Old neighbours looked at per node; 0 for all.
        selection: How dicgrl fills its budget: top (highest merit) or sample (drawn by merit).
        arrive_epochs: Epochs in which only new rows learn, before old ones may change; 0 for none.
            A network has no rows of its own and leaves this stage out.
        shield: Old examples that protect old answers from newcomers in that time, like budget; or
            activated, for those that the part activates within budget, which an update then
            replays. In a network they are nodes, labelled or not, that keep the class probabilities
            of the model before the part while it is learned.
        shield_rank: Rank among old entities that newcomers are kept behind in the questions of the
            shield, estimated from a sample; 0 keeps them behind the margin of the loss,
            whatever else answers. It counts where there is a shield.
        guard: Whether the shield stays while old components change after the arrival.
        arrive_last: Whether new rows learn alone after the change of old ones, not before.
        pace: Learning rate of old rows in the update as a multiple of the share of what is known
            of them that is new, 0.02 to 1; 0 lets them learn like new ones.
        max_drift: Farthest that an old component may move, as a share of its length; 0 for no
            bound.
        average: Whether the weights that all share (a network's, the filters of convkb) are
            averaged with those before the part, by the training examples behind each.
    """

    strategy: str = "lower"
    later_epochs: int = 0
    later_rate: float = 1.0
    validate_on: str = "seen"
    start: str = "auto"
    budget: str = "10%"
    strength: float = 1.0
    orders: int = 2
    weight1: float = 0.5
    weight2: float = 0.25
    refresh: int = 10
    fan: int = 0
    selection: str = "top"
    arrive_epochs: int = 0
    shield: str = "0"
    shield_rank: int = 0
    guard: bool = False
    arrive_last: bool = False
    pace: float = 0.0
    max_drift: float = 0.0
    average: bool = False

    def _check_continual(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise unknown_name(name, str(getattr(self, name)), allowed)
        for name in _AMOUNTS:
            if name != "shield" or self.shield != ACTIVATED:
                examples_within(getattr(self, name), 0, 0, name)
        if self.orders not in (1, 2):
            raise UserError(f"orders={self.orders}: expected 1 or 2")
        for name in _CONTINUAL_NOT_NEGATIVE:
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(f"{name}={getattr(self, name)}: expected a number, at least 0")

    @property
    def starts_from_neighbours(self) -> bool:
        """Whether new rows start from what the graph says about them."""
        kind = KIND_OF.get(self.strategy, self.strategy)
        return self.start == "neighbours" or (self.start == "auto" and kind == "dicgrl")

    def later_schedule(self) -> Schedule:
        """The schedule of every part but the first."""
        schedule = self.schedule()
        return replace(
            schedule,
            epochs=self.later_epochs or schedule.epochs,
            lr=schedule.lr * self.later_rate,
        )


ACTIVATED = "activated"  # a shield of what the part activates
_AMOUNTS = ("budget", "shield")
_CHOICES = {
    "validate_on": ("seen", "part", "none"),
    "start": ("auto", "random", "neighbours"),
    "selection": ("top", "sample"),
}
_WEIGHTINGS = ("even", "frequency")
_CONTINUAL_NOT_NEGATIVE = (
    "later_epochs",
    "later_rate",
    "strength",
    "weight1",
    "weight2",
    "refresh",
    "fan",
    "arrive_epochs",
    "shield_rank",
    "pace",
    "max_drift",
)


def examples_within(budget: str, old: int, new: int, name: str = "budget") -> int:
    """How many old examples a budget allows, given the size of the history and of the part.

    Example:
        >>> [examples_within(text, old=5000, new=100) for text in ("10%", "2x", "30", "all")]
        [500, 200, 30, 5000]
        >>> examples_within("10%,3x", old=5000, new=100)
        300
    """
    if "," in budget:
        return min(examples_within(text, old, new, name) for text in budget.split(","))
    text = budget.strip().lower()
    if text == "all":
        return old
    unit = next((sign for sign in ("%", "x") if text.endswith(sign)), "")
    try:
        number = float(text.removesuffix(unit))
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf or (not unit and number % 1):  # 0.1 is no share: it has no sign
        raise UserError(
            f"{name}={budget!r}: expected 10% (of the history), 2x (times the part), 500 or all"
            + (f", or {ACTIVATED}" if name == "shield" else "")
        )
    return min(old, round(number * {"%": old / 100, "x": new, "": 1}[unit]))


#: Settings that say how later parts are learned: of no effect on a first part or a merged graph.
LATER = frozenset(each.name for each in fields(ContinualSettings))

STRATEGIES = ("frozen", "lower", "upper", "ewc", "emr", "gem", "dicgrl")
#: What a strategy is a kind of, by name (`Strategy.recipe`); each enters itself when it is defined.
KIND_OF: dict[str, str] = {}
_GO_ON = ("lower", "ewc", "emr", "gem", "dicgrl")  # with the model that they have
#: The strategies that use a setting, where not all do. One of somebody's own may use any. New rows
#: `start` with all of them: what they answer is measured before a part is learned, too.
USED_BY: Mapping[str, tuple[str, ...]] = {
    "later_epochs": _GO_ON,
    "later_rate": _GO_ON,
    "validate_on": ("upper", *_GO_ON),
    "budget": ("emr", "gem", "dicgrl"),
    "strength": ("ewc",),
    "weight1": ("dicgrl",),
    "weight2": ("dicgrl",),
    "refresh": ("dicgrl",),
    "fan": ("dicgrl",),
    "selection": ("dicgrl",),
    "arrive_epochs": ("dicgrl",),
    "shield": ("dicgrl",),
    "shield_rank": ("dicgrl",),
    "guard": ("dicgrl",),
    "arrive_last": ("dicgrl",),
    "pace": ("dicgrl",),
    "max_drift": ("dicgrl",),
    "average": ("dicgrl",),
}
#: Settings that a plain model has no use for. `dicgrl explain` takes the `orders` of any other.
OF_COMPONENTS = ("top", "attention", "routing", "order", "beta", "orders")


def check_use(names: Iterable[str], every: Iterable[tuple[str, bool]]) -> None:
    """Refuse settings that were asked for and that would change nothing.

    Args:
        names: The settings; not those that a recipe carries.
        every: The strategies that are to have them, each with whether its model is divided.

    Raises:
        UserError: None of them uses a setting.

    Example:
        >>> check_use(["budget"], [("lower", False), ("emr", False)])
        >>> check_use(["budget"], [("lower", False)])
        Traceback (most recent call last):
        dicgrl.errors.UserError: budget has no effect with strategy lower; emr, gem, dicgrl use it
    """
    asked = list(dict.fromkeys(every))
    strategies = list(dict.fromkeys(strategy for strategy, _ in asked))
    for name in names:
        users = USED_BY.get(name, STRATEGIES)
        if all(each in STRATEGIES and each not in users for each in strategies):
            use = "use" if len(users) > 1 else "uses"
            raise UserError(
                f"{name} has no effect with strategy {', '.join(strategies)}; "
                f"{', '.join(users)} {use} it"
            )
        if name in OF_COMPONENTS and not any(divided for _, divided in asked):
            raise UserError(
                f"{name} has no effect on a plain model; components=8, for example, divides it"
            )


@dataclass(frozen=True, slots=True)
class LinkSettings(ContinualSettings):
    """Settings of link prediction; those of `ContinualSettings` besides.

    Attributes:
        model: Scoring function: transe, convkb, or one of your own.
        dim: Length of an entity's vector.
        components: Number of components that it is divided into; 0 for a plain model. On a GPU
            those of a multiple of four numbers learn fastest.
        top: Number of components that a triple uses.
        attention: Where attention comes from: relation, nodes or triple.
        routing: What trains attention: learned (the task) or published (the normalisation loss).
        order: How chosen components are concatenated: component or weight.
        options: Further arguments of the scoring function, such as p of transe.
        loss: selfadversarial, softmargin or margin.
        margin: Margin of the loss.
        temperature: Sharpness of the self-adversarial weights.
        negatives: Negatives per triple.
        weighting: What triples count where a model learns them from the start: even (all alike) or
            frequency (the less, the more often their questions are asked).
        beta: Weight of the normalisation loss.
        epochs: Passes over the training triples, at most.
        batch: Triples per step.
        lr: Learning rate.
        halve_every: Epochs after which the learning rate is halved; 0 for never.
        decay: How much of the learning rate is taken away, evenly, until the last epoch: 0 to 1.
        weight_decay: Pull of the weights towards zero.
        clip: Largest norm of the gradient of dense parameters; 0 for none.
        dense_rate: Learning rate of dense parameters as a multiple of lr.
        validate_every: Epochs between two validations.
        patience: Validations without progress after which training stops; 0 for never.
        validate_at_most: Validation triples looked at during training; 0 for all.
    """

    model: str = "transe"
    dim: int = 200
    components: int = 0
    top: int = 4
    attention: str = "relation"
    routing: str = "learned"
    order: str = "component"
    options: Mapping[str, Any] = field(default_factory=dict)
    loss: str = "selfadversarial"
    margin: float = 9.0
    temperature: float = 1.0
    negatives: int = 64
    weighting: str = "even"
    beta: float = 0.1
    epochs: int = 100
    batch: int = 1024
    lr: float = 1e-3
    halve_every: int = 0
    decay: float = 0.0
    weight_decay: float = 0.0
    clip: float = 0.0
    dense_rate: float = 1.0
    validate_every: int = 5
    patience: int = 5
    validate_at_most: int = 2000

    def __post_init__(self) -> None:
        self._check_types()
        self._check_option_types()
        if self.loss not in LOSSES:
            raise unknown_name("loss", self.loss, LOSSES)
        if self.weighting not in _WEIGHTINGS:
            raise unknown_name("weighting", self.weighting, _WEIGHTINGS)
        if not math.isfinite(self.margin):
            raise UserError(f"margin={self.margin}: expected a finite number")
        self._check(("dim", "negatives", "batch", "epochs", "validate_every"), _NOT_NEGATIVE)
        divided = self.division()
        length = self.dim if divided is None else divided.size(self.dim) * divided.top
        if self.options:
            with seeded(0):  # parameters of a scorer may draw from the global generator
                scorer(self.model)(length, **self.options)
        self._check_continual()

    def _check_option_types(self) -> None:
        if not isinstance(self.options, Mapping):
            raise UserError(f"options={self.options!r}: expected names and values")
        known = scorer_options(self.model)
        for option in self.options:
            if option not in known:
                raise unknown_name(f"option of {self.model}", str(option), known)
        options = {name: _plain(name, value, known[name]) for name, value in self.options.items()}
        object.__setattr__(self, "options", options)

    def division(self) -> Components | None:
        """How vectors are divided; None for a plain model."""
        if not self.components:
            return None
        return Components(self.components, self.top, self.attention, self.routing, self.order)

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """The settings with some values replaced; arguments of the scorer may be among them.

        Example:
            >>> LinkSettings().changed({"dim": 100, "p": 2}).options
            {'p': 2}
        """
        model = str(changes.get("model", self.model))
        options = {} if model != self.model else dict(self.options)
        own: dict[str, Any] = {}
        names = {f.name for f in fields(self)}
        for key, value in changes.items():
            if key in names:
                own[key] = value
            elif key in scorer_options(model):
                options[key] = value
            else:
                raise unknown_name("setting", key, names | set(scorer_options(model)))
        if "options" in own:
            options |= own.pop("options")
        return replace(self, **own, options=options)

    def _types(self, changes: Mapping[str, str]) -> dict[str, type]:
        # Named, not super(): a dataclass with slots is a new class that super() does not know.
        return _Settings._types(self, changes) | scorer_options(changes.get("model", self.model))


@dataclass(frozen=True, slots=True)
class NodeSettings(ContinualSettings):
    """Settings of node classification; those of `ContinualSettings` besides.

    Attributes:
        model: Backbone: gat or sage.
        hidden: Length of a head's or component's hidden vector.
        heads: Heads of a plain model.
        layers: Layers of message passing.
        dropout: Share of features and neighbour weights dropped in training.
        components: Number of components; 0 for a plain model.
        top: Number of components that an edge takes part in.
        routing: What trains attention: learned (the task) or published (the normalisation loss).
        features: How a node's features are scaled: l2 (length 1), row (sum 1) or none.
        graph: Edges that messages pass: accumulated (all known so far) or part (the newest part's).
        batch: Nodes per step; 0 for all at once.
        neighbours: Neighbours drawn per node and layer where batch is not 0.
        beta: Weight of the normalisation loss.
        epochs: Passes over the training nodes, at most.
        lr: Learning rate.
        halve_every: Epochs after which the learning rate is halved; 0 for never.
        decay: How much of the learning rate is taken away, evenly, until the last epoch: 0 to 1.
        weight_decay: Pull of the weights towards zero.
        clip: Largest norm of the gradient; 0 for none.
        validate_every: Epochs between two validations.
        patience: Validations without a smaller loss after which training stops; 0 for never.
    """

    without_effect: ClassVar = (
        "arrive_epochs",
        "shield_rank",
        "guard",
        "arrive_last",
        "pace",
        "max_drift",
    )
    model: str = "gat"
    hidden: int = 8
    heads: int = 8
    layers: int = 2
    dropout: float = 0.6
    components: int = 0
    top: int = 4
    routing: str = "learned"
    features: str = "l2"
    graph: str = "accumulated"
    batch: int = 0
    neighbours: int = 10
    beta: float = 0.1
    epochs: int = 300
    lr: float = 5e-3
    halve_every: int = 0
    decay: float = 0.0
    weight_decay: float = 5e-4
    clip: float = 0.0
    validate_every: int = 1
    patience: int = 50

    def __post_init__(self) -> None:
        self._check_types()
        if self.model not in BACKBONES:
            raise unknown_name("model", self.model, BACKBONES)
        for name, allowed in (
            ("features", ("l2", "row", "none")),
            ("graph", ("accumulated", "part")),
        ):
            if getattr(self, name) not in allowed:
                raise UserError(f"{name}={getattr(self, name)!r}: expected {', '.join(allowed)}")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout={self.dropout}: expected at least 0 and below 1")
        self._check(
            ("hidden", "heads", "layers", "neighbours", "epochs", "validate_every"),
            ("components", "batch", "beta", "halve_every", "weight_decay", "clip", "patience"),
        )
        self.division()
        self._check_continual()

    def division(self) -> Components | None:
        """How vectors are divided; None for a plain model."""
        if not self.components:
            return None
        return Components(self.components, self.top, attention="nodes", routing=self.routing)


def scorer_options(model: str) -> dict[str, type]:
    """Arguments of a scoring function besides its dimension, with their types."""
    parameters = inspect.signature(scorer(model).__init__).parameters.values()
    return {
        p.name: type(p.default)
        for p in parameters
        if p.name not in ("self", "dim") and p.default is not p.empty
    }


def _plain(name: str, value: Any, kind: type) -> Any:
    """A value as its kind, ready for JSON, which NumPy's numbers are not.

    Raises:
        UserError: It is of another kind.
    """
    if name in _AMOUNTS and type(value) is int:
        return str(value)
    if kind not in _KINDS or type(value) is kind:
        return value
    if kind is int and isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if kind is float and isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    such = " such as '10%'" if name in _AMOUNTS else ""
    raise UserError(f"{name}={value!r}: expected {_KINDS[kind]}{such}")


def _parse(key: str, text: str, kind: type) -> Any:
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        return kind(text)
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{key}={text!r}: expected {_KINDS.get(kind, kind.__name__)}") from None


_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}

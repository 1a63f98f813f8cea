"""All settings of a run in one place: typed, checked, and read from `key=value` texts."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from dicgrl.errors import UserError, unknown_name
from dicgrl.models import Components, scorer
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


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """Settings of link prediction.

    Attributes:
        model: Scoring function: transe, convkb, or one of your own.
        dim: Length of an entity's vector.
        components: Number of components that it is divided into; 0 for a plain model.
        top: Number of components that a triple uses.
        attention: Where attention comes from: relation, nodes or triple.
        routing: What trains attention: learned (the task) or published (the normalisation loss).
        order: How chosen components are concatenated: component or weight.
        options: Further arguments of the scoring function, such as p of transe.
        loss: selfadversarial, softmargin or margin.
        margin: Margin of the loss.
        temperature: Sharpness of the self-adversarial weights.
        negatives: Negatives per triple.
        beta: Weight of the normalisation loss.
        epochs: Passes over the training triples, at most.
        batch: Triples per step.
        lr: Learning rate.
        halve_every: Epochs after which the learning rate is halved; 0 for never.
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
    beta: float = 0.1
    epochs: int = 100
    batch: int = 1024
    lr: float = 1e-3
    halve_every: int = 0
    weight_decay: float = 0.0
    clip: float = 0.0
    dense_rate: float = 1.0
    validate_every: int = 5
    patience: int = 5
    validate_at_most: int = 2000

    def __post_init__(self) -> None:
        known = scorer_options(self.model)
        for option in self.options:
            if option not in known:
                raise unknown_name(f"option of {self.model}", option, known)
        if self.loss not in LOSSES:
            raise unknown_name("loss", self.loss, LOSSES)
        for name in ("dim", "negatives", "batch", "epochs", "validate_every"):
            if getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)}: expected at least 1")
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise UserError(f"{name}={getattr(self, name)}: expected at least 0")
        for name in ("lr", "margin", *_NOT_NEGATIVE):
            if not math.isfinite(getattr(self, name)):
                raise UserError(f"{name}={getattr(self, name)}: expected a finite number")
        if self.lr <= 0:
            raise UserError(f"lr={self.lr}: expected above 0")
        divided = self.division()
        if divided is not None:
            divided.size(self.dim)

    def division(self) -> Components | None:
        """How vectors are divided; None for a plain model."""
        if not self.components:
            return None
        return Components(self.components, self.top, self.attention, self.routing, self.order)

    def schedule(self) -> Schedule:
        """The part of the settings that the training loop takes."""
        return Schedule(**{f.name: getattr(self, f.name) for f in fields(Schedule)})

    def changed(self, changes: Mapping[str, Any]) -> LinkSettings:
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

    def parsed(self, texts: Iterable[str]) -> LinkSettings:
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
        default = LinkSettings()  # a recipe may have put 9 where 9.5 is possible
        types = {f.name: type(getattr(default, f.name)) for f in fields(self)}
        types |= scorer_options(changes.get("model", self.model))
        for key, value in changes.items():
            if key in types:
                changes[key] = _parse(key, value, types[key])
        return self.changed(changes)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def scorer_options(model: str) -> dict[str, type]:
    """Arguments of a scoring function besides its dimension, with their types."""
    parameters = inspect.signature(scorer(model).__init__).parameters.values()
    return {
        p.name: type(p.default)
        for p in parameters
        if p.name not in ("self", "dim") and p.default is not p.empty
    }


def _parse(key: str, text: str, kind: type) -> Any:
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        return kind(text)
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{key}={text!r}: expected {_KINDS.get(kind, kind.__name__)}") from None


_KINDS = {int: "a whole number", float: "a number", bool: "true or false"}
